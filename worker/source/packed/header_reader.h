// SPDX-License-Identifier: Apache-2.0
//
// HeaderReader: reads a file's headers in their order, skipping what is between
// them. If headers are close, or each request costs a round trip, one read
// serves many. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

class HeaderReader {
 public:
  static constexpr uint64_t kWindow = 64 << 10;  // while headers are close
  static constexpr uint64_t kSparse = 4 << 10;   // while they are not
  static constexpr uint64_t kRemote = 8 << 20;

  // `file` must outlive it.
  explicit HeaderReader(const StorageFile& file);
  // Returns `size` bytes at `offset`, valid until the next call. Errors as
  // ReadAt. REQUIRES: the file has them; size <= kSparse.
  absl::StatusOr<std::span<const std::byte>> At(uint64_t offset, size_t size);

 private:
  const StorageFile& file_;
  const bool local_;
  const uint64_t capacity_;
  const std::unique_ptr<std::byte[]> bytes_;
  uint64_t begin_ = 0, size_ = 0;  // the range in bytes_
  uint64_t last_ = 0;              // the previous request
};

}  // namespace leat::worker
