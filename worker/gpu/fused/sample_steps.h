// SPDX-License-Identifier: Apache-2.0
//
// Which of a pipeline's steps one of a row's samples takes.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/image/program/program.h"

namespace leat::worker {

// The values of its own sample that a step takes, but for its arguments.
std::vector<uint32_t> InputsOf(const Step& step);

// The steps that these values of a sample are made by; none behind `partner`,
// which are another sample's. `num_values`: of a sample.
std::vector<Step> StepsOf(const std::vector<uint32_t>& values,
                          size_t num_values, const std::vector<Step>& all);

// The values that rows want of their partners.
std::vector<uint32_t> PartneredBy(const std::vector<Step>& steps);

}  // namespace leat::worker
