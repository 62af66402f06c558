// SPDX-License-Identifier: Apache-2.0
//
// An opened index, and the rows of its files.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/hash.h"
#include "core/redaction.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/file_set.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/parquet/pages.h"
#include "worker/source/parquet/parquet.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxGroups = uint64_t{1} << 32;
constexpr uint64_t kAlignment = 8;  // of fields in a sample

// A value on its way into a sample.
struct PlacedValue {
  ParquetPages::Place at;
  uint64_t bytes = 0;
};

uint64_t Aligned(uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

class ParquetSource final : public FormatSource {
 public:
  ParquetSource(ParquetOptions options, const ParquetLibrary& library,
                const SourceLimits& limits)
      : options_(std::move(options)),
        library_(library),
        limits_(limits),
        pages_(
            &groups_, options_.columns,
            [this](size_t output, const ParquetColumn& column) {
              return CheckParquetType(column, options_.types[output]);
            },
            library, limits) {}

  absl::Status Load(const Node& reader, std::string_view blob);

  uint64_t num_samples() const override { return groups_.groups.back().end; }
  std::string Describe(uint64_t sample) const override {
    const uint32_t file = FileOf(sample);
    return fmt::format("{} row {}", groups_.files.Shown(file),
                       sample - first_samples_[file]);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const uint32_t file = FileOf(sample);
    return RecordPlace{.file = groups_.files.Shown(file),
                       .index = sample - first_samples_[file]};
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override;
  absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string> names) const override {
    return OpenParquetColumns(groups_, options_, names, library_, limits_);
  }

 private:
  absl::Status AddFile(const stored::v1::ParquetFile& proto);
  uint32_t FileOf(uint64_t sample) const {
    return groups_.groups[groups_.GroupOf(sample)].file;
  }
  StoredSample Convert(const std::vector<PlacedValue>& values) const;

  const ParquetOptions options_;
  const ParquetLibrary& library_;
  const SourceLimits limits_;
  ParquetGroups groups_;
  std::vector<uint64_t> first_samples_;  // of each file
  const ParquetPages pages_;
};

absl::Status ParquetSource::AddFile(const stored::v1::ParquetFile& proto) {
  std::vector<ParquetGroups::Group>& groups = groups_.groups;
  uint64_t end = groups.empty() ? 0 : groups.back().end;
  first_samples_.push_back(end);
  if (static_cast<uint64_t>(proto.rows_size()) > kMaxGroups - groups.size())
    return ResourceExhausted("it lists more than {} row groups", kMaxGroups);
  for (int i = 0; i < proto.rows_size(); ++i) {
    const uint64_t rows = proto.rows(i);
    if (rows == 0) continue;
    if (rows > limits_.max_files - end)
      return ResourceExhausted("it lists more than {} rows: the limit",
                               limits_.max_files);
    end += rows;
    groups.push_back({.end = end,
                      .file = static_cast<uint32_t>(groups_.files.count()),
                      .ordinal = static_cast<uint32_t>(i)});
  }
  return groups_.files.Add(proto.file().name(), proto.file().bytes(),
                           proto.file().identity());
}

absl::Status ParquetSource::Load(const Node& reader, std::string_view blob) {
  BlobReader in(blob);
  stored::v1::ParquetHead head;
  RETURN_IF_ERROR(NextHead(reader, &in, &head));
  Sha256 hash;
  hash.UpdateField("leat.parquet.1").UpdateField(head.reader());
  stored::v1::ParquetFile file;
  while (!in.done()) {
    RETURN_IF_ERROR(in.Next(&file));
    RETURN_IF_ERROR(AddFile(file));
    hash.UpdateField(file.SerializeAsString());
  }
  if (groups_.groups.empty()) return DataLoss("it lists no rows");
  fingerprint_ = hash.Finish();
  groups_.files.ShrinkToFit();
  groups_.groups.shrink_to_fit();
  return absl::OkStatus();
}

// Copies to separate memory, so that a kept sample does not keep pages.
StoredSample ParquetSource::Convert(
    const std::vector<PlacedValue>& values) const {
  uint64_t total = 0;
  for (const PlacedValue& value : values) total += Aligned(value.bytes);
  auto data = std::make_shared_for_overwrite<std::byte[]>(total);
  StoredSample stored;
  stored.fields.resize(values.size());
  uint64_t begin = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueType& type = options_.types[i];
    const std::span<std::byte> to(data.get() + begin, values[i].bytes);
    const ParquetPages::Place& at = values[i].at;
    ConvertParquet(*at.unit->unit, at.row, *at.column, type, to);
    stored.fields[i].bytes = to;
    if (IsOpen(type)) {
      stored.fields[i].shape = type.shape;
      stored.fields[i].shape[0] = static_cast<int64_t>(
          to.size() / SizeOf(type.dtype) / StoredElements(type));
    }
    begin += Aligned(to.size());
  }
  stored.owner = std::move(data);
  return stored;
}

absl::StatusOr<StoredSample> ParquetSource::Read(uint64_t sample) const {
  const size_t group = groups_.GroupOf(sample);
  const auto file = pages_.Open(group);
  if (!file.ok()) return Annotate(file.status(), Describe(sample));
  std::vector<PlacedValue> values(options_.columns.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto read = [&]() -> absl::Status {
      PlacedValue& value = values[i];
      ASSIGN_OR_RETURN(value.at, pages_.Find(**file, group, i,
                                             sample - groups_.Begin(group)));
      ASSIGN_OR_RETURN(value.bytes,
                       ParquetBytes(*value.at.unit->unit, value.at.row,
                                    *value.at.column, options_.types[i]));
      return absl::OkStatus();
    };
    if (const absl::Status status = read(); !status.ok())
      return Annotate(status, fmt::format("{} column \"{}\"", Describe(sample),
                                          options_.columns[i]));
  }
  return Convert(values);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> OpenParquet(
    const Node& reader, std::string_view blob, const SourceLimits& limits) {
  ASSIGN_OR_RETURN(ParquetOptions options, ParquetOptionsOf(reader));
  ASSIGN_OR_RETURN(const ParquetLibrary* const library, LoadParquetLibrary());
  return Loaded(
      std::make_unique<ParquetSource>(std::move(options), *library, limits),
      reader.op, reader, blob);
}

const SourceFormat kParquetFormat = {"readers.parquet", BuildParquetIndex,
                                     OpenParquet};

}  // namespace leat::worker
