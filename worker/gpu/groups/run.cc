// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/groups/run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/status.h"
#include "worker/gpu/kernels/jpeg.h"
#include "worker/gpu/kernels/names.h"

namespace leat::worker {
namespace {

// Returns the row's value of kValidField.
bool IsValid(const GroupRow& row) {
  return row.stage != RowStage::kEmpty && !row.input.padding;
}

// The alignment of decoded images, for the kernel and for decoders.
constexpr uint64_t kPartAlignment = 512;

uint64_t AlignedPart(uint64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

}  // namespace

uint64_t GroupRun::DecodedBytes(const GroupRow& row) const {
  if (row.stage != RowStage::kEncoded) return 0;
  const ImageSize room = RoomOf(row.choice.shape);
  const auto pixels =
      static_cast<uint64_t>(room.width) * static_cast<uint64_t>(room.height);
  return AlignedPart(pixels * (row.luma ? 1 : 3));
}

size_t GroupRun::PassEnd(size_t begin) const {
  const uint64_t room =
      group_.slot().image_bytes - AlignedPart(group_.images_used());
  uint64_t bytes = 0;
  size_t end = begin;
  for (; end < todo_.size() && end - begin < most_rows_; ++end) {
    bytes += DecodedBytes(group_.rows()[todo_[end]]);
    if (end > begin && bytes > room) break;
  }
  return end;
}

absl::Status GroupRun::Enqueue() {
  std::vector<GroupRow>& rows = group_.rows();
  computed_.assign(rows.size(), false);
  for (size_t row = 0; row < rows.size(); ++row)
    if (rows[row].stage == RowStage::kPixels ||
        rows[row].stage == RowStage::kEncoded)
      todo_.push_back(row);
  RETURN_IF_ERROR(ClearFaults());
  for (size_t begin = 0; begin < todo_.size();) {
    const size_t end = PassEnd(begin);
    absl::Status status =
        EnqueuePass(std::span(todo_).subspan(begin, end - begin));
    // The next pass overwrites the descriptors.
    if (status.ok() && end < todo_.size()) status = queue_.Wait();
    if (absl::IsResourceExhausted(status) && end - begin > 1) {
      RETURN_IF_ERROR(queue_.Wait());
      most_rows_ = (end - begin) / 2;
      ++splits_;
      continue;
    }
    RETURN_IF_ERROR(status);
    begin = end;
  }
  RETURN_IF_ERROR(FetchFaults());
  RETURN_IF_ERROR(FetchLeftPlaces());
  RETURN_IF_ERROR(group_.on_device() ? StoreToDevice() : FetchResults());
  for (const size_t row : todo_)
    if (computed_[row]) rows[row].stage = RowStage::kDone;
  return queue_.Mark();
}

absl::Status GroupRun::EnqueueStores() {
  computed_.assign(group_.rows().size(), false);
  RETURN_IF_ERROR(group_.on_device() ? StoreToDevice() : StoreToHost());
  return queue_.Mark();
}

absl::Status GroupRun::EnqueuePass(std::span<const size_t> rows) {
  for (size_t row = 0; row < group_.rows().size(); ++row)
    group_.fused().SkipRow(row);
  ListJpegs(rows);
  RETURN_IF_ERROR(SendPixels(rows));
  RETURN_IF_ERROR(LaunchJpegs());
  RETURN_IF_ERROR(Decode(rows));
  return Launch(rows);
}

void GroupRun::ListJpegs(std::span<const size_t> rows) {
  num_jpegs_ = 0;
  for (const size_t row : rows) {
    const GroupRow& r = group_.rows()[row];
    if (r.stage != RowStage::kPixels) continue;
    for (const Whose whose : {Whose::kRow, Whose::kPartner})
      if (const DeviceJpeg& jpeg = r.pixels[whose].jpeg; jpeg.blocks != 0)
        group_.jpegs()[num_jpegs_++] = jpeg;
  }
}

absl::Status GroupRun::LaunchJpegs() {
  if (num_jpegs_ == 0) return absl::OkStatus();
  for (const JpegKernel kernel : kJpegLaunches) {
    uint32_t threads = 0;
    for (const DeviceJpeg& jpeg : group_.jpegs().first(num_jpegs_))
      threads = std::max(threads, JpegThreads(kernel, jpeg));
    if (threads == 0) continue;
    RETURN_IF_ERROR(
        queue_.Launch(JpegKernelId(kernel),
                      JpegLaunch(threads, static_cast<uint32_t>(num_jpegs_)),
                      group_.slot().device_pixels));
  }
  return absl::OkStatus();
}

// Sends everything from the first to the last of the pass's pixels, or from the
// list of its JPEGs on: the bytes between are pixels of the same group, since
// files for the decoder lie behind them.
absl::Status GroupRun::SendPixels(std::span<const size_t> rows) {
  size_t begin = SIZE_MAX, end = 0;
  for (const size_t row : rows) {
    const GroupRow& r = group_.rows()[row];
    if (r.stage != RowStage::kPixels) continue;
    for (const Whose whose : {Whose::kRow, Whose::kPartner}) {
      const RowPixels& pixels = r.pixels[whose];
      if (pixels.bytes == 0) continue;
      begin = std::min(begin, pixels.at);
      end = std::max(end, pixels.at + pixels.bytes);
    }
  }
  if (num_jpegs_ > 0) begin = 0;
  if (begin >= end) return absl::OkStatus();
  const Slot& slot = group_.slot();
  return queue_.ToDevice(slot.device_pixels + begin, slot.pixels.data() + begin,
                         end - begin);
}

absl::Status GroupRun::Decode(std::span<const size_t> rows) {
  Slot& slot = group_.slot();
  std::vector<JpegToDecode> images;
  std::vector<size_t> row_of;
  DeviceAddress at = slot.device_images + AlignedPart(group_.images_used());
  for (const size_t row : rows) {
    GroupRow& r = group_.rows()[row];
    if (r.stage != RowStage::kEncoded) continue;
    const int64_t pixel = r.luma ? 1 : 3;
    const DecodeShape& shape = r.choice.shape;
    const ImageSize size = DecodedSize(shape);
    const int64_t pitch = RoomOf(shape).width * pixel;
    r.pixels[Whose::kRow].source = {
        .address = at,
        .held = {shape.region.x, shape.region.y, size.width, size.height},
        .pitch = pitch,
        .pixel_bytes = static_cast<int32_t>(pixel),
        // A single component takes the place of all.
        .channel_bytes = r.luma ? 0 : 1};
    images.push_back({.encoded = r.encoded,
                      .luma = r.luma,
                      .choice = r.choice,
                      .address = at,
                      .pitch = static_cast<size_t>(pitch)});
    row_of.push_back(row);
    at += DecodedBytes(r);
  }
  if (images.empty()) return absl::OkStatus();
  const MonotonicTime begin = Clock::Real().Now();
  const absl::Status decoded = slot.decoder->Decode(images);
  decoding_ += Clock::Real().Now() - begin;
  RETURN_IF_ERROR(decoded);
  for (size_t i = 0; i < images.size(); ++i) {
    GroupRow& r = group_.rows()[row_of[i]];
    if (images[i].outcome == JpegToDecode::Outcome::kRefused)
      r.stage = RowStage::kRefused;
    else if (images[i].outcome == JpegToDecode::Outcome::kFailed)
      r.stage = RowStage::kFailed;
    else
      r.by = r.choice.engines ? DecodedBy::kHardware : DecodedBy::kKernels;
  }
  return absl::OkStatus();
}

absl::Status GroupRun::Launch(std::span<const size_t> rows) {
  const Slot& slot = group_.slot();
  FusedGroup& fused = group_.fused();
  bool any = false;
  for (const size_t row : rows) {
    const GroupRow& r = group_.rows()[row];
    if (IsForRepair(r)) continue;
    // They were checked when the row was prepared.
    for (const Whose whose : {Whose::kPartner, Whose::kRow})
      if (const absl::Status bound =
              fused.BindSource(row, r.pixels[whose].source, whose);
          !bound.ok())
        return Unavailable("row {}: {}", row, Message(bound));
    computed_[row] = any = true;
  }
  if (!any) return absl::OkStatus();
  RETURN_IF_ERROR(queue_.ToDevice(slot.device_block, slot.block.data(),
                                  fused.used_bytes()));
  return group_.program().fused->Launch(group_.rows().size(), slot.device_block,
                                        &queue_);
}

// Clears the host's words, too: if no kernel runs, nothing is copied over them.
absl::Status GroupRun::ClearFaults() {
  const std::span<uint32_t> faults = group_.faults();
  std::ranges::fill(faults, 0);
  if (faults.empty() || todo_.empty()) return absl::OkStatus();
  return queue_.Fill(group_.faults_address(), 0, faults.size_bytes());
}

absl::Status GroupRun::FetchFaults() {
  const std::span<uint32_t> faults = group_.faults();
  if (faults.empty() || todo_.empty()) return absl::OkStatus();
  return queue_.ToHost(faults.data(), group_.faults_address(),
                       faults.size_bytes());
}

absl::Status GroupRun::FetchLeftPlaces() {
  const std::span<std::byte> places = group_.left_places();
  if (places.empty() || todo_.empty()) return absl::OkStatus();
  return queue_.ToHost(places.data(), group_.left_address(), places.size());
}

absl::Status GroupRun::FetchResults() {
  for (size_t field = 0; field < group_.fields(); ++field)
    if (group_.program().fused->from_pixels(field))
      RETURN_IF_ERROR(FetchField(field));
  return StoreToHost();
}

// Makes one copy for each run of rows that are adjacent on both sides.
absl::Status GroupRun::FetchField(size_t field) {
  const GroupOutputs& outputs = group_.outputs();
  const size_t bytes = outputs.field_bytes[field];
  for (size_t row = 0; row < outputs.rows;) {
    size_t end = row;
    while (end < outputs.rows && computed_[end] &&
           outputs.At(field, end) ==
               outputs.At(field, row) + (end - row) * bytes)
      ++end;
    if (end > row)
      RETURN_IF_ERROR(queue_.ToHost(outputs.At(field, row),
                                    group_.OutputAddress(row, field),
                                    (end - row) * bytes));
    row = std::max(end, row + 1);
  }
  return absl::OkStatus();
}

// Stores the results that no kernel writes.
absl::Status GroupRun::StoreToHost() {
  const GroupOutputs& outputs = group_.outputs();
  for (size_t row = 0; row < outputs.rows; ++row) {
    GroupRow& r = group_.rows()[row];
    if (r.stage == RowStage::kDone || IsForRepair(r)) continue;
    const bool empty = r.stage == RowStage::kEmpty;
    for (size_t f = 0; f < group_.fields() && empty; ++f)
      memset(outputs.At(f, row), 0, outputs.field_bytes[f]);
    if (group_.has_valid_field())
      *outputs.At(group_.fields(), row) = std::byte{IsValid(r)};
    r.stage = computed_[row] ? r.stage : RowStage::kDone;
  }
  return absl::OkStatus();
}

absl::Status GroupRun::StoreToDevice() {
  const GroupOutputs& outputs = group_.outputs();
  for (size_t row = 0; row < outputs.rows; ++row) {
    GroupRow& r = group_.rows()[row];
    if (r.stage == RowStage::kDone || IsForRepair(r)) continue;
    size_t at = 0;
    for (size_t f = 0; f < group_.fields() && !computed_[row]; ++f) {
      const size_t bytes = outputs.field_bytes[f];
      const DeviceAddress to = group_.OutputAddress(row, f);
      if (r.stage == RowStage::kEmpty)
        RETURN_IF_ERROR(queue_.Fill(to, 0, bytes));
      else
        RETURN_IF_ERROR(queue_.ToDevice(to, r.values.data() + at, bytes));
      at += bytes;
    }
    if (group_.has_valid_field())
      RETURN_IF_ERROR(queue_.Fill(group_.OutputAddress(row, group_.fields()),
                                  IsValid(r), 1));
    r.stage = computed_[row] ? r.stage : RowStage::kDone;
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
