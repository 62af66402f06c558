// SPDX-License-Identifier: Apache-2.0
//
// An opened index: 16 bytes per row group. Keeps the footers of the most
// recently read files, the positions of pages of their chunks, and decoded
// pages.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/hash.h"
#include "core/redaction.h"
#include "core/shapes/stored_type.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/file_set.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/packed/shard_cache.h"
#include "worker/source/parquet/parquet.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr size_t kOpenFiles = 256;
constexpr size_t kOpenChunks = 4096;
constexpr size_t kKeptUnits = 65536;
constexpr uint64_t kUnitBits = 20;  // of a cache's key
constexpr uint64_t kMaxGroups = uint64_t{1} << 32;
constexpr uint64_t kAlignment = 8;  // of fields in a sample

// A file that is being read.
struct OpenFile {
  std::shared_ptr<const StoredFile> file;
  std::shared_ptr<const ParquetFooter> footer;
  std::vector<size_t> columns;  // of the footer; one per output
  uint64_t bytes() const { return footer->bytes; }
};

struct OpenChunk {
  std::unique_ptr<const ParquetChunk> chunk;
  uint64_t bytes() const { return chunk->bytes; }
};

struct Unit {
  std::unique_ptr<const ParquetUnit> unit;
  uint64_t bytes() const { return unit->bytes; }
};

// A value on its way into a sample.
struct UnitValue {
  std::shared_ptr<const Unit> unit;
  const ParquetColumn* column = nullptr;
  uint64_t row = 0;  // of the unit
  uint64_t bytes = 0;
};

uint64_t Aligned(uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

class ParquetSource final : public Source {
 public:
  ParquetSource(ParquetOptions options, const ParquetLibrary& library,
                const SourceLimits& limits)
      : options_(std::move(options)),
        library_(library),
        storage_(StorageOf(limits)),
        bounds_(BoundsOf(limits)),
        max_samples_(limits.max_files),
        open_(limits.max_unpacked_bytes / 4, kOpenFiles, limits.unpacked),
        chunks_(limits.max_unpacked_bytes / 4, kOpenChunks, limits.unpacked),
        units_(limits.max_unpacked_bytes / 2, kKeptUnits, limits.unpacked) {}

  absl::Status Load(const Node& reader, std::string_view blob);

  uint64_t num_samples() const override { return groups_.back().end; }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    const Group& group = groups_[GroupOf(sample)];
    return fmt::format("{} row {}", set_.Shown(group.file),
                       sample - first_samples_[group.file]);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const Group& group = groups_[GroupOf(sample)];
    return RecordPlace{.file = set_.Shown(group.file),
                       .index = sample - first_samples_[group.file]};
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override;

 private:
  struct Group {
    uint64_t end = 0;  // samples up to and including it
    uint32_t file = 0;
    uint32_t ordinal = 0;  // in the file
  };
  absl::Status AddFile(const stored::v1::ParquetFile& proto);
  size_t GroupOf(uint64_t sample) const {
    return static_cast<size_t>(
        std::upper_bound(
            groups_.begin(), groups_.end(), sample,
            [](uint64_t s, const Group& each) { return s < each.end; }) -
        groups_.begin());
  }
  absl::StatusOr<std::shared_ptr<const OpenFile>> OpenGroup(
      const Group& group) const;
  absl::StatusOr<UnitValue> Find(const OpenFile& file, size_t group,
                                 size_t output, uint64_t row) const;
  StoredSample Convert(const std::vector<UnitValue>& values) const;

  const ParquetOptions options_;
  const ParquetLibrary& library_;
  const Storage& storage_;
  const ParquetBounds bounds_;
  const uint64_t max_samples_;
  Digest fingerprint_{};
  FileSet set_;
  std::vector<uint64_t> first_samples_;  // of each file
  std::vector<Group> groups_;            // those that have rows
  mutable ShardCache<OpenFile> open_;
  mutable ShardCache<OpenChunk> chunks_;
  mutable ShardCache<Unit> units_;
};

absl::Status ParquetSource::AddFile(const stored::v1::ParquetFile& proto) {
  uint64_t end = groups_.empty() ? 0 : groups_.back().end;
  first_samples_.push_back(end);
  if (static_cast<uint64_t>(proto.rows_size()) > kMaxGroups - groups_.size())
    return ResourceExhausted("it lists more than {} row groups", kMaxGroups);
  for (int i = 0; i < proto.rows_size(); ++i) {
    const uint64_t rows = proto.rows(i);
    if (rows == 0) continue;
    if (rows > max_samples_ - end)
      return ResourceExhausted("it lists more than {} rows: the limit",
                               max_samples_);
    end += rows;
    groups_.push_back({.end = end,
                       .file = static_cast<uint32_t>(set_.count()),
                       .ordinal = static_cast<uint32_t>(i)});
  }
  return set_.Add(proto.file().name(), proto.file().bytes(),
                  proto.file().identity());
}

absl::Status ParquetSource::Load(const Node& reader, std::string_view blob) {
  BlobReader in(blob);
  stored::v1::ParquetHead head;
  RETURN_IF_ERROR(in.Next(&head));
  if (head.reader() != CanonicalText(reader))
    return DataLoss("it is of another reader: {}", Redacted(head.reader()));
  Sha256 hash;
  hash.UpdateField("leat.parquet.1").UpdateField(head.reader());
  stored::v1::ParquetFile file;
  while (!in.done()) {
    RETURN_IF_ERROR(in.Next(&file));
    RETURN_IF_ERROR(AddFile(file));
    hash.UpdateField(file.SerializeAsString());
  }
  if (groups_.empty()) return DataLoss("it lists no rows");
  fingerprint_ = hash.Finish();
  set_.ShrinkToFit();
  groups_.shrink_to_fit();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const OpenFile>> ParquetSource::OpenGroup(
    const Group& group) const {
  ASSIGN_OR_RETURN(
      const auto opened,
      open_.Get(group.file,
                [&]() -> absl::StatusOr<std::shared_ptr<const OpenFile>> {
                  auto made = std::make_shared<OpenFile>();
                  ASSIGN_OR_RETURN(made->file, set_.Open(storage_, group.file));
                  const StoredParquet input(*made->file);
                  ParquetError error;
                  made->footer = library_.open(input, bounds_, &error);
                  if (made->footer == nullptr) return input.StatusOf(error);
                  for (size_t i = 0; i < options_.columns.size(); ++i) {
                    ASSIGN_OR_RETURN(
                        const size_t column,
                        FindParquetColumn(*made->footer, options_.columns[i]));
                    RETURN_IF_ERROR(CheckParquetType(
                        made->footer->columns[column], options_.types[i]));
                    made->columns.push_back(column);
                  }
                  return made;
                }));
  // The index may be of another file.
  const auto& rows = opened->footer->group_rows;
  const size_t index = static_cast<size_t>(&group - groups_.data());
  const uint64_t begin = index == 0 ? 0 : groups_[index - 1].end;
  if (group.ordinal >= rows.size() || rows[group.ordinal] != group.end - begin)
    return DataLoss("row group {} is not as the index has it", group.ordinal);
  return opened;
}

// The caches' keys: groups, then columns, then units.
absl::StatusOr<UnitValue> ParquetSource::Find(const OpenFile& file,
                                              size_t group, size_t output,
                                              uint64_t row) const {
  const StoredParquet input(*file.file);
  const uint64_t key = group * options_.columns.size() + output;
  ASSIGN_OR_RETURN(
      const auto opened,
      chunks_.Get(
          key, [&]() -> absl::StatusOr<std::shared_ptr<const OpenChunk>> {
            auto made = std::make_shared<OpenChunk>();
            ParquetError error;
            made->chunk = file.footer->OpenChunk(input, groups_[group].ordinal,
                                                 file.columns[output], &error);
            if (made->chunk == nullptr) return input.StatusOf(error);
            return made;
          }));
  const std::vector<uint64_t>& ends = opened->chunk->ends;
  const auto unit = static_cast<size_t>(
      std::upper_bound(ends.begin(), ends.end(), row) - ends.begin());
  UnitValue value;
  ASSIGN_OR_RETURN(
      value.unit,
      units_.Get(key << kUnitBits | unit,
                 [&]() -> absl::StatusOr<std::shared_ptr<const Unit>> {
                   auto made = std::make_shared<Unit>();
                   ParquetError error;
                   made->unit = opened->chunk->Decode(input, unit, &error);
                   if (made->unit == nullptr) return input.StatusOf(error);
                   return made;
                 }));
  value.column = &file.footer->columns[file.columns[output]];
  value.row = row - (unit == 0 ? 0 : ends[unit - 1]);
  ASSIGN_OR_RETURN(value.bytes,
                   ParquetBytes(*value.unit->unit, value.row, *value.column,
                                options_.types[output]));
  return value;
}

// Copies to separate memory, so that a kept sample does not keep pages.
StoredSample ParquetSource::Convert(
    const std::vector<UnitValue>& values) const {
  uint64_t total = 0;
  for (const UnitValue& value : values) total += Aligned(value.bytes);
  auto data = std::make_shared_for_overwrite<std::byte[]>(total);
  StoredSample stored;
  stored.fields.resize(values.size());
  uint64_t at = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueType& type = options_.types[i];
    const std::span<std::byte> to(data.get() + at, values[i].bytes);
    ConvertParquet(*values[i].unit->unit, values[i].row, *values[i].column,
                   type, to);
    stored.fields[i].bytes = to;
    if (IsOpen(type)) {
      stored.fields[i].shape = type.shape;
      stored.fields[i].shape[0] = static_cast<int64_t>(
          to.size() / SizeOf(type.dtype) / StoredElements(type));
    }
    at += Aligned(to.size());
  }
  stored.owner = std::move(data);
  return stored;
}

absl::StatusOr<StoredSample> ParquetSource::Read(uint64_t sample) const {
  const size_t group = GroupOf(sample);
  const uint64_t row = sample - (group == 0 ? 0 : groups_[group - 1].end);
  const auto file = OpenGroup(groups_[group]);
  if (!file.ok()) return Annotate(file.status(), Describe(sample));
  std::vector<UnitValue> values;
  values.reserve(options_.columns.size());
  for (size_t i = 0; i < options_.columns.size(); ++i) {
    auto value = Find(**file, group, i, row);
    if (!value.ok())
      return Annotate(value.status(),
                      fmt::format("{} column \"{}\"", Describe(sample),
                                  options_.columns[i]));
    values.push_back(*std::move(value));
  }
  return Convert(values);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> OpenParquet(
    const Node& reader, std::string_view blob, const SourceLimits& limits) {
  ASSIGN_OR_RETURN(ParquetOptions options, ParquetOptionsOf(reader));
  ASSIGN_OR_RETURN(const ParquetLibrary* const library, LoadParquetLibrary());
  auto source =
      std::make_unique<ParquetSource>(std::move(options), *library, limits);
  RETURN_IF_ERROR(Annotate(source->Load(reader, blob),
                           fmt::format("the index of {}", reader.op)));
  return source;
}

const SourceFormat kParquetFormat = {"readers.parquet", BuildParquetIndex,
                                     OpenParquet};

}  // namespace leat::worker
