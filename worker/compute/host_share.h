// SPDX-License-Identifier: Apache-2.0
//
// IsHosts: which images of class nvjpeg_shared are decoded as in class exact:
// by our kernels, from codes that the host sends, or by the host. The JPEG
// engines then have less to do.
//
// The file alone decides, on every worker and in every release. If this
// changes, kHostShareText must change with it: it is in the digest of the
// class, so that a worker which divides images in another way computes no rows
// of a job that began with this one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/hash.h"
#include "worker/compute/gpu_worker.h"

namespace leat::worker {

// Images of our kernels leave this much of a slot's memory for images: room for
// the largest image that the device's decoder is given.
inline constexpr uint64_t kDecodersRoom = kMaxNvjpegImageBytes;

inline constexpr std::string_view kHostShareText =
    "1/4 of the files as in class exact";

// Hashes the length and the bytes in the middle and at the end, which are codes
// in photos: all bytes would take longer than to copy them.
inline bool IsHosts(std::span<const std::byte> file) {
  const size_t some = std::min<size_t>(256, file.size());
  const Digest digest =
      Sha256()
          .UpdateU64(file.size())
          .Update(file.subspan((file.size() - some) / 2, some))
          .Update(file.last(some))
          .Finish();
  return digest[0] < 256 / 4;
}

}  // namespace leat::worker
