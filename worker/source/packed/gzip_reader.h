// SPDX-License-Identifier: Apache-2.0
//
// GzipReader: the bytes of a gzip file (RFC 1952, one member or several), from
// its beginning to its end.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// True if `file` begins as gzip files do.
absl::StatusOr<bool> IsGzip(const StorageFile& file);

// Thread-compatible. `file` must outlive it.
class GzipReader {
 public:
  explicit GzipReader(const StorageFile& file);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Fills `into`, with fewer bytes only at the end; returns how many bytes.
  // kDataLoss: damaged, cut off, or trailing bytes (names file and offset).
  absl::StatusOr<size_t> Read(std::span<std::byte> into);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace leat::worker
