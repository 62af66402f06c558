// SPDX-License-Identifier: Apache-2.0
//
// LEAT_KERNEL_IMAGE, the path of the file, comes from the build.
#include "worker/gpu/kernel_image.h"

asm(".section .rodata\n"
    ".balign 64\n"
    ".local leat_kernel_image\n"
    "leat_kernel_image:\n"
    ".incbin \"" LEAT_KERNEL_IMAGE
    "\"\n"
    ".local leat_kernel_image_end\n"
    "leat_kernel_image_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const std::byte leat_kernel_image[]
    __attribute__((visibility("hidden")));
extern const std::byte leat_kernel_image_end[]
    __attribute__((visibility("hidden")));
}

namespace leat::worker {

std::span<const std::byte> KernelImage() {
  return {leat_kernel_image, leat_kernel_image_end};
}

}  // namespace leat::worker
