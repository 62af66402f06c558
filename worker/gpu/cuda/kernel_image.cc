// SPDX-License-Identifier: Apache-2.0
//
// The build defines LEAT_KERNEL_IMAGE, the path of the file.
#include "worker/gpu/cuda/kernel_image.h"

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

#define LEAT_IN_IMAGE(symbol) asm(symbol) __attribute__((visibility("hidden")))

namespace leat::worker {

extern const std::byte kImage[] LEAT_IN_IMAGE("leat_kernel_image");
extern const std::byte kImageEnd[] LEAT_IN_IMAGE("leat_kernel_image_end");

std::span<const std::byte> KernelImage() { return {kImage, kImageEnd}; }

}  // namespace leat::worker
