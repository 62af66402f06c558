// SPDX-License-Identifier: Apache-2.0
//
// Our kernels as machine code, for cuModuleLoadData. Their names are in
// kernels/names.h.
#pragma once

#include <cstddef>
#include <span>

namespace leat::worker {

// Returns an uncompressed fat binary: code for compute capability 7.5 to 12.0,
// and PTX for any other. Constant.
std::span<const std::byte> KernelImage();

}  // namespace leat::worker
