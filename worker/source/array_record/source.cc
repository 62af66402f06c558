// SPDX-License-Identifier: Apache-2.0
//
// An opened index: 8 bytes per chunk. Keeps the most recently used files open.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/hash.h"
#include "core/redaction.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/array_record/array_record.h"
#include "worker/source/array_record/riegeli_chunk.h"
#include "worker/source/file_set.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/loader_args.h"
#include "worker/source/packed/shard_cache.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr size_t kOpenFiles = 256;
constexpr size_t kKeptChunks = 4096;

struct OpenFile {
  std::shared_ptr<const StorageFile> file;
  uint64_t bytes() const { return 1; }
};

class ArrayRecordSource final : public FormatSource {
 public:
  ArrayRecordSource(ValueType type, const SourceLimits& limits)
      : type_(std::move(type)),
        storage_(StorageOf(limits)),
        max_file_bytes_(limits.max_file_bytes),
        open_(kOpenFiles, kOpenFiles),
        chunks_(limits.max_unpacked_bytes, kKeptChunks, limits.unpacked) {}

  absl::Status Load(const Node& reader, std::string_view blob);

  uint64_t num_samples() const override { return files_.back().end; }
  std::string Describe(uint64_t sample) const override {
    const size_t file = FileOf(sample);
    return fmt::format("{} record {}", set_.Shown(file), sample - Begin(file));
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const size_t file = FileOf(sample);
    return RecordPlace{.file = set_.Shown(file), .index = sample - Begin(file)};
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override;

 private:
  struct File {
    uint64_t end = 0;  // samples up to and including it
    uint64_t group = 0;
    uint64_t first_chunk = 0;  // in offsets_
  };
  absl::Status AddFile(const stored::v1::ArrayRecordFile& proto);
  size_t FileOf(uint64_t sample) const {
    return static_cast<size_t>(
        std::upper_bound(
            files_.begin(), files_.end(), sample,
            [](uint64_t s, const File& each) { return s < each.end; }) -
        files_.begin());
  }
  uint64_t Begin(size_t file) const {
    return file == 0 ? 0 : files_[file - 1].end;
  }
  absl::StatusOr<std::shared_ptr<const RiegeliRecords>> ReadChunk(
      size_t file, uint64_t chunk) const;
  // Checks that the bytes are elements of the type, and sets an open shape.
  absl::Status SetShape(StoredField* field) const;

  const ValueType type_;
  const Storage& storage_;
  const uint64_t max_file_bytes_;
  FileSet set_;
  std::vector<File> files_;
  std::vector<uint64_t> offsets_;  // of chunks, file after file
  mutable ShardCache<OpenFile> open_;
  mutable ShardCache<RiegeliRecords> chunks_;  // of those with several records
};

absl::Status ArrayRecordSource::AddFile(
    const stored::v1::ArrayRecordFile& proto) {
  const uint64_t begin = files_.empty() ? 0 : files_.back().end;
  const uint64_t records = proto.records();
  const uint64_t group = proto.group();
  // There is one offset per chunk, and the end of the last.
  if (records == 0 || group == 0 || records > kMaxSamples - begin ||
      (records - 1) / group + 2 != static_cast<uint64_t>(proto.offsets_size()))
    return DataLoss("{}: {} records in groups of {}, {} offsets",
                    RedactedUri(proto.file().name()), records, group,
                    proto.offsets_size());
  RETURN_IF_ERROR(set_.Add(proto.file().name(), proto.file().bytes(),
                           proto.file().identity()));
  files_.push_back(
      {.end = begin + records, .group = group, .first_chunk = offsets_.size()});
  uint64_t offset = 0;
  for (const uint64_t step : proto.offsets()) {
    if (step > proto.file().bytes() - offset)
      return DataLoss("{}: a chunk after its {} bytes",
                      RedactedUri(proto.file().name()), proto.file().bytes());
    offsets_.push_back(offset += step);
  }
  offsets_.pop_back();
  return absl::OkStatus();
}

absl::Status ArrayRecordSource::Load(const Node& reader,
                                     std::string_view blob) {
  BlobReader in(blob);
  stored::v1::ArrayRecordHead head;
  RETURN_IF_ERROR(NextHead(reader, &in, &head));
  Sha256 hash;
  hash.UpdateField("leat.array_record.1").UpdateField(head.reader());
  stored::v1::ArrayRecordFile file;
  while (!in.done()) {
    RETURN_IF_ERROR(in.Next(&file));
    RETURN_IF_ERROR(AddFile(file));
    hash.UpdateField(file.SerializeAsString());
  }
  if (files_.empty()) return DataLoss("it lists no files");
  fingerprint_ = hash.Finish();
  set_.ShrinkToFit();
  offsets_.shrink_to_fit();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const RiegeliRecords>>
ArrayRecordSource::ReadChunk(size_t file, uint64_t chunk) const {
  ASSIGN_OR_RETURN(
      const auto opened,
      open_.Get(file, [&]() -> absl::StatusOr<std::shared_ptr<const OpenFile>> {
        auto made = std::make_shared<OpenFile>();
        ASSIGN_OR_RETURN(made->file, set_.Open(storage_, file));
        return made;
      }));
  ASSIGN_OR_RETURN(
      RiegeliRecords records,
      ReadRiegeliChunk(*opened->file, offsets_[chunk], max_file_bytes_));
  return std::make_shared<const RiegeliRecords>(std::move(records));
}

absl::Status ArrayRecordSource::SetShape(StoredField* field) const {
  if (type_.kind == ValueType::Kind::kEncoded) return absl::OkStatus();
  if (IsOpen(type_)) {
    field->shape = type_.shape;
    field->shape[0] = static_cast<int64_t>(
        field->bytes.size() / (StoredElements(type_) * SizeOf(type_.dtype)));
  }
  return CheckStored(type_, field->bytes, field->shape);
}

absl::StatusOr<StoredSample> ArrayRecordSource::Read(uint64_t sample) const {
  const size_t file = FileOf(sample);
  const uint64_t group = files_[file].group;
  const uint64_t record = sample - Begin(file);
  const uint64_t chunk = files_[file].first_chunk + record / group;
  const auto read = [&] { return ReadChunk(file, chunk); };
  absl::StatusOr<std::shared_ptr<const RiegeliRecords>> records =
      group == 1 ? read() : chunks_.Get(chunk, read);
  if (!records.ok()) return Annotate(records.status(), Describe(sample));
  const uint64_t expected =
      std::min(group, files_[file].end - Begin(file) - record / group * group);
  if ((*records)->ends.size() != expected)
    return DataLoss("{}: its chunk has {} records, the footer says {}",
                    Describe(sample), (*records)->ends.size(), expected);
  StoredSample stored;
  stored.fields.resize(1);
  std::span<const std::byte> bytes = (**records)[record % group];
  if (group == 1) {
    stored.owner = *std::move(records);
  } else {  // so that a kept sample does not keep its chunk
    auto copy = std::make_shared_for_overwrite<std::byte[]>(bytes.size());
    if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
    bytes = {copy.get(), bytes.size()};
    stored.owner = std::move(copy);
  }
  stored.fields[0].bytes = bytes;
  if (const absl::Status fits = SetShape(&stored.fields[0]); !fits.ok())
    return Annotate(fits, Describe(sample));
  return stored;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> OpenArrayRecord(
    const Node& reader, std::string_view blob, const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const std::string text, TextArg(reader, "type", "encoded"));
  ASSIGN_OR_RETURN(ValueType type, ParseFieldType(text));
  return Loaded(std::make_unique<ArrayRecordSource>(std::move(type), limits),
                reader.op, reader, blob);
}

const SourceFormat kArrayRecordFormat = {
    "readers.array_record", BuildArrayRecordIndex, OpenArrayRecord};

}  // namespace leat::worker
