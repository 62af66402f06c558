// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/groups/group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/status.h"
#include "worker/compute/host_share.h"
#include "worker/gpu/decoding/jpeg_upload.h"
#include "worker/gpu/groups/queue.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/jpeg/decode/check.h"
#include "worker/image/jpeg/decode/kept_decode.h"
#include "worker/image/program/scratch_state.h"

namespace leat::worker {
namespace {

constexpr size_t kAlignment = 256;

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// A part of the memory for pixels is for the indexes that kernels leave: the
// share that they are of a photo's bytes.
constexpr size_t kLeftPart = 64;

}  // namespace

GpuGroup::GpuGroup(const GpuProgram& program, const GroupOutputs& outputs,
                   GpuQueue* queue, Slot* slot)
    : program_(program),
      outputs_(outputs),
      queue_(queue),
      slot_(slot),
      rows_(outputs.rows),
      pixels_room_(slot->pixels.size()) {
  size_t at = 0;
  for (size_t f = 0; f < fields(); ++f) {
    field_at_.push_back(at);
    at += Aligned(outputs_.rows * outputs_.field_bytes[f]);
  }
  if (begun_ = Begin(); absl::IsInvalidArgument(begun_))
    begun_ = Internal("{}", Message(begun_));
}

GpuGroup::~GpuGroup() { queue_->Release(slot_); }

absl::Status GpuGroup::Begin() {
  if (queue_->lost()) return queue_->WhyLost();
  if (program_.fused == nullptr) return absl::OkStatus();
  const uint64_t values = program_.fused->ValueBytes(outputs_.rows);
  if (values > pixels_room_)
    return Internal("values of {} bytes in a slot of {}", values, pixels_room_);
  pixels_room_ = (pixels_room_ - values) / kAlignment * kAlignment;
  const uint64_t values_at = pixels_room_;
  if (program_.fused->FaultBytes(outputs_.rows) > 0) {
    SetFaultWords(values_at + program_.fused->FaultsAt(outputs_.rows));
    may_fault_ = true;
  }
  if ((program_.decoder_class == DecoderClass::kExact ||
       HasHostShare(program_.decoder_class)) &&
      KernelsHaveLibjpegsPixels())
    SetApartForJpegs();
  RETURN_IF_ERROR(fused_.Begin(*program_.fused, outputs_.rows, slot_->block,
                               {.block = slot_->device_block,
                                .values = slot_->device_pixels + values_at}));
  for (size_t row = 0; row < outputs_.rows; ++row)
    for (size_t f = 0; f < fields(); ++f)
      if (on_device() || program_.fused->from_pixels(f))
        fused_.BindOutput(row, f, OutputAddress(row, f));
  return absl::OkStatus();
}

// Faults and places lie behind the pixels, which are copied over what is between
// them.
void GpuGroup::SetApartForJpegs() {
  const size_t images = outputs_.rows * (program_.fused->has_partner() ? 2 : 1);
  if (TakePixels(images * sizeof(DeviceJpeg)))
    jpegs_ = {reinterpret_cast<DeviceJpeg*>(slot_->pixels.data()), images};
  const size_t words = Aligned(outputs_.rows * sizeof(uint32_t));
  if (faults_.empty() && words <= pixels_room_ - pixels_used_.load()) {
    pixels_room_ -= words;
    SetFaultWords(pixels_room_);
  }
  const size_t left = pixels_room_ / kLeftPart / kAlignment * kAlignment;
  if (left > pixels_room_ - pixels_used_.load()) return;
  pixels_room_ -= left;
  left_ = slot_->pixels.subspan(pixels_room_, left);
}

DeviceAddress GpuGroup::OutputAddress(size_t row, size_t field) const {
  if (on_device()) return DeviceAddress::Of(outputs_.At(field, row));
  return slot_->device_outputs + field_at_[field] +
         row * outputs_.field_bytes[field];
}

void GpuGroup::SetFaultWords(uint64_t at) {
  faults_ = {reinterpret_cast<uint32_t*>(slot_->pixels.data() + at),
             outputs_.rows};
}

DeviceAddress GpuGroup::faults_address() const {
  return AddressOf(std::as_bytes(faults_));
}

void GpuGroup::TakeFaults() {
  const std::span<const uint32_t> faults = this->faults();
  for (size_t row = 0; row < faults.size(); ++row) {
    if (faults[row] == 0) continue;
    rows_[row].stage = RowStage::kFaulted;
    rows_[row].status = Aborted("a kernel found the row bad");
  }
}

absl::Status GpuGroup::Prepare(size_t row, const RowInput& input,
                               StoredSample stored, ThreadState* state) {
  RETURN_IF_ERROR(begun_);
  if (queue_->lost()) return queue_->WhyLost();
  GroupRow& r = rows_[row];
  const bool for_cpu = r.for_cpu;
  r = {};
  r.record = std::move(stored);
  r.input = input;
  r.input.fields = r.record.fields;
  auto* const thread = static_cast<GpuThread*>(state);
  const FusedProgram* const fused = program_.fused.get();
  absl::StatusOr<bool> prepared = false;
  if (fused != nullptr && !for_cpu) prepared = PrepareRow(row, thread);
  // If the pipeline chooses values, the CPU computes only those that a sample
  // needs, and it follows the policy for bad partners. So the CPU decides what
  // is wrong with the row. Errors of the decoder are excluded.
  if (!prepared.ok() &&
      (fused->has_partner() ||
       (fused->stages() > 0 && !absl::IsUnavailable(prepared.status()))))
    prepared = false;
  absl::Status status = prepared.status();
  if (prepared.ok() && !*prepared) status = ComputeOnCpu(row, thread);
  // Rows with partners are now computed, or need only the GPU; and the host has
  // decoded its part of the row.
  r.input.partner = nullptr;
  r.input.forms = nullptr;
  if (!status.ok()) r = {};
  return status;
}

absl::StatusOr<bool> GpuGroup::PrepareRow(size_t row, GpuThread* thread) {
  GroupRow& r = rows_[row];
  if (program_.fused->has_partner()) {
    if (r.input.partner == nullptr) return false;
    ASSIGN_OR_RETURN(const RowInput partner, r.input.partner->Input());
    ASSIGN_OR_RETURN(const bool prepared,
                     PrepareSample(row, Whose::kPartner, partner, thread));
    if (!prepared) return false;
  }
  ASSIGN_OR_RETURN(const bool prepared,
                   PrepareSample(row, Whose::kRow, r.input, thread));
  if (!prepared) return false;
  if (r.stage != RowStage::kEncoded) r.stage = RowStage::kPixels;
  StoreHostValues(row);
  return true;
}

absl::StatusOr<bool> GpuGroup::PrepareSample(size_t row, Whose whose,
                                             const RowInput& input,
                                             GpuThread* thread) {
  const bool decodes = program_.fused->decodes(whose);
  JpegDecoder& decoder = thread->scratch().state()->decoder;
  JpegDecoder::Header header;
  KeptDecode kept;
  std::span<const std::byte> encoded;
  const bool reduces = program_.fused->reduces();
  if (decodes) {
    encoded = program_.fused->EncodedOf(input);
    // The CPU decodes other formats in every class.
    if (!IsJpeg(encoded)) return false;
    const bool exact = program_.decoder_class == DecoderClass::kExact;
    kept = KeptDecode(exact ? input.forms : nullptr, encoded,
                      reduces ? DecodeClass::kReduced : DecodeClass::kFull);
    RETURN_IF_ERROR(kept.Open(decoder));
    header = decoder.header();
    if (reduces && !header.has_scales) return false;
  }
  const absl::StatusOr<StoredRect> window = fused_.PrepareRow(
      row, input, header.size, header.orientation, &thread->fused(), whose);
  if (!window.ok()) {
    // Either the row exceeds the kernel's limits, whatever the group; or the
    // sample is at fault, and the CPU would report the same.
    if (absl::IsResourceExhausted(window.status()) ||
        absl::IsInternal(window.status()))
      return false;
    // The room that other rows have left must not choose the decoder of the row
    // where bytes depend on the decoder.
    if (absl::IsUnavailable(window.status()) &&
        program_.decoder_class == DecoderClass::kExact)
      return false;
    return window.status();
  }
  if (!decodes) return true;
  // The result of a device's decoder for a file that is cut short is
  // unpredictable.
  const bool hosts = HasHostShare(program_.decoder_class) &&
                     IsHosts(program_.fused->EncodedOf(input));
  if (program_.decoder_class != DecoderClass::kExact && !reduces && !hosts &&
      slot_->decoder->Takes(header) && !decoder.EndsEarly()) {
    RETURN_IF_ERROR(ChooseDecoding(row, header, *window, thread));
    return true;
  }
  if (reduces) decoder.KeepPixelsAt(fused_.pixel_halvings(row, whose));
  if (const int halvings = fused_.halvings(row, whose); halvings > 0)
    decoder.Reduce(halvings);
  RowPixels& pixels = rows_[row].pixels[whose];
  ASSIGN_OR_RETURN(const bool decoded,
                   DecodeWindow(row, *window, encoded, thread, &pixels));
  if (!decoded) return false;
  kept.End(decoder);
  // The partner's bytes need not outlive this call, and its own row leaves its
  // index.
  if (pixels.left.rows > 0 && whose == Whose::kRow)
    pixels.left.keep = kept.Later();
  if (pixels.jpeg.blocks != 0)
    rows_[row].by =
        pixels.jpeg.scan != 0 ? DecodedBy::kCodes : DecodedBy::kCoefficients;
  return true;
}

absl::Status GpuGroup::ChooseDecoding(size_t row,
                                      const JpegDecoder::Header& header,
                                      const StoredRect& window,
                                      GpuThread* thread) {
  GroupRow& r = rows_[row];
  r.luma = program_.fused->gray() || header.components == 1;
  const DecodeShapes shapes =
      ShapesOf(header, window, fused_.most_halvings(row));
  r.encoded = program_.fused->EncodedOf(r.input);
  auto choice = slot_->decoder->Choose(r.encoded, r.luma, shapes.span());
  if (!choice.ok()) {
    queue_->Suspect();
    return choice.status();
  }
  r.choice = *choice;
  PinEncoded(&r);
  if (r.choice.shape.halvings > 0)
    fused_.HalveRow(row, r.choice.shape.halvings, &thread->fused());
  r.stage = RowStage::kEncoded;
  return absl::OkStatus();
}

std::optional<size_t> GpuGroup::TakeRoom(size_t bytes, size_t room,
                                         std::atomic<size_t>* used) {
  size_t at = used->load();
  do {
    if (bytes > room - at) return std::nullopt;
  } while (
      !used->compare_exchange_weak(at, std::min(at + Aligned(bytes), room)));
  return at;
}

std::optional<size_t> GpuGroup::TakePixels(size_t bytes) {
  if (!TakeRoom(Aligned(bytes), pixels_room_, &pixels_used_))
    return std::nullopt;
  return sent_used_.fetch_add(Aligned(bytes));
}

std::optional<size_t> GpuGroup::TakeBehind(size_t bytes) {
  if (!TakeRoom(Aligned(bytes), pixels_room_, &pixels_used_))
    return std::nullopt;
  return pixels_room_ - Aligned(bytes) - behind_used_.fetch_add(Aligned(bytes));
}

// Beside images of our kernels there is room for one that the decoder decodes.
std::optional<size_t> GpuGroup::TakeImage(size_t bytes) {
  const uint64_t decoders =
      program_.decoder_class == DecoderClass::kExact ? 0 : kDecodersRoom;
  return TakeRoom(bytes, slot_->image_bytes - decoders, &images_used_);
}

void GpuGroup::PinEncoded(GroupRow* row) {
  const std::optional<size_t> at = TakeBehind(row->encoded.size());
  if (!at) return;
  std::byte* const to = slot_->pixels.data() + *at;
  memcpy(to, row->encoded.data(), row->encoded.size());
  row->encoded = {to, row->encoded.size()};
}

// Stores host values in a host's outputs; the kernel writes those of a device.
void GpuGroup::StoreHostValues(size_t row) {
  if (on_device()) return;
  for (size_t f = 0; f < fields(); ++f) {
    if (program_.fused->from_pixels(f)) continue;
    const std::span<const std::byte> value = fused_.HostValue(row, f);
    memcpy(outputs_.At(f, row), value.data(), value.size());
  }
}

absl::Status GpuGroup::ComputeOnCpu(size_t row, GpuThread* thread) {
  GroupRow& r = rows_[row];
  std::vector<std::span<std::byte>> fields_of_row;
  const std::span<const size_t> bytes = outputs_.field_bytes;
  if (on_device()) {
    size_t total = 0;
    for (size_t f = 0; f < fields(); ++f) total += bytes[f];
    if (r.values.size() != total) {
      if (const std::optional<size_t> place = TakeBehind(total)) {
        r.values = slot_->pixels.subspan(*place, total);
      } else {
        r.own_values.resize(total);
        r.values = r.own_values;
      }
    }
    size_t at = 0;
    for (size_t f = 0; f < fields(); at += bytes[f++])
      fields_of_row.emplace_back(r.values.data() + at, bytes[f]);
  } else {
    for (size_t f = 0; f < fields(); ++f)
      fields_of_row.emplace_back(outputs_.At(f, row), bytes[f]);
  }
  RETURN_IF_ERROR(program_.cpu->Run(r.input, thread->scratch(), fields_of_row));
  r.stage = RowStage::kStored;
  r.by = DecodedBy::kHost;  // also if a kernel was to decode the partner
  return absl::OkStatus();
}

bool GpuGroup::IsSound(size_t row, GpuThread* thread) const {
  JpegDecoder& decoder = thread->scratch().state()->decoder;
  if (!decoder.Open(program_.fused->EncodedOf(rows_[row].input)).ok())
    return false;
  return CheckJpegRows(&decoder, decoder.header().size.height, false).ok();
}

void GpuGroup::Forget(size_t row) {
  rows_[row] = {};
  rows_[row].stage = RowStage::kDone;
}

void GpuGroup::Run(Done done) {
  done_ = std::move(done);
  queue_->Submit(this);
}

void GpuGroup::Answer(const absl::Status& lost, ThreadState* state) {
  std::vector<absl::Status> statuses(rows_.size(), lost);
  if (lost.ok())
    for (size_t i = 0; i < rows_.size(); ++i) {
      statuses[i] = std::exchange(rows_[i].status, absl::OkStatus());
      if (statuses[i].ok()) continue;
      const bool faulted = rows_[i].stage == RowStage::kFaulted;
      rows_[i] = {};
      rows_[i].for_cpu = faulted;
    }
  const Done done = std::move(done_);
  done(statuses, state);
}

}  // namespace leat::worker
