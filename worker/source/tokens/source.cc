// SPDX-License-Identifier: Apache-2.0
//
// A document is one range of its file. Neighbours are read by one request.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/redaction.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/packed/packed_source.h"
#include "worker/source/packed/record_table.h"
#include "worker/source/tokens/tokens.h"

namespace leat::worker {
namespace {

class TokensSource final : public PackedSource {
 public:
  TokensSource(TokenOptions options, const SourceLimits& limits)
      : PackedSource(limits),
        options_(std::move(options)),
        max_bytes_(limits.max_file_bytes) {}

  absl::Status Load(std::string_view blob, const SourceLimits& limits);
  uint64_t num_samples() const override { return documents_.count(); }
  std::string Describe(uint64_t sample) const override {
    const Place place = PlaceOf(sample);
    return fmt::format("{}: {} {} at {}", files_.Shown(place.file),
                       options_.sequences ? "sequence" : "document",
                       place.document, place.offset);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const Place place = PlaceOf(sample);
    return RecordPlace{.file = files_.Shown(place.file),
                       .offset = place.offset,
                       .bytes = place.bytes,
                       .index = place.document};
  }

  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    if (column != "length") return FormatSource::IndexedColumn(column, sample);
    return static_cast<int64_t>(PlaceOf(sample).bytes / element_);
  }

 private:
  struct Place {
    size_t file = 0;
    uint64_t document = 0;  // in the file
    uint64_t offset = 0, bytes = 0;
  };
  // A file, and the part of it before the first document that is known here.
  struct File {
    uint64_t first = 0;   // sample
    uint64_t before = 0;  // documents of the file
    uint64_t begin = 0;   // tokens of the file before it
    uint64_t base = 0;    // tokens of all files before it
    uint64_t data_offset = 0;
    std::string index_identity;
  };
  absl::Status LoadHead(const stored::v1::TokensHead& head);
  absl::Status AddPart(const stored::v1::TokensFile& part, bool goes_on,
                       uint64_t max_documents);
  absl::Status AddFile(const stored::v1::TokensFile& part);
  bool GoesOn(const stored::v1::TokensFile& part) const;
  Place PlaceOf(uint64_t sample) const;
  Extent ExtentOf(uint64_t sample) const override {
    const Place place = PlaceOf(sample);
    return {place.file, place.offset, place.offset + place.bytes};
  }
  absl::StatusOr<Pending> Begin(uint64_t sample) const override;
  absl::StatusOr<StoredSample> End(uint64_t sample,
                                   SampleBytes memory) const override;
  absl::StatusOr<Pending> BeginPart(const RecordPart& part) const override;
  absl::StatusOr<StoredPart> EndPart(const RecordPart& part,
                                     SampleBytes memory) const override;
  // Begins to read tokens of a document, some of them or all.
  absl::StatusOr<Pending> BeginTokens(uint64_t sample, uint64_t begin,
                                      uint64_t count) const;
  StoredSample TokensOf(uint64_t count, SampleBytes memory) const;

  const TokenOptions options_;
  const uint64_t max_bytes_;
  uint64_t element_ = 1;  // bytes
  DType dtype_ = DType::kUint16;
  std::vector<File> places_;
  RecordTable documents_;  // sizes are tokens
};

absl::Status TokensSource::LoadHead(const stored::v1::TokensHead& head) {
  const std::vector<std::string> files = FilesInHead(options_);
  if (!std::equal(head.files().begin(), head.files().end(), files.begin(),
                  files.end()))
    return DataLoss("it is of another reader");
  if (head.dtype() <= static_cast<uint32_t>(DType::kBool) ||
      head.dtype() > static_cast<uint32_t>(kLastDType))
    return DataLoss("it has elements of an unknown type {}", head.dtype());
  dtype_ = static_cast<DType>(head.dtype());
  element_ = SizeOf(dtype_);
  return absl::OkStatus();
}

bool TokensSource::GoesOn(const stored::v1::TokensFile& part) const {
  const size_t file = files_.count() - 1;
  const File& last = places_.back();
  return part.file().name() == files_.name(file) &&
         part.file().bytes() == files_.size(file) &&
         part.data_offset() == last.data_offset &&
         part.first() == last.before + documents_.count() - last.first &&
         part.begin() == last.begin + documents_.End() - last.base;
}

absl::Status TokensSource::AddFile(const stored::v1::TokensFile& part) {
  places_.push_back({.first = documents_.count(),
                     .before = part.first(),
                     .begin = part.begin(),
                     .base = documents_.End(),
                     .data_offset = part.data_offset(),
                     .index_identity = part.index_identity()});
  return files_.Add(part.file().name(), part.file().bytes(),
                    part.file().identity());
}

absl::Status TokensSource::AddPart(const stored::v1::TokensFile& part,
                                   bool goes_on, uint64_t max_documents) {
  const uint64_t bytes = part.file().bytes();
  if (part.lengths().empty() || part.data_offset() > bytes ||
      part.begin() > (bytes - part.data_offset()) / element_ ||
      (goes_on && part.first() == 0))
    return DataLoss("the index has {} documents from token {} of a file of {}",
                    part.lengths_size(), part.begin(), bytes);
  if (!goes_on) {
    RETURN_IF_ERROR(AddFile(part));
  } else if (!GoesOn(part)) {
    return DataLoss("the index does not go on with {}",
                    files_.Shown(files_.count() - 1));
  }
  uint64_t sum = 0;
  for (const uint32_t length : part.lengths()) {
    sum += length;
    documents_.Add(length);
  }
  if (sum > (bytes - part.data_offset()) / element_ - part.begin())
    return DataLoss("the index has {} tokens in {} documents of a file of {}",
                    sum, part.lengths_size(), bytes);
  if (documents_.count() > max_documents)
    return ResourceExhausted("more than {} documents: the limit",
                             max_documents);
  return absl::OkStatus();
}

absl::Status TokensSource::Load(std::string_view blob,
                                const SourceLimits& limits) {
  if (blob.size() > limits.max_index_bytes)
    return ResourceExhausted("an index of {} bytes: the limit is {}",
                             blob.size(), limits.max_index_bytes);
  BlobReader reader(blob);
  stored::v1::TokensHead head;
  RETURN_IF_ERROR(reader.Next(&head));
  RETURN_IF_ERROR(LoadHead(head));
  Sha256 hash;
  BeginTokensHash(options_, dtype_, &hash);
  bool more = false;
  while (!reader.done()) {
    stored::v1::TokensFile part;
    RETURN_IF_ERROR(reader.Next(&part));
    RETURN_IF_ERROR(
        AddPart(part, std::exchange(more, part.more()), limits.max_files));
    if (part.first() == 0) files_.UpdateHash(&hash, files_.count() - 1);
    if (!more)
      hash.UpdateU64(part.first() + static_cast<uint64_t>(part.lengths_size()))
          .UpdateField(places_.back().index_identity);
  }
  // One of many blocks may begin and end within a file.
  if (!limits.one_of_many &&
      (more || std::any_of(places_.begin(), places_.end(),
                           [](const File& each) { return each.before != 0; })))
    return DataLoss("it tells only a part of a file");
  if (documents_.count() == 0) return DataLoss("it lists no documents");
  fingerprint_ = hash.Finish();
  files_.ShrinkToFit();
  documents_.ShrinkToFit();
  return absl::OkStatus();
}

TokensSource::Place TokensSource::PlaceOf(uint64_t sample) const {
  const auto after = std::upper_bound(
      places_.begin(), places_.end(), sample,
      [](uint64_t s, const File& each) { return s < each.first; });
  const auto index = static_cast<size_t>(after - places_.begin() - 1);
  const File& file = places_[index];
  const uint64_t tokens = file.begin + documents_.Begin(sample) - file.base;
  return {.file = index,
          .document = file.before + sample - file.first,
          .offset = file.data_offset + tokens * element_,
          .bytes = documents_.size(sample) * element_};
}

absl::StatusOr<PackedSource::Pending> TokensSource::BeginTokens(
    uint64_t sample, uint64_t begin, uint64_t count) const {
  const Place place = PlaceOf(sample);
  const uint64_t bytes = count * element_;
  if (bytes > max_bytes_)
    return ResourceExhausted("{} has {} bytes: the limit is {}",
                             Describe(sample), bytes, max_bytes_);
  Pending pending{
      .file = place.file, .ranges = {}, .memory = NewSampleBytes(bytes)};
  if (bytes > 0)
    pending.ranges.push_back({place.offset + begin * element_,
                              std::span(pending.memory.get(), bytes)});
  return pending;
}

StoredSample TokensSource::TokensOf(uint64_t count, SampleBytes memory) const {
  StoredSample stored;
  stored.fields.resize(1);
  stored.fields[0].bytes =
      std::span<const std::byte>(memory.get(), count * element_);
  stored.fields[0].shape = {static_cast<int64_t>(count)};
  stored.owner = std::move(memory);
  return stored;
}

absl::StatusOr<PackedSource::Pending> TokensSource::Begin(
    uint64_t sample) const {
  return BeginTokens(sample, 0, documents_.size(sample));
}

absl::StatusOr<StoredSample> TokensSource::End(uint64_t sample,
                                               SampleBytes memory) const {
  return TokensOf(documents_.size(sample), std::move(memory));
}

absl::StatusOr<PackedSource::Pending> TokensSource::BeginPart(
    const RecordPart& part) const {
  const uint64_t tokens = documents_.size(part.sample);
  if (part.begin > tokens || part.count > tokens - part.begin)
    return DataLoss("{} has {} tokens, want {} after the first {}",
                    Describe(part.sample), tokens, part.count, part.begin);
  return BeginTokens(part.sample, part.begin, part.count);
}

absl::StatusOr<StoredPart> TokensSource::EndPart(const RecordPart& part,
                                                 SampleBytes memory) const {
  return StoredPart{.stored = TokensOf(part.count, std::move(memory)),
                    .elements = documents_.size(part.sample)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> OpenTokens(const Node& reader,
                                                   std::string_view blob,
                                                   const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const TokenOptions options, TokenOptionsOf(reader));
  return Loaded(std::make_unique<TokensSource>(options, limits),
                RedactedUri(options.files.front()), blob, limits);
}

const SourceFormat kTokensFormat = {"readers.tokens", BuildTokensIndex,
                                    OpenTokens,
                                    /*in_blocks=*/true};

}  // namespace leat::worker
