// SPDX-License-Identifier: Apache-2.0
//
// readers.cifar10 and readers.cifar100: records with one or two bytes of label
// and three planes of 32 x 32 bytes.
//
//   CIFAR-10    label, red 1024, green 1024, blue 1024
//   CIFAR-100   coarse label, fine label, planes
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/redaction.h"
#include "core/status.h"
#include "worker/source/content_hash.h"
#include "worker/source/file_set.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/loader_args.h"
#include "worker/source/record_file.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

using stored::v1::CifarIndex;

constexpr uint64_t kPlane = 32 * 32, kImage = 3 * kPlane;
constexpr size_t kMaxFiles = 4096;

struct Kind {
  std::string_view op;
  size_t labels;  // bytes before the planes
  // The greatest value of each label, in the order of the file.
  std::array<int, 2> last;

  uint64_t record_bytes() const { return labels + kImage; }
};

constexpr Kind kCifar10 = {"readers.cifar10", 1, {9, 0}};
constexpr Kind kCifar100 = {"readers.cifar100", 2, {19, 99}};

Digest FingerprintOf(const Kind& kind, const CifarIndex& index) {
  Sha256 hash;
  hash.UpdateField("leat.cifar.1").UpdateU64(kind.labels);
  for (const auto& file : index.files()) HashRecordFile(file, &hash);
  return hash.Finish();
}

class CifarSource final : public FormatSource {
 public:
  explicit CifarSource(const Kind& kind) : kind_(kind) {}

  absl::Status Load(const CifarIndex& index, const SourceLimits& limits) {
    if (static_cast<size_t>(index.files_size()) > kMaxFiles)
      return DataLoss("it names {} files, want at most {}", index.files_size(),
                      kMaxFiles);
    uint64_t records = 0;
    for (const auto& record : index.files()) {
      ASSIGN_OR_RETURN(OpenedFile file, OpenRecordFile(record, limits));
      records += file->size() / kind_.record_bytes();
      files_.push_back(std::move(file));
      names_.push_back(RedactedUri(record.uri()));
      ends_.push_back(records);
    }
    if (records == 0) return DataLoss("it has no records");
    fingerprint_ = FingerprintOf(kind_, index);
    return absl::OkStatus();
  }

  uint64_t num_samples() const override { return ends_.back(); }
  std::string Describe(uint64_t sample) const override {
    const Place place = PlaceOf(sample);
    return fmt::format("{}: record {}", files_[place.file]->name(),
                       place.record);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const Place place = PlaceOf(sample);
    return RecordPlace{.file = names_[place.file],
                       .offset = place.record * kind_.record_bytes(),
                       .bytes = kind_.record_bytes(),
                       .index = place.record};
  }

  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    const Place place = PlaceOf(sample);
    std::array<std::byte, 2 + kImage> record;
    const std::span<std::byte> bytes(record.data(), kind_.record_bytes());
    RETURN_IF_ERROR(
        files_[place.file]->ReadAt(place.record * kind_.record_bytes(), bytes));
    SampleBytes own = NewSampleBytes(kImage + kind_.labels * sizeof(int32_t));
    const std::byte* const planes = record.data() + kind_.labels;
    for (size_t i = 0; i < kPlane; ++i)
      for (size_t channel = 0; channel < 3; ++channel)
        own[3 * i + channel] = planes[channel * kPlane + i];
    StoredSample stored;
    stored.fields.resize(1 + kind_.labels);
    stored.fields[0].bytes = {own.get(), kImage};
    for (size_t i = 0; i < kind_.labels; ++i) {
      const int32_t label = static_cast<int32_t>(record[i]);
      if (label > kind_.last[i])
        return DataLoss("label {}, want 0 to {}", label, kind_.last[i]);
      // The finest label, which comes last, is returned first.
      const size_t output = kind_.labels - i;
      std::byte* const to = own.get() + kImage + (output - 1) * sizeof(int32_t);
      std::memcpy(to, &label, sizeof label);
      stored.fields[output].bytes = {to, sizeof label};
    }
    stored.owner = std::move(own);
    return stored;
  }

 private:
  struct Place {
    size_t file;
    uint64_t record;
  };
  Place PlaceOf(uint64_t sample) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), sample);
    const size_t file = static_cast<size_t>(end - ends_.begin());
    return {file, sample - (file == 0 ? 0 : ends_[file - 1])};
  }

  // Constant after Load.
  const Kind& kind_;
  std::vector<OpenedFile> files_;
  std::vector<std::string> names_;  // of the files, as the job names them
  std::vector<uint64_t> ends_;      // of each file: one after its last sample
};

// Returns whether `path` may be a folder, by what Stat of it returned: a local
// folder is refused, one in a bucket is no key, and a web server has none.
bool MayBeFolder(const std::string& path, const absl::Status& stat) {
  if (path.ends_with('/')) return true;
  if (IsLocalUri(path)) return absl::IsFailedPrecondition(stat);
  const std::string scheme = SchemeOf(path);
  return absl::IsNotFound(stat) && scheme != "http" && scheme != "https";
}

// Returns `path` itself, or the matching files in it if it is a folder.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path,
                                                 const std::string& prefix,
                                                 const SourceLimits& limits) {
  const Storage& storage = StorageOf(limits);
  const absl::Status stat = storage.Stat(path).status();
  if (stat.ok()) return std::vector<std::string>{path};
  if (!MayBeFolder(path, stat)) return stat;
  ASSIGN_OR_RETURN(const std::vector<StoredObject> found,
                   storage.List(path, limits.cancelled));
  std::vector<std::string> files;
  for (const StoredObject& object : found)
    if (object.name.starts_with(prefix) && object.name.ends_with(".bin") &&
        object.name.find('/') == std::string::npos) {
      RETURN_IF_ERROR(Annotate(CheckName(object.name), RedactedUri(path)));
      files.push_back(JoinUri(path, object.name));
    }
  if (files.empty())
    return NotFound("{}: no files \"{}*.bin\" in it", RedactedUri(path),
                    prefix);
  return files;
}

absl::StatusOr<BuiltIndex> Build(const Kind& kind, const Node& reader,
                                 const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   TextsArg(reader, "paths"));
  ASSIGN_OR_RETURN(const std::string prefix, TextArg(reader, "prefix"));
  if (paths.empty() || paths.front().empty())
    return InvalidArgument("{}: paths: want files or folders", kind.op);
  CifarIndex proto;
  BuiltIndex index;
  ContentHash content(kind.op, paths);
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::vector<std::string> uris,
                     FilesOf(path, prefix, limits));
    for (const std::string& uri : uris) {
      RETURN_IF_ERROR(CheckCancelled(limits, RedactedUri(uri)));
      ASSIGN_OR_RETURN(const OpenedFile file, StorageOf(limits).Open(uri));
      if (file->size() == 0 || file->size() % kind.record_bytes() != 0)
        return DataLoss("{}: {} bytes, want a multiple of {}: a record",
                        file->name(), file->size(), kind.record_bytes());
      *proto.add_files() = RecordFileOf(uri, *file);
      content.AddFile(uri, file->size());
      index.bytes += file->size();
    }
    if (static_cast<size_t>(proto.files_size()) > kMaxFiles)
      return ResourceExhausted("{}: {} files, the limit is {}", kind.op,
                               proto.files_size(), kMaxFiles);
  }
  index.blob = proto.SerializeAsString();
  index.fingerprint = FingerprintOf(kind, proto);
  RETURN_IF_ERROR(FinishIndex(paths.front(), index.bytes / kind.record_bytes(),
                              limits, &index));
  content.Finish(&index);
  return index;
}

absl::StatusOr<std::unique_ptr<Source>> Open(const Kind& kind,
                                             std::string_view blob,
                                             const SourceLimits& limits) {
  CifarIndex index;
  if (!index.ParseFromArray(blob.data(), static_cast<int>(blob.size())))
    return DataLoss("the index of {} is malformed", kind.op);
  return Loaded(std::make_unique<CifarSource>(kind), kind.op, index, limits);
}

template <const Kind& kKind>
constexpr SourceFormat FormatOf() {
  return {kKind.op,
          [](const Node& reader, const SourceLimits& limits) {
            return Build(kKind, reader, limits);
          },
          [](const Node&, std::string_view blob, const SourceLimits& limits) {
            return Open(kKind, blob, limits);
          }};
}

}  // namespace

const SourceFormat kCifar10Format = FormatOf<kCifar10>();
const SourceFormat kCifar100Format = FormatOf<kCifar100>();

}  // namespace leat::worker
