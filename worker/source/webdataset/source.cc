// SPDX-License-Identifier: Apache-2.0
//
// The components of a sample are neighbours: they are read by one read,
// including headers in between, unless these are many more bytes than wanted.
// Numbers are written after them.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/shape_inference.h"
#include "core/redaction.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/packed/packed_source.h"
#include "worker/source/webdataset/webdataset.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxGap = 16 << 10;  // of all that is read and not wanted

struct Component {
  uint64_t offset = 0;  // 0: there is none
  uint64_t size = 0;
};

class WebdatasetSource final : public PackedSource {
 public:
  WebdatasetSource(WebdatasetOptions options, const SourceLimits& limits)
      : PackedSource(limits),
        options_(std::move(options)),
        outputs_(options_.ext.size()),
        max_bytes_(limits.max_file_bytes) {}

  absl::Status Load(std::string_view blob, const SourceLimits& limits);
  uint64_t num_samples() const override { return places_.size() / outputs_; }
  std::string Describe(uint64_t sample) const override;
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override;

 private:
  struct Place {
    uint32_t block = 0;
    uint32_t size = 0;
  };
  absl::Status CheckHead(const stored::v1::WebdatasetHead& head) const;
  absl::Status AddFile(const stored::v1::WebdatasetFile& part,
                       uint64_t max_samples);
  size_t FileOf(uint64_t sample) const {
    return static_cast<size_t>(
        std::upper_bound(first_.begin(), first_.end(), sample) -
        first_.begin() - 1);
  }
  Component At(uint64_t sample, size_t output) const {
    const Place& place = places_[sample * outputs_ + output];
    return {place.block * kTarBlock, place.size};
  }
  // How a sample is read: all components at once, into the bytes from the first
  // to the last, or one after the other.
  struct Layout {
    Extent extent;
    bool at_once = false;
    uint64_t sum = 0;   // of the components
    uint64_t held = 0;  // bytes of memory for them
    // Returns the component's offset in the memory if it follows `behind` bytes
    // of others.
    uint64_t Of(const Component& component, uint64_t behind) const {
      return at_once ? component.offset - extent.begin : behind;
    }
  };
  Layout LayoutOf(uint64_t sample) const;
  Extent ExtentOf(uint64_t sample) const override {
    return LayoutOf(sample).extent;
  }
  absl::StatusOr<Pending> Begin(uint64_t sample) const override;
  absl::StatusOr<StoredSample> End(uint64_t sample,
                                   SampleBytes memory) const override;
  // Makes the field from its component's bytes. `number`: room for one.
  absl::Status Fill(size_t output, std::byte* number, StoredField* field) const;

  const WebdatasetOptions options_;
  const size_t outputs_;
  const uint64_t max_bytes_;
  std::vector<uint64_t> first_;  // first sample of each file
  std::vector<Place> places_;    // sample by sample
};

absl::Status WebdatasetSource::CheckHead(
    const stored::v1::WebdatasetHead& head) const {
  const std::vector<std::string> paths = PathsInHead(options_);
  const bool same = std::equal(head.paths().begin(), head.paths().end(),
                               paths.begin(), paths.end()) &&
                    std::equal(head.ext().begin(), head.ext().end(),
                               options_.ext.begin(), options_.ext.end()) &&
                    head.missing() == NameOf(options_.missing);
  return same ? absl::OkStatus() : DataLoss("it is of another reader");
}

absl::Status WebdatasetSource::AddFile(const stored::v1::WebdatasetFile& part,
                                       uint64_t max_samples) {
  const uint64_t bytes = part.file().bytes();
  if (part.blocks().empty() || part.blocks_size() != part.sizes_size() ||
      static_cast<size_t>(part.blocks_size()) % outputs_ != 0)
    return DataLoss("the index has {} blocks and {} sizes for {} outputs",
                    part.blocks_size(), part.sizes_size(), outputs_);
  first_.push_back(num_samples());
  for (int i = 0; i < part.blocks_size(); ++i) {
    const uint64_t offset = part.blocks(i) * kTarBlock;
    const uint32_t size = part.sizes(i);
    const bool good =
        offset == 0 ? size == 0 && options_.missing == MissingComponent::kEmpty
                    : offset <= bytes && size <= bytes - offset;
    if (!good)
      return DataLoss("the index has a component of {} bytes at {} of {}", size,
                      offset, bytes);
    places_.push_back({part.blocks(i), size});
  }
  if (num_samples() > max_samples)
    return ResourceExhausted("more than {} samples: the limit", max_samples);
  return files_.Add(part.file().name(), bytes, part.file().identity());
}

absl::Status WebdatasetSource::Load(std::string_view blob,
                                    const SourceLimits& limits) {
  if (blob.size() > limits.max_index_bytes)
    return ResourceExhausted("an index of {} bytes: the limit is {}",
                             blob.size(), limits.max_index_bytes);
  BlobReader reader(blob);
  stored::v1::WebdatasetHead head;
  RETURN_IF_ERROR(reader.Next(&head));
  RETURN_IF_ERROR(CheckHead(head));
  Sha256 hash;
  BeginWebdatasetHash(options_, &hash);
  while (!reader.done()) {
    stored::v1::WebdatasetFile part;
    RETURN_IF_ERROR(reader.Next(&part));
    RETURN_IF_ERROR(AddFile(part, limits.max_files));
    files_.UpdateHash(&hash, files_.count() - 1);
    hash.UpdateU64(static_cast<uint64_t>(part.blocks_size()) / outputs_);
  }
  if (places_.empty()) return DataLoss("it lists no samples");
  fingerprint_ = hash.Finish();
  files_.ShrinkToFit();
  places_.shrink_to_fit();
  return absl::OkStatus();
}

std::string WebdatasetSource::Describe(uint64_t sample) const {
  const size_t file = FileOf(sample);
  uint64_t first = UINT64_MAX;
  for (size_t i = 0; i < outputs_; ++i)
    if (const Component component = At(sample, i); component.offset != 0)
      first = std::min(first, component.offset);
  return fmt::format("{}: sample {}{}", files_.Shown(file),
                     sample - first_[file],
                     first == UINT64_MAX ? "" : fmt::format(" at {}", first));
}

absl::StatusOr<RecordPlace> WebdatasetSource::Locate(uint64_t sample) const {
  const Extent extent = ExtentOf(sample);
  RecordPlace place{.file = files_.Shown(extent.file),
                    .index = sample - first_[extent.file]};
  if (extent.begin == extent.end) return place;  // all of it is missing
  place.offset = extent.begin;
  place.bytes = extent.end - extent.begin;
  return place;
}

WebdatasetSource::Layout WebdatasetSource::LayoutOf(uint64_t sample) const {
  uint64_t begin = UINT64_MAX, end = 0, sum = 0;
  for (size_t i = 0; i < outputs_; ++i) {
    const Component component = At(sample, i);
    if (component.size == 0) continue;
    begin = std::min(begin, component.offset);
    end = std::max(end, component.offset + component.size);
    sum += component.size;
  }
  if (sum == 0) begin = 0;
  const bool at_once = sum > 0 && end - begin <= sum + kMaxGap;
  return {.extent = {FileOf(sample), begin, end},
          .at_once = at_once,
          .sum = sum,
          .held = at_once ? end - begin : sum};
}

absl::StatusOr<PackedSource::Pending> WebdatasetSource::Begin(
    uint64_t sample) const {
  const Layout layout = LayoutOf(sample);
  const Extent& extent = layout.extent;
  if (layout.sum > max_bytes_)
    return ResourceExhausted("{}: {} bytes: the limit is {}", Describe(sample),
                             layout.sum, max_bytes_);
  // Room for a number for each output.
  Pending pending{
      .file = extent.file,
      .ranges = {},
      .memory = NewSampleBytes(layout.held + outputs_ * sizeof(int64_t))};
  std::byte* const memory = pending.memory.get();
  if (layout.at_once) {
    pending.ranges.push_back({extent.begin, {memory, layout.held}});
    return pending;
  }
  uint64_t behind = 0;
  for (size_t i = 0; i < outputs_; ++i) {
    const Component component = At(sample, i);
    if (component.size == 0) continue;
    pending.ranges.push_back(
        {component.offset, {memory + behind, component.size}});
    behind += component.size;
  }
  return pending;
}

absl::Status WebdatasetSource::Fill(size_t output, std::byte* number,
                                    StoredField* field) const {
  const ValueType& type = options_.types[output];
  if (type.kind == ValueType::Kind::kEncoded) return absl::OkStatus();
  if (!type.shape.empty()) {
    const uint64_t row = StoredElements(type) * SizeOf(type.dtype);
    const uint64_t size = field->bytes.size();
    if (IsOpen(type) ? size % row != 0 : size != row)
      return InvalidArgument("component \"{}\" has {} bytes, want {}: {}",
                             options_.ext[output], size, TypeText(type),
                             IsOpen(type) ? fmt::format("a multiple of {}", row)
                                          : fmt::format("{}", row));
    if (IsOpen(type)) {
      field->shape = type.shape;
      field->shape[0] = static_cast<int64_t>(size / row);
    }
    // Not every byte is a bool.
    const absl::Status fits = CheckStored(type, field->bytes, field->shape);
    if (fits.ok()) return fits;
    return Annotate(fits,
                    fmt::format("component \"{}\"", options_.ext[output]));
  }
  std::string_view text(reinterpret_cast<const char*>(field->bytes.data()),
                        field->bytes.size());
  constexpr std::string_view kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  const bool small = type.dtype == DType::kInt32;
  if (parsed.ec != std::errc() || parsed.ptr != end ||
      (small && value != static_cast<int32_t>(value)))
    return InvalidArgument(
        "component \"{}\" ({} bytes) is no {} in decimal digits",
        options_.ext[output], field->bytes.size(), Name(type.dtype));
  const auto narrow = static_cast<int32_t>(value);
  const size_t size = SizeOf(type.dtype);
  std::memcpy(number, small ? static_cast<const void*>(&narrow) : &value, size);
  field->bytes = std::span<const std::byte>(number, size);
  return absl::OkStatus();
}

absl::StatusOr<StoredSample> WebdatasetSource::End(uint64_t sample,
                                                   SampleBytes memory) const {
  const Layout layout = LayoutOf(sample);
  StoredSample stored;
  stored.fields.resize(outputs_);
  std::byte* const numbers = memory.get() + layout.held;
  uint64_t behind = 0;
  for (size_t i = 0; i < outputs_; ++i) {
    const Component component = At(sample, i);
    StoredField& field = stored.fields[i];
    if (component.size != 0)
      field.bytes = std::span<const std::byte>(
          memory.get() + layout.Of(component, behind), component.size);
    behind += component.size;
    const absl::Status status = Fill(i, numbers + i * sizeof(int64_t), &field);
    if (!status.ok()) return Annotate(status, Describe(sample));
  }
  stored.owner = std::move(memory);
  return Trimmed(std::move(stored), layout.held);
}

// Reads return kInvalidArgument if a component does not match its type; names
// archive, sample and component.
absl::StatusOr<std::unique_ptr<Source>> OpenWebdataset(
    const Node& reader, std::string_view blob, const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const WebdatasetOptions options,
                   WebdatasetOptionsOf(reader));
  return Loaded(std::make_unique<WebdatasetSource>(options, limits),
                RedactedUri(options.paths.front()), blob, limits);
}

}  // namespace

const SourceFormat kWebdatasetFormat = {"readers.webdataset",
                                        BuildWebdatasetIndex, OpenWebdataset,
                                        /*in_blocks=*/true};

}  // namespace leat::worker
