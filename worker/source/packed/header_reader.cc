// SPDX-License-Identifier: Apache-2.0
#include "worker/source/packed/header_reader.h"

#include <algorithm>

#include "core/status.h"

namespace leat::worker {

HeaderReader::HeaderReader(const StorageFile& file)
    : file_(file),
      local_(IsLocalUri(file.name())),
      capacity_(local_ ? kWindow : kRemote),
      bytes_(std::make_unique_for_overwrite<std::byte[]>(
          std::min(capacity_, file.size()))) {}

absl::StatusOr<std::span<const std::byte>> HeaderReader::At(uint64_t offset,
                                                            size_t size) {
  if (offset < begin_ || offset + size > begin_ + size_) {
    const bool sparse = local_ && offset - last_ > kWindow / 4;
    begin_ = offset;
    size_ = std::min(sparse ? kSparse : capacity_, file_.size() - offset);
    RETURN_IF_ERROR(file_.ReadAt(offset, std::span(bytes_.get(), size_)));
  }
  last_ = offset;
  return std::span<const std::byte>(bytes_.get() + (offset - begin_), size);
}

}  // namespace leat::worker
