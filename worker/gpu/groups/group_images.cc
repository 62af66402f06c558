// SPDX-License-Identifier: Apache-2.0
//
// How the host's part of an image's decoding gets into the slot's memory: the
// file's own codes where a seek index leads to them, else coefficients, and
// pixels of odd files.
#include <cstring>

#include "core/crc32c.h"
#include "core/status.h"
#include "worker/gpu/decoding/jpeg_upload.h"
#include "worker/gpu/groups/group.h"
#include "worker/image/program/scratch_state.h"

namespace leat::worker {
namespace {

// The most memory for blocks that a thread keeps.
constexpr size_t kKeptBlockBytes = size_t{4} << 20;

// Blocks that take more bytes than pixels in colours, and more than this, are
// not used: no photo has such blocks.
constexpr size_t kOddBlockBytes = size_t{64} << 10;

// Estimates the bytes of the blocks: for photos two to three times the bytes of
// the window's part of the file.
double LikelyBytes(const BlockWindow& window, size_t file_bytes) {
  const double part =
      static_cast<double>(window.window.width * window.window.height) /
      static_cast<double>(window.size.width * window.size.height);
  return 2 * part * static_cast<double>(file_bytes);
}

// Describes the pixels that kernels make at this address.
FusedSource SourceOf(const StoredRect& window, bool gray,
                     DeviceAddress address) {
  const int32_t pixel = gray ? 1 : 4;
  return {.address = address,
          .held = window,
          .pitch = pixel * window.width,
          .pixel_bytes = pixel};
}

}  // namespace

absl::StatusOr<GpuGroup::Sent> GpuGroup::SendJpeg(
    size_t row, const StoredRect& window, std::span<const std::byte> file,
    GpuThread* thread, RowPixels* pixels) {
  if (jpegs_.empty()) return Sent::kNo;
  JpegDecoder& decoder = thread->scratch().state()->decoder;
  const std::optional<BlockWindow> of =
      decoder.BlocksOf(window, program_.fused->gray());
  if (!of) return Sent::kNo;
  const std::optional<size_t> room =
      TakeImage(CodesImageBytes(*of, file.size()));
  if (!room) return Sent::kNo;
  const DeviceAddress image = slot_->device_images + *room;
  if (!faults_.empty()) {
    ASSIGN_OR_RETURN(const bool found,
                     decoder.FindCodes(*of, &thread->codes()));
    if (found)
      return SendCodes(row, window, file, image, thread->codes(), pixels);
  }
  return SendBlocks(*of, window, image, file.size(), thread, pixels);
}

GpuGroup::Sent GpuGroup::SendCodes(size_t row, const StoredRect& window,
                                   std::span<const std::byte> file,
                                   DeviceAddress image,
                                   const DeviceCodes& codes,
                                   RowPixels* pixels) {
  const size_t bytes = CodesPayloadBytes(codes);
  const std::optional<size_t> at = TakePixels(bytes);
  if (!at) return Sent::kNoRoom;
  LeftIndex left;
  if (codes.leaves_index) left = TakeLeft(codes, file);
  const CodesAddresses to{
      .payload = slot_->device_pixels + *at,
      .image = image,
      .fault = faults_address() + row * sizeof(uint32_t),
      .places = left.rows > 0 ? left_address() + left.at : DeviceAddress()};
  WriteCodesPayload(codes, to, slot_->pixels.data() + *at);
  may_fault_ = true;
  *pixels = {.source = SourceOf(window, codes.window.gray, image),
             .at = *at,
             .bytes = bytes,
             .jpeg = DescribeCodes(codes, to),
             .left = std::move(left)};
  return Sent::kYes;
}

LeftIndex GpuGroup::TakeLeft(const DeviceCodes& codes,
                             std::span<const std::byte> file) {
  const uint32_t rows = codes.window.end_row;
  const std::optional<size_t> at =
      TakeRoom(SeekIndex::PlacesOf(codes.layout, rows) * sizeof(CodePlace),
               left_.size(), &left_used_);
  if (!at) return {};
  // The sum of an index of a part is not used.
  const bool whole = rows == codes.layout.rows;
  return {.header = {.layout = codes.layout,
                     .file_bytes = static_cast<uint32_t>(file.size()),
                     .file_crc = whole ? Crc32c(file) : 0},
          .rows = rows,
          .at = *at};
}

void GpuGroup::KeepLeftIndexes() {
  for (GroupRow& row : rows_) {
    LeftIndex left = std::exchange(row.pixels[Whose::kRow].left, {});
    if (left.keep == nullptr || row.stage == RowStage::kFaulted) continue;
    const uint32_t rows = left.rows;
    const ScanLayout& layout = left.header.layout;
    const auto* const places =
        reinterpret_cast<const CodePlace*>(left_.data() + left.at);
    auto index = SeekIndex::OfPlaces(
        left.header, rows, {places, SeekIndex::PlacesOf(layout, rows)});
    if (!index.ok()) continue;
    const size_t bytes = (*index)->size_bytes();
    left.keep({.form = *std::move(index),
               .kind = JpegFormKind::kSeekIndex,
               .bytes = bytes,
               .whole = rows == layout.rows});
  }
}

absl::StatusOr<GpuGroup::Sent> GpuGroup::SendBlocks(
    const BlockWindow& of, const StoredRect& window, DeviceAddress image,
    size_t file_bytes, GpuThread* thread, RowPixels* pixels) {
  // If there will hardly be room, the read is skipped.
  if (LikelyBytes(of, file_bytes) >
      static_cast<double>(pixels_room_ - pixels_used_.load()))
    return Sent::kNoRoom;
  const auto most =
      static_cast<size_t>(4 * window.width * window.height) + kOddBlockBytes;
  JpegBlocks& blocks = thread->blocks();
  JpegDecoder& decoder = thread->scratch().state()->decoder;
  ASSIGN_OR_RETURN(const bool read, decoder.ReadBlocks(of, most, &blocks));
  const size_t bytes = read ? JpegPayloadBytes(blocks) : 0;
  const std::optional<size_t> at =
      read ? TakePixels(bytes) : std::optional<size_t>();
  if (at) {
    WriteJpegPayload(blocks, slot_->pixels.data() + *at);
    *pixels = {.source = SourceOf(window, of.gray, image),
               .at = *at,
               .bytes = bytes,
               .jpeg = DescribeJpeg(blocks, slot_->device_pixels + *at, image)};
  }
  if (blocks.held() > kKeptBlockBytes) blocks = {};
  return !read ? Sent::kNo : at ? Sent::kYes : Sent::kNoRoom;
}

absl::StatusOr<bool> GpuGroup::DecodeWindow(size_t row,
                                            const StoredRect& window,
                                            std::span<const std::byte> file,
                                            GpuThread* thread,
                                            RowPixels* pixels) {
  ASSIGN_OR_RETURN(const Sent sent,
                   SendJpeg(row, window, file, thread, pixels));
  if (sent != Sent::kNo) return sent == Sent::kYes;
  const bool gray = program_.fused->gray();
  const size_t pixel = gray ? 1 : 4;
  const size_t pitch = static_cast<size_t>(window.width) * pixel;
  const size_t bytes = pitch * static_cast<size_t>(window.height);
  const std::optional<size_t> place = TakePixels(bytes);
  if (!place) return false;
  const size_t at = *place;
  JpegDecoder& decoder = thread->scratch().state()->decoder;
  RETURN_IF_ERROR(decoder.Start(window, gray));
  std::byte* to = slot_->pixels.data() + at;
  PixelRows rows;
  for (int64_t y = 0; y < window.height; y += rows.count) {
    RETURN_IF_ERROR(decoder.ReadRows(&rows));
    for (int i = 0; i < rows.count; ++i, to += pitch)
      memcpy(to, rows.first + i * rows.stride, pitch);
  }
  RETURN_IF_ERROR(decoder.damage());
  *pixels = {.source = {.address = slot_->device_pixels + at,
                        .held = window,
                        .pitch = static_cast<int64_t>(pitch),
                        .pixel_bytes = static_cast<int32_t>(pixel)},
             .at = at,
             .bytes = bytes};
  return true;
}

}  // namespace leat::worker
