// SPDX-License-Identifier: Apache-2.0
//
// readers.idx. Labels are kept in memory. So are the records of a gzipped file,
// which cannot be read at an offset: once per source, whatever the number of
// its jobs, and together at most max_unpacked_bytes. Records of a plain file
// are read one by one.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/fault.h"
#include "core/redaction.h"
#include "core/status.h"
#include "worker/source/arrays/idx_file.h"
#include "worker/source/content_hash.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/loader_args.h"
#include "worker/source/packed/gzip_reader.h"
#include "worker/source/packed/unpacked_budget.h"
#include "worker/source/record_file.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

using stored::v1::IdxIndex;

constexpr int32_t kNoLabel = -1;

Digest FingerprintOf(const IdxIndex& index) {
  Sha256 hash;
  hash.UpdateField("leat.idx.1");
  HashRecordFile(index.images(), &hash);
  HashRecordFile(index.labels(), &hash);
  hash.UpdateU64(index.image_type()).UpdateU64(index.label_type());
  for (const uint32_t size : index.image_sizes()) hash.UpdateU64(size);
  return hash.Finish();
}

IdxHeader ImageHeader(const IdxIndex& index) {
  return {.type = static_cast<uint8_t>(index.image_type()),
          .sizes = {index.image_sizes().begin(), index.image_sizes().end()}};
}

// REQUIRES: ImageHeader(index) is valid.
IdxHeader LabelHeader(const IdxIndex& index) {
  return {.type = static_cast<uint8_t>(index.label_type()),
          .sizes = {index.image_sizes(0)}};
}

absl::Status CheckLabels(const IdxHeader& labels, uint64_t records,
                         std::string_view name) {
  if (labels.sizes.size() != 1 || labels.dtype() == DType::kFloat32)
    return InvalidArgument(
        "{}: labels of {} axes and {}, want 1 of uint8 or "
        "int32",
        name, labels.sizes.size(), Name(labels.dtype()));
  if (labels.records() == records) return absl::OkStatus();
  return InvalidArgument("{}: {} labels for {} images", name, labels.records(),
                         records);
}

class IdxSource final : public FormatSource {
 public:
  absl::Status Load(const IdxIndex& index, const SourceLimits& limits) {
    images_header_ = ImageHeader(index);
    name_ = RedactedUri(index.images().uri());
    RETURN_IF_ERROR(CheckIdxHeader(images_header_, name_));
    ASSIGN_OR_RETURN(images_, OpenRecordFile(index.images(), limits));
    fingerprint_ = FingerprintOf(index);
    SourceLimits left = limits;
    ASSIGN_OR_RETURN(const bool gzip, IsGzip(*images_));
    if (gzip) {
      if (!held_.Take(limits.unpacked, images_header_.payload_bytes()))
        return WithFault(
            ResourceExhausted(
                "{}: {} bytes when unpacked, and other datasets have what "
                "--unpacked-memory gives ({}): give more, or unpack the file",
                images_->name(), images_header_.payload_bytes(),
                limits.unpacked->bytes()),
            Fault::kWorker);
      ASSIGN_OR_RETURN(unpacked_, LoadIdx(*images_, images_header_, left));
      left.max_unpacked_bytes -= images_header_.payload_bytes();
    } else if (images_->size() !=
               images_header_.header_bytes() + images_header_.payload_bytes()) {
      return DataLoss("{}: {} bytes are not the index's records",
                      images_->name(), images_->size());
    }
    return index.has_labels() ? LoadLabels(index, left) : absl::OkStatus();
  }

  uint64_t num_samples() const override { return images_header_.records(); }
  std::string Describe(uint64_t sample) const override {
    return fmt::format("{}: record {}", images_->name(), sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    RecordPlace place{.file = name_, .index = sample};
    if (unpacked_ != nullptr) return place;  // offsets are not the file's
    place.bytes = images_header_.record_bytes();
    place.offset = images_header_.header_bytes() + sample * *place.bytes;
    return place;
  }

  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    const uint64_t bytes = images_header_.record_bytes();
    const uint64_t place = sample * bytes;
    const int32_t label = labels_ == nullptr ? kNoLabel : labels_[sample];
    const uint64_t label_at = LabelPlace(bytes);
    SampleBytes own = NewSampleBytes(label_at + sizeof label);
    std::memcpy(own.get() + label_at, &label, sizeof label);
    StoredSample stored;
    stored.fields.resize(2);
    stored.fields[1].bytes = {own.get() + label_at, sizeof label};
    const std::span<std::byte> record(own.get(), bytes);
    if (unpacked_ != nullptr) {
      // A cached record must not keep the whole file's bytes alive.
      std::memcpy(record.data(), unpacked_.get() + place, bytes);
    } else {
      RETURN_IF_ERROR(
          images_->ReadAt(images_header_.header_bytes() + place, record));
      SwapElements(record, SizeOf(images_header_.dtype()));
    }
    stored.fields[0].bytes = record;
    stored.owner = std::move(own);
    return stored;
  }

 private:
  absl::Status LoadLabels(const IdxIndex& index, const SourceLimits& limits) {
    const IdxHeader header = LabelHeader(index);
    RETURN_IF_ERROR(CheckIdxHeader(header, RedactedUri(index.labels().uri())));
    ASSIGN_OR_RETURN(const OpenedFile file,
                     OpenRecordFile(index.labels(), limits));
    RETURN_IF_ERROR(CheckLabels(header, num_samples(), file->name()));
    const uint64_t count = header.records();
    if (count * sizeof(int32_t) > limits.max_unpacked_bytes)
      return ResourceExhausted(
          "{}: {} labels are over the limit of {} bytes of unpacked data",
          file->name(), count, limits.max_unpacked_bytes);
    ASSIGN_OR_RETURN(const SampleBytes payload, LoadIdx(*file, header, limits));
    labels_ = std::make_unique_for_overwrite<int32_t[]>(count);
    if (header.dtype() == DType::kInt32)
      std::memcpy(labels_.get(), payload.get(), count * sizeof(int32_t));
    else
      for (uint64_t i = 0; i < count; ++i)
        labels_[i] = static_cast<int32_t>(payload[i]);
    return absl::OkStatus();
  }

  // Constant after Load.
  OpenedFile images_;
  std::string name_;  // of the images' file, as the job names it
  IdxHeader images_header_;
  SampleBytes unpacked_;               // nullptr: read from the file
  UnpackedShare held_;                 // for it
  std::unique_ptr<int32_t[]> labels_;  // nullptr: there are none
};

absl::StatusOr<BuiltIndex> Build(const Node& reader,
                                 const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const std::string uri, TextArg(reader, "images"));
  if (uri.empty())
    return InvalidArgument("readers.idx: images: want an idx file");
  ASSIGN_OR_RETURN(const OpenedFile images, StorageOf(limits).Open(uri));
  ASSIGN_OR_RETURN(const IdxHeader header, InspectIdx(*images, limits));
  IdxIndex proto;
  *proto.mutable_images() = RecordFileOf(uri, *images);
  proto.set_image_type(header.type);
  proto.mutable_image_sizes()->Assign(header.sizes.begin(), header.sizes.end());
  BuiltIndex index;
  index.bytes = images->size();
  ASSIGN_OR_RETURN(const std::string labels_uri, TextArg(reader, "labels"));
  if (!labels_uri.empty()) {
    ASSIGN_OR_RETURN(const OpenedFile labels,
                     StorageOf(limits).Open(labels_uri));
    ASSIGN_OR_RETURN(const IdxHeader label_header, InspectIdx(*labels, limits));
    RETURN_IF_ERROR(
        CheckLabels(label_header, header.records(), labels->name()));
    *proto.mutable_labels() = RecordFileOf(labels_uri, *labels);
    proto.set_label_type(label_header.type);
    index.bytes += labels->size();
  }
  index.blob = proto.SerializeAsString();
  index.fingerprint = FingerprintOf(proto);
  index.types = {header.record_type(),
                 {ValueType::Kind::kTensor, DType::kInt32, {}}};
  RETURN_IF_ERROR(FinishIndex(uri, header.records(), limits, &index));
  ContentHash content("idx", {uri, labels_uri});
  content.AddFile(uri, proto.images().bytes())
      .AddFile(labels_uri, proto.labels().bytes())
      .AddNumber(proto.label_type())
      .Finish(&index);
  return index;
}

absl::StatusOr<std::unique_ptr<Source>> Open(const Node& reader,
                                             std::string_view blob,
                                             const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const std::string uri, TextArg(reader, "images"));
  ASSIGN_OR_RETURN(const std::string labels_uri, TextArg(reader, "labels"));
  IdxIndex index;
  if (!index.ParseFromArray(blob.data(), static_cast<int>(blob.size())) ||
      index.images().uri() != uri || index.labels().uri() != labels_uri)
    return DataLoss("the index of {} is malformed", NameOf(uri));
  return Loaded(std::make_unique<IdxSource>(), NameOf(uri), index, limits);
}

}  // namespace

const SourceFormat kIdxFormat = {"readers.idx", Build, Open};

}  // namespace leat::worker
