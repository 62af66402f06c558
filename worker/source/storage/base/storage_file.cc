// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/base/storage_file.h"

#include "core/status.h"

namespace leat::worker {

absl::StatusOr<std::string> ReadWhole(const StorageFile& file,
                                      uint64_t max_bytes) {
  if (file.size() > max_bytes) {
    return ResourceExhausted("{}: {} bytes, want at most {}", file.name(),
                             file.size(), max_bytes);
  }
  std::string out(file.size(), '\0');
  RETURN_IF_ERROR(file.ReadAt(
      0, std::as_writable_bytes(std::span(out.data(), out.size()))));
  return out;
}

}  // namespace leat::worker
