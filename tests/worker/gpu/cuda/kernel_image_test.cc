// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/kernel_image.h"

#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

TEST(KernelImage, IsAnAlignedFatBinary) {
  const std::span<const std::byte> image = KernelImage();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(image.data()) % 64, 0u);
  // fatbinary_section's header: magic, version 1, its own size, bytes after it.
  struct {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
  } header;
  ASSERT_GT(image.size(), sizeof header);
  memcpy(&header, image.data(), sizeof header);
  EXPECT_EQ(header.magic, 0xba55ed50u);
  EXPECT_EQ(header.version, 1);
  EXPECT_EQ(header.header_bytes + header.bytes, image.size());
  EXPECT_LT(image.size(), size_t{8} << 20);
}

}  // namespace
}  // namespace leat::worker
