// SPDX-License-Identifier: Apache-2.0
//
// The steps of a pipeline that apply to one of a row's samples.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/image/program/program.h"

namespace leat::worker {

// Returns the values of its own sample that a step reads, except its arguments.
std::vector<uint32_t> InputsOf(const Step& step);

// Returns the steps that compute these values of a sample, without those before
// `partner`, which belong to the other sample. `num_values`: of a sample.
std::vector<Step> StepsOf(const std::vector<uint32_t>& values,
                          size_t num_values, const std::vector<Step>& all);

// Returns the values that rows need from their partners.
std::vector<uint32_t> PartneredBy(const std::vector<Step>& steps);

}  // namespace leat::worker
