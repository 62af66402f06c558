// SPDX-License-Identifier: Apache-2.0
//
// The types of readers.caffe and readers.caffe2 are taken from probes, records
// spread evenly over the files, since reading every value would be reading the
// dataset: all encoded, or all raw. Raw pixels of one size in all probes give a
// fixed shape; otherwise height and width may differ. A record that does not
// fit is a bad sample, and the error says so.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/redaction.h"
#include "core/status.h"
#include "worker/source/content_hash.h"
#include "worker/source/lmdb/lmdb.h"
#include "worker/source/loader_args.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

using stored::v1::LmdbFile;
using stored::v1::LmdbIndex;

constexpr uint64_t kProbes = 256;

// Widens `type` to include `other`. Returns false if it cannot.
bool Widen(const ValueType& other, ValueType* type) {
  if (other.kind != type->kind || other.dtype != type->dtype ||
      other.shape.size() != type->shape.size())
    return false;
  for (size_t i = 0; i < other.shape.size(); ++i)
    if (other.shape[i] != type->shape[i]) {
      if (i == 2) return false;  // channels
      type->shape[0] = type->shape[1] = -1;
    }
  return true;
}

// Returns the data file in a folder; or `path` itself.
absl::StatusOr<std::string> DataFileOf(const std::string& path,
                                       const SourceLimits& limits) {
  const absl::Status stat = StorageOf(limits).Stat(path).status();
  if (stat.ok()) return path;
  if (IsLocalUri(path) && !absl::IsFailedPrecondition(stat)) return stat;
  return JoinUri(path, "data.mdb");
}

// Finds what all probes have in common.
class Prober {
 public:
  Prober(const LmdbKind& kind, const SourceLimits& limits)
      : kind_(kind), limits_(limits) {}

  absl::Status Probe(const StorageFile& file,
                     const std::vector<LmdbValue>& values) {
    const uint64_t probes = std::min<uint64_t>(kProbes, values.size());
    for (uint64_t i = 0; i < probes; ++i) {
      RETURN_IF_ERROR(CheckCancelled(limits_, file.name()));
      const uint64_t at = values.size() * i / probes;
      auto value = ReadLmdbValue(file, values[at], limits_);
      if (!value.ok() && !absl::IsResourceExhausted(value.status()))
        return value.status();
      const auto record = value.ok()
                              ? kind_.parse(value->bytes)
                              : absl::StatusOr<CaffeRecord>(value.status());
      // The job handles bad samples, unless all are bad.
      absl::Status status = Annotate(
          record.status(), fmt::format("{}: value {}", file.name(), at));
      if (!status.ok())
        error_.Update(status);
      else
        RETURN_IF_ERROR(Take(*record, file.name(), at));
    }
    return absl::OkStatus();
  }

  // Returns the types of image and label.
  absl::StatusOr<std::vector<ValueType>> Types() const {
    if (image_) return std::vector<ValueType>{*image_, label_};
    return error_;
  }

 private:
  absl::Status Take(const CaffeRecord& record, std::string_view name,
                    uint64_t at) {
    const ValueType image = CaffeImageType(record);
    const ValueType label{ValueType::Kind::kTensor, record.label_type, {}};
    if (!image_) {
      image_ = image;
      label_ = label;
    }
    if (Widen(image, &*image_) && label == label_) return absl::OkStatus();
    return FailedPrecondition(
        "{}: value {} is of another kind than the first: encoded and raw "
        "images, numbers of channels or types of labels are mixed",
        name, at);
  }

  const LmdbKind& kind_;
  const SourceLimits& limits_;
  std::optional<ValueType> image_;
  ValueType label_;
  absl::Status error_;
};

absl::Status AddFile(const std::string& path, const SourceLimits& limits,
                     Prober* prober, LmdbIndex* proto) {
  ASSIGN_OR_RETURN(const std::string uri, DataFileOf(path, limits));
  ASSIGN_OR_RETURN(const OpenedFile file, StorageOf(limits).Open(uri));
  ASSIGN_OR_RETURN(const LmdbListing listing, ListLmdb(*file, limits));
  RETURN_IF_ERROR(prober->Probe(*file, listing.values));
  LmdbFile& to = *proto->add_files();
  *to.mutable_file() = RecordFileOf(uri, *file);
  to.set_transaction(listing.transaction);
  uint64_t end = 0;
  for (const LmdbValue& value : listing.values) {
    to.add_gaps(static_cast<int64_t>(value.offset - end));
    to.add_sizes(static_cast<uint32_t>(value.bytes));
    end = value.offset + value.bytes;
  }
  return absl::OkStatus();
}

}  // namespace

LmdbBytes NewLmdbBytes(const LmdbValue& where) {
  LmdbBytes value{
      .memory = NewSampleBytes(LabelPlace(where.bytes) + sizeof(int32_t)),
      .bytes = {}};
  value.bytes = {value.memory.get(), where.bytes};
  return value;
}

absl::Status LmdbValueTooLarge(std::string_view file, const LmdbValue& where,
                               const SourceLimits& limits) {
  return ResourceExhausted("{}: a value of {} bytes, the limit is {}", file,
                           where.bytes, limits.max_file_bytes);
}

absl::StatusOr<LmdbBytes> ReadLmdbValue(const StorageFile& file,
                                        const LmdbValue& where,
                                        const SourceLimits& limits) {
  if (where.bytes > limits.max_file_bytes)
    return LmdbValueTooLarge(file.name(), where, limits);
  LmdbBytes value = NewLmdbBytes(where);
  RETURN_IF_ERROR(file.ReadAt(where.offset, {value.memory.get(), where.bytes}));
  return value;
}

ValueType CaffeImageType(const CaffeRecord& record) {
  if (record.encoded) return {ValueType::Kind::kEncoded, DType::kUint8, {}};
  return {ValueType::Kind::kTensor,
          DType::kUint8,
          {record.height, record.width, record.channels}};
}

Digest LmdbFingerprint(const LmdbKind& kind, const LmdbIndex& index) {
  Sha256 hash;
  hash.UpdateField("leat.lmdb.1").UpdateField(kind.op);
  for (const LmdbFile& file : index.files()) {
    HashRecordFile(file.file(), &hash);
    hash.UpdateU64(file.transaction());
    hash.UpdateU64(static_cast<uint64_t>(file.sizes_size()));
    for (const int64_t gap : file.gaps())
      hash.UpdateU64(static_cast<uint64_t>(gap));
    for (const uint32_t size : file.sizes()) hash.UpdateU64(size);
  }
  for (const auto& type : index.types()) {
    hash.UpdateU64(type.encoded()).UpdateU64(type.dtype());
    for (const int64_t size : type.shape())
      hash.UpdateU64(static_cast<uint64_t>(size));
  }
  return hash.Finish();
}

absl::StatusOr<BuiltIndex> BuildLmdbIndex(const LmdbKind& kind,
                                          const Node& reader,
                                          const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   TextsArg(reader, "path"));
  if (paths.empty() || paths.front().empty() || paths.size() > kMaxLmdbFiles)
    return InvalidArgument(
        "{}: path: {} paths, want 1 to {} folders with a data.mdb", kind.op,
        paths.size(), kMaxLmdbFiles);
  LmdbIndex proto;
  Prober prober(kind, limits);
  BuiltIndex index;
  uint64_t samples = 0;
  ContentHash content(kind.op, paths);
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(AddFile(path, limits, &prober, &proto));
    const LmdbFile& added = proto.files(proto.files_size() - 1);
    index.bytes += added.file().bytes();
    samples += static_cast<uint64_t>(added.sizes_size());
    content.AddFile(added.file().uri(), added.file().bytes())
        .AddNumber(added.transaction())
        .AddNumbers(added.gaps())
        .AddNumbers(added.sizes());
  }
  if (samples == 0)
    return NotFound("{}: no values in it", RedactedUri(paths.front()));
  ASSIGN_OR_RETURN(index.types, prober.Types());
  for (const ValueType& type : index.types) {
    auto& to = *proto.add_types();
    to.set_encoded(type.kind == ValueType::Kind::kEncoded);
    to.set_dtype(static_cast<uint32_t>(type.dtype));
    to.mutable_shape()->Assign(type.shape.begin(), type.shape.end());
  }
  if (proto.ByteSizeLong() > limits.max_index_bytes)
    return ResourceExhausted("{}: the index of {} values is over {} bytes",
                             RedactedUri(paths.front()), samples,
                             limits.max_index_bytes);
  index.blob = proto.SerializeAsString();
  index.fingerprint = LmdbFingerprint(kind, proto);
  RETURN_IF_ERROR(FinishIndex(paths.front(), samples, limits, &index));
  content.Finish(&index);
  return index;
}

}  // namespace leat::worker
