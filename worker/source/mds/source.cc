// SPDX-License-Identifier: Apache-2.0
//
// An opened index: 40 bytes and two texts per shard. Keeps the sample offsets
// of the most recently read shards, and the whole of those that had to be
// unpacked. From others, samples that are asked for together come together.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/hash.h"
#include "core/redaction.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/file_set.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/mds/mds.h"
#include "worker/source/packed/packed_reader.h"
#include "worker/source/packed/shard_cache.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxSamples = uint64_t{1} << 48;
constexpr size_t kOpenShards = 256;
constexpr size_t kMdsAlignment = 8;  // of fields in a sample

struct Shard {
  uint64_t end = 0;  // samples up to and including it
  uint64_t raw_bytes = 0;
  Compression compression = Compression::kNone;
  // These belong to the unpacked file.
  std::vector<std::string> file_hashes;
  std::vector<std::string> raw_hashes;
};

// A shard that is being read.
struct OpenShard {
  std::vector<std::byte> unpacked;  // the whole file, if it is compressed
  std::vector<uint32_t> offsets;    // samples + 1
  uint64_t bytes() const { return unpacked.size() + offsets.size() * 4; }
};

uint32_t U32(const std::byte* at) {
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t Aligned(uint64_t size) {
  return (size + kMdsAlignment - 1) / kMdsAlignment * kMdsAlignment;
}

class MdsSource final : public FormatSource {
 public:
  MdsSource(MdsOptions options, const SourceLimits& limits)
      : options_(std::move(options)),
        storage_(StorageOf(limits)),
        max_file_bytes_(limits.max_file_bytes),
        reader_(&files_, &storage_, limits.one_of_many),
        open_(limits.max_unpacked_bytes, kOpenShards, limits.unpacked) {
    files_.set_folder(options_.path);
  }

  absl::Status Load(const Node& reader, std::string_view blob);

  uint64_t num_samples() const override { return shards_.back().end; }
  std::string Describe(uint64_t sample) const override {
    const size_t shard = ShardOf(sample);
    return fmt::format("{} sample {}", files_.Shown(shard),
                       sample - First(shard));
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const size_t shard = ShardOf(sample);
    return RecordPlace{.file = files_.Shown(shard),
                       .index = sample - First(shard)};
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    return std::move(ReadMany({&sample, 1}).front());
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override;

 private:
  // The bytes of a sample in its shard.
  struct Place {
    std::shared_ptr<const OpenShard> shard;
    uint64_t begin = 0, bytes = 0;
  };
  absl::Status LoadHead(const stored::v1::MdsHead& head);
  absl::Status AddShard(const stored::v1::MdsShard& proto);
  size_t ShardOf(uint64_t sample) const {
    return static_cast<size_t>(
        std::upper_bound(
            shards_.begin(), shards_.end(), sample,
            [](uint64_t s, const Shard& each) { return s < each.end; }) -
        shards_.begin());
  }
  bool IsPacked(size_t shard) const {
    return shards_[shard].compression != Compression::kNone;
  }
  uint64_t First(size_t shard) const {
    return shard == 0 ? 0 : shards_[shard - 1].end;
  }
  absl::StatusOr<std::shared_ptr<const OpenShard>> Open(size_t shard) const;
  absl::Status UnpackShard(size_t shard, OpenShard* to) const;
  absl::Status LoadOffsets(size_t shard, OpenShard* to) const;
  absl::StatusOr<Place> Find(uint64_t sample) const;
  absl::StatusOr<StoredSample> Sample(uint64_t sample,
                                      std::span<const std::byte> stored) const;
  // Returns the stored bytes of each column in a sample.
  absl::StatusOr<std::vector<std::span<const std::byte>>> Split(
      std::span<const std::byte> sample) const;
  // kInvalidArgument: a column's bytes are no value of its type; names it.
  absl::StatusOr<StoredSample> Convert(
      const std::vector<std::span<const std::byte>>& columns) const;

  const MdsOptions options_;
  const Storage& storage_;
  const uint64_t max_file_bytes_;
  std::vector<uint32_t> sizes_;    // of all columns; 0: differs
  std::vector<uint32_t> outputs_;  // indices of those that are read
  std::vector<MdsColumn> types_;   // of the outputs
  FileSet files_;
  std::vector<Shard> shards_;
  const PackedReader reader_;
  mutable ShardCache<OpenShard> open_;
};

absl::Status MdsSource::LoadHead(const stored::v1::MdsHead& head) {
  for (const stored::v1::MdsColumn& column : head.columns())
    sizes_.push_back(column.size());
  for (const uint32_t i : head.outputs()) {
    if (i >= sizes_.size()) return DataLoss("it has no column {}", i);
    const stored::v1::MdsColumn& column = head.columns(static_cast<int>(i));
    if (outputs_.size() == options_.columns.size())
      return DataLoss("it reads more than {} columns", outputs_.size());
    ASSIGN_OR_RETURN(MdsColumn parsed,
                     ParseMdsColumn(column.encoding(), column.size(),
                                    options_.TypeOf(outputs_.size())));
    outputs_.push_back(i);
    types_.push_back(std::move(parsed));
  }
  if (outputs_.size() != options_.columns.size())
    return DataLoss("it reads {} columns, want {}", outputs_.size(),
                    options_.columns.size());
  return absl::OkStatus();
}

absl::Status MdsSource::AddShard(const stored::v1::MdsShard& proto) {
  if (!StaysBelow(proto.file().name()))
    return DataLoss("it names a shard outside its folder");
  const uint64_t begin = shards_.empty() ? 0 : shards_.back().end;
  if (proto.samples() == 0 || proto.samples() > kMaxSamples - begin ||
      proto.raw_bytes() > UINT32_MAX || proto.file().bytes() > UINT32_MAX ||
      proto.compression() > static_cast<uint32_t>(Compression::kBrotli) ||
      (proto.compression() == 0 && proto.raw_bytes() != proto.file().bytes()))
    return DataLoss("{}: {} samples in {} bytes, compression {}",
                    proto.file().name(), proto.samples(), proto.raw_bytes(),
                    proto.compression());
  Shard shard;
  shard.end = begin + proto.samples();
  shard.raw_bytes = proto.raw_bytes();
  shard.compression = static_cast<Compression>(proto.compression());
  shard.file_hashes.assign(proto.file_hashes().begin(),
                           proto.file_hashes().end());
  shard.raw_hashes.assign(proto.raw_hashes().begin(), proto.raw_hashes().end());
  shards_.push_back(std::move(shard));
  return files_.Add(JoinUri(options_.path, proto.file().name()),
                    proto.file().bytes(), proto.file().identity());
}

absl::Status MdsSource::Load(const Node& reader, std::string_view blob) {
  BlobReader in(blob);
  stored::v1::MdsHead head;
  RETURN_IF_ERROR(NextHead(reader, &in, &head));
  RETURN_IF_ERROR(LoadHead(head));
  Sha256 hash;
  hash.UpdateField("leat.mds.1").UpdateField(head.SerializeAsString());
  // The first version read such columns as wider numbers: other samples.
  if (std::any_of(types_.begin(), types_.end(), [](const MdsColumn& column) {
        return IsCarried(column.type.dtype);
      }))
    hash.UpdateField("narrow");
  stored::v1::MdsShards part;
  while (!in.done()) {
    RETURN_IF_ERROR(in.Next(&part));
    if (shards_.size() + static_cast<size_t>(part.shards_size()) > kMaxShards)
      return ResourceExhausted("it lists more than {} shards", kMaxShards);
    for (const stored::v1::MdsShard& shard : part.shards()) {
      RETURN_IF_ERROR(AddShard(shard));
      hash.UpdateField(shard.SerializeAsString());
    }
  }
  if (shards_.empty()) return DataLoss("it lists no shards");
  fingerprint_ = hash.Finish();
  files_.ShrinkToFit();
  return absl::OkStatus();
}

absl::Status MdsSource::UnpackShard(size_t shard, OpenShard* to) const {
  const Shard& info = shards_[shard];
  if (info.raw_bytes > max_file_bytes_)
    return ResourceExhausted("{} has {} bytes unpacked: the limit is {}",
                             files_.Shown(shard), info.raw_bytes,
                             max_file_bytes_);
  ASSIGN_OR_RETURN(const auto file, files_.Open(storage_, shard));
  const uint64_t stored = file->size();
  if (stored != files_.size(shard))
    return DataLoss("{} has {} bytes, the index says {}", files_.Shown(shard),
                    stored, files_.size(shard));
  if (stored > max_file_bytes_)
    return ResourceExhausted("{} has {} bytes: the limit is {}",
                             files_.Shown(shard), stored, max_file_bytes_);
  std::vector<std::byte> packed(stored);
  RETURN_IF_ERROR(file->ReadAt(0, packed));
  const auto unpack = [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckHashes(info.file_hashes, packed));
    to->unpacked.resize(info.raw_bytes);
    RETURN_IF_ERROR(Unpack(info.compression, packed, to->unpacked));
    return CheckHashes(info.raw_hashes, to->unpacked);
  };
  return Annotate(unpack(), files_.Shown(shard));
}

absl::Status MdsSource::LoadOffsets(size_t shard, OpenShard* to) const {
  const uint64_t samples = shards_[shard].end - First(shard);
  const uint64_t size = shards_[shard].raw_bytes;
  const uint64_t table = 4 * (samples + 2);
  const auto malformed = [&](std::string_view what) {
    return DataLoss("{}: {} (of {} samples in {} bytes)", files_.Shown(shard),
                    what, samples, size);
  };
  if (table > size) return malformed("it is too short");
  const auto read = [&](uint64_t offset, std::span<uint32_t> into) {
    const std::span<std::byte> bytes = std::as_writable_bytes(into);
    if (!IsPacked(shard)) return reader_.Read(shard, offset, bytes);
    std::memcpy(bytes.data(), to->unpacked.data() + offset, bytes.size());
    return absl::OkStatus();
  };
  uint32_t stored = 0;
  RETURN_IF_ERROR(read(0, std::span(&stored, 1)));
  if (stored != samples) return malformed("it has another number of samples");
  to->offsets.resize(samples + 1);
  RETURN_IF_ERROR(read(4, to->offsets));
  if (to->offsets.front() < table || to->offsets.back() > size ||
      !std::is_sorted(to->offsets.begin(), to->offsets.end()))
    return malformed("its offsets of samples are wrong");
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const OpenShard>> MdsSource::Open(
    size_t shard) const {
  return open_.Get(shard,
                   [&]() -> absl::StatusOr<std::shared_ptr<const OpenShard>> {
                     auto opened = std::make_shared<OpenShard>();
                     if (IsPacked(shard))
                       RETURN_IF_ERROR(UnpackShard(shard, opened.get()));
                     RETURN_IF_ERROR(LoadOffsets(shard, opened.get()));
                     return opened;
                   });
}

absl::StatusOr<std::vector<std::span<const std::byte>>> MdsSource::Split(
    std::span<const std::byte> sample) const {
  const auto differing = static_cast<uint64_t>(
      std::count(sizes_.begin(), sizes_.end(), uint32_t{0}));
  uint64_t at = 4 * differing;
  if (at > sample.size())
    return DataLoss("{} bytes: too few for its columns' sizes", sample.size());
  std::vector<std::span<const std::byte>> columns;
  const std::byte* size = sample.data();
  for (const uint32_t fixed : sizes_) {
    uint64_t bytes = fixed;
    if (fixed == 0) {
      bytes = U32(size);
      size += 4;
    }
    if (bytes > sample.size() - at)
      return DataLoss("column {} has {} bytes, {} are left", columns.size(),
                      bytes, sample.size() - at);
    columns.push_back(sample.subspan(at, bytes));
    at += bytes;
  }
  if (at != sample.size())
    return DataLoss("{} bytes, its columns have {}", sample.size(), at);
  return columns;
}

absl::StatusOr<StoredSample> MdsSource::Convert(
    const std::vector<std::span<const std::byte>>& columns) const {
  uint64_t total = 0;
  for (size_t i = 0; i < outputs_.size(); ++i)
    total += Aligned(ConvertedBytes(types_[i], columns[outputs_[i]].size()));
  auto data = std::make_shared_for_overwrite<std::byte[]>(total);
  StoredSample stored;
  stored.fields.resize(outputs_.size());
  uint64_t at = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const std::span<const std::byte> from = columns[outputs_[i]];
    const uint64_t bytes = ConvertedBytes(types_[i], from.size());
    const std::span<std::byte> to(data.get() + at, bytes);
    ConvertMds(types_[i], from, to);
    stored.fields[i].bytes = to;
    if (const absl::Status fits =
            SetShapeOfBytes(types_[i], to, &stored.fields[i].shape);
        !fits.ok())
      return Annotate(fits, fmt::format("column \"{}\"", options_.columns[i]));
    at += Aligned(bytes);
  }
  stored.owner = std::move(data);
  return stored;
}

absl::StatusOr<MdsSource::Place> MdsSource::Find(uint64_t sample) const {
  const size_t shard = ShardOf(sample);
  Place place;
  ASSIGN_OR_RETURN(place.shard, Open(shard));
  const uint64_t index = sample - First(shard);
  place.begin = place.shard->offsets[index];
  place.bytes = place.shard->offsets[index + 1] - place.begin;
  if (place.bytes > max_file_bytes_)
    return ResourceExhausted("{} has {} bytes: the limit is {}",
                             Describe(sample), place.bytes, max_file_bytes_);
  return place;
}

absl::StatusOr<StoredSample> MdsSource::Sample(
    uint64_t sample, std::span<const std::byte> stored) const {
  const auto columns = Split(stored);
  if (!columns.ok()) return Annotate(columns.status(), Describe(sample));
  absl::StatusOr<StoredSample> converted = Convert(*columns);
  if (!converted.ok()) return Annotate(converted.status(), Describe(sample));
  return converted;
}

// Samples of an unpacked shard are taken at once, so that one is kept at a time.
std::vector<absl::StatusOr<StoredSample>> MdsSource::ReadMany(
    std::span<const uint64_t> samples) const {
  std::vector<absl::StatusOr<StoredSample>> stored;
  std::vector<std::vector<std::byte>> bytes(samples.size());
  std::vector<PackedRead> reads;
  std::vector<size_t> read_for;  // of each read, in `samples`
  for (size_t i = 0; i < samples.size(); ++i) {
    const absl::StatusOr<Place> place = Find(samples[i]);
    if (!place.ok()) {
      stored.emplace_back(place.status());
    } else if (const std::span all(place->shard->unpacked); !all.empty()) {
      stored.push_back(
          Sample(samples[i], all.subspan(place->begin, place->bytes)));
    } else if (place->bytes == 0) {
      stored.push_back(Sample(samples[i], {}));
    } else {
      stored.emplace_back(StoredSample());
      bytes[i].resize(place->bytes);
      reads.push_back({.file = ShardOf(samples[i]),
                       .range = {place->begin, bytes[i]},
                       .status = {}});
      read_for.push_back(i);
    }
  }
  reader_.ReadMany(reads);
  for (size_t r = 0; r < reads.size(); ++r) {
    const size_t i = read_for[r];
    if (reads[r].status.ok())
      stored[i] = Sample(samples[i], bytes[i]);
    else
      stored[i] = reads[r].status;
  }
  return stored;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> OpenMds(const Node& reader,
                                                std::string_view blob,
                                                const SourceLimits& limits) {
  ASSIGN_OR_RETURN(MdsOptions options, MdsOptionsOf(reader));
  return Loaded(std::make_unique<MdsSource>(std::move(options), limits),
                reader.op, reader, blob);
}

const SourceFormat kMdsFormat = {"readers.mds", BuildMdsIndex, OpenMds};

}  // namespace leat::worker
