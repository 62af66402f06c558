// SPDX-License-Identifier: Apache-2.0
//
// MemoryFile: a stored file whose bytes are in memory, exactly as many.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "core/status.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

class MemoryFile : public StoredFile {
 public:
  explicit MemoryFile(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  const std::string& identity() const override { return name_; }
  absl::Status ReadAt(uint64_t offset,
                      std::span<std::byte> into) const override {
    if (offset > size() || into.size() > size() - offset) abort();
    if (!into.empty())
      std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return absl::OkStatus();
  }
  absl::Status ReadRanges(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& range : ranges)
      RETURN_IF_ERROR(ReadAt(range.offset, range.into));
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
  const std::string name_ = "memory";
};

}  // namespace leat::worker
