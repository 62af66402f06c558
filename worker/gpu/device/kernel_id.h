// SPDX-License-Identifier: Apache-2.0
//
// KernelId: a kernel of ours, by its index in worker/gpu/kernels/names.h. Every
// device has all of them.
#pragma once

#include <cstdint>

namespace leat::worker {

enum class KernelId : uint8_t {};

}  // namespace leat::worker
