// SPDX-License-Identifier: Apache-2.0
//
// An index of many files as a sequence of messages, each preceded by its
// length: one head, then parts of up to kFilesAPart files. So neither writing
// nor reading holds the whole listing as messages.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/redaction.h"
#include "core/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"
#include "worker/source/source.h"

namespace leat::worker {

inline constexpr size_t kFilesAPart = 1024;

// Collects an index's bytes as they are made: into one string, or, if the
// limits have a sink, into blocks. The first bytes are the head.
class IndexBytes {
 public:
  explicit IndexBytes(const SourceLimits& limits)
      : sink_(limits.blocks),
        block_bytes_(limits.block_bytes),
        max_bytes_(sink_ == nullptr ? limits.max_index_bytes
                                    : limits.max_blocks_bytes) {}

  // `samples`: the number that these bytes describe. kResourceExhausted: over
  // the limit, or the bytes for one shard exceed kMaxIndexBlockBytes. Others:
  // the sink's.
  absl::Status Add(std::string_view bytes, uint64_t samples) {
    total_ += bytes.size();
    if (total_ > max_bytes_)
      return ResourceExhausted("the index is over {} bytes: the limit",
                               max_bytes_);
    if (sink_ != nullptr) {
      if (bytes.size() > kMaxIndexBlockBytes)
        return ResourceExhausted(
            "{} bytes of the index belong to {} samples of one file: want at "
            "most {}",
            bytes.size(), samples, kMaxIndexBlockBytes);
      if (!begun_) {
        begun_ = true;
        return sink_->Add(std::string(bytes), 0);
      }
      if (samples > 0 && samples_ > 0 &&
          bytes_.size() + bytes.size() > block_bytes_)
        RETURN_IF_ERROR(Flush());
    }
    bytes_ += bytes;
    samples_ += samples;
    return absl::OkStatus();
  }
  // Returns all bytes; none, if they went to the sink.
  absl::StatusOr<std::string> Finish() {
    if (sink_ != nullptr && samples_ > 0) RETURN_IF_ERROR(Flush());
    return sink_ == nullptr ? std::move(bytes_) : std::string();
  }

 private:
  absl::Status Flush() {
    return sink_->Add(std::exchange(bytes_, {}), std::exchange(samples_, 0));
  }

  IndexSink* const sink_;
  const uint64_t block_bytes_;
  const uint64_t max_bytes_;
  bool begun_ = false;
  uint64_t total_ = 0;
  std::string bytes_;
  uint64_t samples_ = 0;
};

class BlobWriter {
 public:
  explicit BlobWriter(const SourceLimits& limits) : bytes_(limits) {}

  // Has the contract of IndexBytes::Add.
  absl::Status Add(const google::protobuf::MessageLite& message,
                   uint64_t samples = 0) {
    std::string framed;
    {
      google::protobuf::io::StringOutputStream stream(&framed);
      google::protobuf::io::CodedOutputStream out(&stream);
      out.WriteVarint32(static_cast<uint32_t>(message.ByteSizeLong()));
    }
    if (!message.AppendToString(&framed))
      return ResourceExhausted(
          "a part of the index has {} bytes, want less than 2 GiB",
          message.ByteSizeLong());
    return bytes_.Add(framed, samples);
  }
  absl::StatusOr<std::string> Finish() { return bytes_.Finish(); }

 private:
  IndexBytes bytes_;
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

// Reads the head of an index. kDataLoss: it is malformed, or of another reader.
template <class Head>
absl::Status NextHead(const Node& reader, BlobReader* in, Head* head) {
  RETURN_IF_ERROR(in->Next(head));
  if (head->reader() == CanonicalText(reader)) return absl::OkStatus();
  return DataLoss("it is of another reader: {}", Redacted(head->reader()));
}

// Returns the source with its index loaded: `args` are those of its Load. Errors
// say that they are of the index of `dataset`.
template <class LoadedSource, class... Args>
absl::StatusOr<std::unique_ptr<Source>> Loaded(
    std::unique_ptr<LoadedSource> source, std::string_view dataset,
    const Args&... args) {
  RETURN_IF_ERROR(
      Annotate(source->Load(args...), fmt::format("the index of {}", dataset)));
  return source;
}

}  // namespace leat::worker
