// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/gpu_check.h"

namespace leat::gpu_check {

void MeasureRates(const Setup& setup, Report* report) {}

}  // namespace leat::gpu_check
