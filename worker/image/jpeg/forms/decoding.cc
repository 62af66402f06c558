// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/decoding.h"

#include <utility>

#include "core/status.h"
#include "worker/image/formulas/jpeg_pixel.h"
#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/library_check.h"
#include "worker/image/jpeg/scan/blocks.h"

namespace leat::worker {
namespace {

absl::Status NothingRecorded() {
  return FailedPrecondition(
      "no form of the JPEG was made: no decoding was told to, or it did not "
      "begin");
}

absl::Status NoMcusTaken() {
  return Unimplemented(
      "forms of JPEGs are off: libjpeg is not one that takes coefficients");
}

// Describes the scan of a file whose header alone was read, and the tables of
// its components. Returns false if one is missing, or makes no code.
bool DescribeBlocks(const jpeg_decompress_struct& cinfo,
                    std::span<const std::byte> file, const BlockWindow& window,
                    HuffmanTables* tables, FileScan* scan,
                    std::array<BlockSteps, 3>* steps) {
  const size_t left = cinfo.src->bytes_in_buffer;
  const auto across = static_cast<size_t>(window.across);
  const auto down = static_cast<size_t>(window.down);
  const auto components = static_cast<size_t>(cinfo.num_components);
  if (left > file.size() || components > steps->size()) return false;
  if (tables != nullptr && !tables->Build(cinfo, left)) return false;
  const auto mcus = [](size_t pixels, size_t unit) {
    return static_cast<uint32_t>((pixels + 8 * unit - 1) / (8 * unit));
  };
  scan->layout = {
      .width = static_cast<uint16_t>(cinfo.image_width),
      .height = static_cast<uint16_t>(cinfo.image_height),
      .components = static_cast<uint8_t>(components),
      .blocks = static_cast<uint8_t>(across * down + components - 1),
      .columns = mcus(cinfo.image_width, across),
      .rows = mcus(cinfo.image_height, down),
      .scan_begin = static_cast<uint32_t>(file.size() - left)};
  scan->data = {
      reinterpret_cast<const uint8_t*>(file.data()) + file.size() - left, left};
  for (size_t i = 0; i < scan->layout.blocks; ++i) {
    const size_t number = i < across * down ? 0 : i - across * down + 1;
    const jpeg_component_info& component = *cinfo.cur_comp_info[number];
    // The scan may have the components in another order than the header.
    if (&component != cinfo.comp_info + number) return false;
    const int table = component.quant_tbl_no;
    if (table < 0 || table >= NUM_QUANT_TBLS ||
        cinfo.quant_tbl_ptrs[table] == nullptr)
      return false;
    for (size_t at = 0; at < DCTSIZE2; ++at)
      (*steps)[number][at] = BlockStep(
          kZigzag[at], cinfo.quant_tbl_ptrs[table]->quantval[kZigzag[at]]);
    scan->layout.component_of[i] = static_cast<uint8_t>(number);
    scan->dc[i] =
        tables == nullptr ? nullptr : &tables->dc(component.dc_tbl_no);
    scan->ac[i] =
        tables == nullptr ? nullptr : &tables->ac(component.ac_tbl_no);
  }
  return true;
}

}  // namespace

void FormDecoding::Open(std::span<const std::byte> file, const JpegForm* form) {
  file_ = source_ = file;
  if (form != nullptr && form->kind() == JpegFormKind::kPixels) {
    Use(static_cast<const Pixels*>(form));
  } else {
    pixels_ = nullptr;
    mcus_ = static_cast<const McuForm*>(form);
  }
  tables_.SetIndexed(mcus_ != nullptr);
  kinds_ = {};
  recording_ = absl::OkStatus();
  used_ = given_up_ = wants_pixels_ = progressive_ = false;
  grows_ = begun_growing_ = false;
  growing_ = absl::OkStatus();
  made_pixels_ = nullptr;
}

void FormDecoding::Record(FormKinds kinds, size_t max_bytes) {
  kinds_ = kinds;
  max_bytes_ = max_bytes;
  recording_ = NothingRecorded();
  wants_pixels_ = kinds.pixels;
}

void FormDecoding::Use(const Pixels* pixels) {
  pixels_ = pixels;
  mcus_ = pixels == nullptr ? nullptr : pixels->index();
}

const Pixels* FormDecoding::Serve(const Pixels::Image& image) {
  used_ = pixels_ != nullptr && pixels_->Serves(file_.size(), image);
  return used_ ? pixels_ : nullptr;
}

bool FormDecoding::WantsPixels() { return std::exchange(wants_pixels_, false); }

absl::StatusOr<std::vector<std::byte>> FormDecoding::PixelRoom(
    StoredSize size, bool gray) const {
  const size_t bytes = Pixels::BytesOf(size, gray);
  if (bytes > max_bytes_)
    return ResourceExhausted("pixels of a JPEG have {} bytes, want at most {}",
                             bytes, max_bytes_);
  return std::vector<std::byte>(bytes);
}

void FormDecoding::SetPixels(
    absl::StatusOr<std::unique_ptr<const Pixels>> pixels) {
  grows_ = begun_growing_ = false;
  made_pixels_ = std::move(pixels);
  Use(made_pixels_.ok() ? made_pixels_->get() : nullptr);
}

std::unique_ptr<const SeekIndex> FormDecoding::TakeWholeIndex() const {
  absl::StatusOr<std::unique_ptr<const SeekIndex>> index = TakeGrown();
  return index.ok() && *index != nullptr && (*index)->is_whole()
             ? *std::move(index)
             : nullptr;
}

bool FormDecoding::StandIn(const jpeg_decompress_struct& cinfo) {
  if (given_up_ || kinds_.any() || !cinfo.progressive_mode ||
      mcus_ == nullptr || mcus_->kind() != JpegFormKind::kCoefficients ||
      mcus_->header().file_bytes != file_.size() || !LibraryGivesCoefficients())
    return false;
  source_ = static_cast<const Coefficients*>(mcus_)->file_header();
  return true;
}

void FormDecoding::Begin(j_decompress_ptr cinfo) {
  used_ = false;
  if (given_up_) return;
  if (kinds_.seek_index || kinds_.coefficients) {
    recording_ = Record(cinfo);
    return;
  }
  if (grows_) {
    growing_ = BeginGrowing(cinfo);
    return;
  }
  if (mcus_ == nullptr || !CheckHasForms(*cinfo).ok() || !LibraryTakesMcus())
    return;
  wanted_ = {};
  const bool reads_codes = mcus_->kind() != JpegFormKind::kCoefficients;
  if (!DescribeScan(*cinfo, source_, reads_codes ? &tables_ : nullptr, &scan_,
                    &wanted_) ||
      !mcus_->Fits(scan_.layout, source_.size()))
    return;
  TakeMcusFrom(mcus_->Begin(scan_, wanted_, &readers_), cinfo);
  used_ = true;
}

absl::Status FormDecoding::BeginGrowing(j_decompress_ptr cinfo) {
  RETURN_IF_ERROR(CheckHasForms(*cinfo));
  wanted_ = {};
  if (!LibraryTakesMcus() ||
      !DescribeScan(*cinfo, source_, &tables_, &scan_, &wanted_) ||
      (mcus_ != nullptr && !mcus_->Fits(scan_.layout, source_.size())))
    return NoMcusTaken();
  const auto* const index = static_cast<const SeekIndex*>(mcus_);
  notes_.Begin(index, scan_);
  readers_.seek.Begin(index, scan_, wanted_, &notes_);
  TakeMcusFrom(&readers_.seek, cinfo);
  used_ = mcus_ != nullptr;
  begun_growing_ = true;
  return absl::OkStatus();
}

absl::Status FormDecoding::Record(j_decompress_ptr cinfo) {
  progressive_ = cinfo->progressive_mode && kinds_.coefficients &&
                 LibraryGivesCoefficients();
  if (progressive_) return stored_.Take(cinfo, file_, max_bytes_, give_up_);
  RETURN_IF_ERROR(CheckHasForms(*cinfo));
  wanted_ = {};
  if (!LibraryTakesMcus() ||
      !DescribeScan(*cinfo, file_, &tables_, &scan_, &wanted_))
    return NoMcusTaken();
  recorder_.Begin(file_, scan_, wanted_, kinds_, max_bytes_);
  TakeMcusFrom(&recorder_, cinfo);
  return absl::OkStatus();
}

bool FormDecoding::ReadBlocks(const jpeg_decompress_struct& cinfo,
                              size_t max_bytes, JpegBlocks* blocks) {
  used_ = false;
  if (given_up_ || !CheckHasForms(cinfo).ok()) return false;
  const bool codes =
      mcus_ == nullptr || mcus_->kind() != JpegFormKind::kCoefficients;
  if (!DescribeBlocks(cinfo, file_, blocks->window, codes ? &tables_ : nullptr,
                      &scan_, &blocks->steps) ||
      (mcus_ != nullptr && !mcus_->Fits(scan_.layout, file_.size())))
    return false;
  const bool notes = grows_ && codes;
  if (notes) notes_.Begin(static_cast<const SeekIndex*>(mcus_), scan_);
  const bool read = block_reader_.Read(scan_, mcus_, notes ? &notes_ : nullptr,
                                       max_bytes, blocks);
  used_ = read && mcus_ != nullptr;
  begun_growing_ = read && notes;
  return read;
}

bool FormDecoding::MayFindCodes() const {
  return !given_up_ &&
         (mcus_ == nullptr || mcus_->kind() == JpegFormKind::kSeekIndex);
}

bool FormDecoding::FindCodes(const jpeg_decompress_struct& cinfo,
                             DeviceCodes* codes) {
  used_ = false;
  const uint32_t interval = cinfo.restart_interval;
  if (!MayFindCodes() || !CheckHasCodes(cinfo).ok() ||
      !DescribeBlocks(cinfo, file_, codes->window, nullptr, &scan_,
                      &codes->steps) ||
      (mcus_ != nullptr &&
       (interval > 0 || !mcus_->Fits(scan_.layout, file_.size()))))
    return false;
  for (size_t i = 0; i < scan_.layout.components; ++i) {
    const jpeg_component_info& component = *cinfo.cur_comp_info[i];
    codes->dc[i] = code_tables_.Dc(cinfo, component.dc_tbl_no);
    codes->ac[i] = code_tables_.Ac(cinfo, component.ac_tbl_no);
    if (codes->dc[i] == nullptr || codes->ac[i] == nullptr) return false;
  }
  const auto* const index = static_cast<const SeekIndex*>(mcus_);
  used_ = index != nullptr && codes->Find(scan_, *index);
  // A scan that ends before its first restart marker needs none.
  const bool marked =
      interval > 0 && interval < scan_.layout.columns * scan_.layout.rows;
  if (!used_ &&
      !(marked ? codes->FindRestarts(scan_, interval) : codes->Take(scan_)))
    return false;
  // The decoder itself reads no code, and so leaves no index. Files with restart
  // markers get none.
  begun_growing_ = grows_ && interval == 0;
  codes->leaves_index = begun_growing_ && !used_;
  if (grows_) notes_.Begin(index, scan_);
  return true;
}

void FormDecoding::GiveUp() {
  given_up_ = true;
  used_ = false;
  if (grows_)
    growing_ = DataLoss(
        "JPEG's data break off, or have a code that is none: no form is made "
        "of it");
  StandBack();
}

absl::StatusOr<std::unique_ptr<const SeekIndex>> FormDecoding::TakeGrown()
    const {
  RETURN_IF_ERROR(growing_);
  if (!begun_growing_) return NothingRecorded();
  return notes_.Grown(file_);
}

absl::StatusOr<std::unique_ptr<const JpegForm>> FormDecoding::Take(
    JpegFormKind kind) {
  if (!kinds_.Has(kind)) return NothingRecorded();
  if (kind == JpegFormKind::kPixels) {
    if (wants_pixels_) return NothingRecorded();
    RETURN_IF_ERROR(made_pixels_.status());
    return *std::exchange(made_pixels_, NothingRecorded());
  }
  RETURN_IF_ERROR(recording_);
  if (!progressive_) return recorder_.Make(kind);
  if (kind == JpegFormKind::kCoefficients) return stored_.Make();
  return FailedPrecondition("JPEG is progressive: it has no seek index");
}

}  // namespace leat::worker
