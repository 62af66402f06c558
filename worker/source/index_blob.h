// SPDX-License-Identifier: Apache-2.0
//
// An index of many files as a sequence of messages, each with its length before
// it: one head, then parts of up to kFilesAPart files. So neither writing nor
// reading holds the whole listing as messages.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "core/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"
#include "worker/source/source.h"

namespace leat::worker {

inline constexpr size_t kFilesAPart = 1024;

class BlobWriter {
 public:
  explicit BlobWriter(const SourceLimits& limits)
      : max_bytes_(limits.max_index_bytes) {}

  // kResourceExhausted: over max_index_bytes.
  absl::Status Add(const google::protobuf::MessageLite& message) {
    const std::string bytes = message.SerializeAsString();
    {
      google::protobuf::io::StringOutputStream stream(&blob_);
      google::protobuf::io::CodedOutputStream out(&stream);
      out.WriteVarint32(static_cast<uint32_t>(bytes.size()));
    }
    blob_ += bytes;
    if (blob_.size() <= max_bytes_) return absl::OkStatus();
    return ResourceExhausted("the index is over {} bytes: the limit",
                             max_bytes_);
  }
  std::string Take() { return std::move(blob_); }

 private:
  const uint64_t max_bytes_;
  std::string blob_;
};

class BlobReader {
 public:
  explicit BlobReader(std::string_view blob) : rest_(blob) {}

  bool done() const { return rest_.empty(); }
  // kDataLoss: no such message here.
  absl::Status Next(google::protobuf::MessageLite* message) {
    google::protobuf::io::CodedInputStream in(
        reinterpret_cast<const uint8_t*>(rest_.data()),
        static_cast<int>(std::min<size_t>(rest_.size(), 10)));
    uint32_t size = 0;
    if (!in.ReadVarint32(&size)) return Malformed();
    rest_.remove_prefix(static_cast<size_t>(in.CurrentPosition()));
    if (size > rest_.size() || size > std::numeric_limits<int>::max() ||
        !message->ParseFromArray(rest_.data(), static_cast<int>(size)))
      return Malformed();
    rest_.remove_prefix(size);
    return absl::OkStatus();
  }

 private:
  static absl::Status Malformed() { return DataLoss("the index is malformed"); }
  std::string_view rest_;
};

}  // namespace leat::worker
