// SPDX-License-Identifier: Apache-2.0
//
// WebpTableBytes: the memory that libwebp takes for the code tables of a
// lossless image, found without decoding it.
//
// A lossless image has up to 65,536 groups of five Huffman codes. The file needs
// 20 bits for a group, and libwebp up to 20 kilobytes: a third of a megabyte can
// demand 1.3 gigabytes. Which group codes a block of pixels is stored as an
// image of its own, in front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/image/base/rect.h"

namespace leat::worker {

// Reads a WebP image, or the alpha of a lossy one, up to the tables. Returns 0
// for a lossy image without packed alpha, and for a file that is damaged before
// its tables: libwebp then makes none.
uint64_t WebpTableBytes(std::span<const std::byte> file, StoredSize size);

}  // namespace leat::worker
