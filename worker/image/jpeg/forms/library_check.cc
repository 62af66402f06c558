// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/library_check.h"

#include <csetjmp>
#include <memory>
#include <string>
#include <vector>

#include "worker/image/base/known_images.h"
#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/progressive_scans.h"
#include "worker/image/jpeg/forms/recorder.h"
#include "worker/image/jpeg/scan/errors.h"

#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && __has_include(<jpegint.h>)
// The versions whose source was read: 2.0 to 3.x have the same decode_mcu.
#if LIBJPEG_TURBO_VERSION_NUMBER >= 2000000 && \
    LIBJPEG_TURBO_VERSION_NUMBER < 4000000
#define LEAT_JPEG_TAKES_MCUS 1
#endif
#endif

#ifdef LEAT_JPEG_TAKES_MCUS
extern "C" {
#define JPEG_INTERNALS
#include <jpegint.h>
}
#undef MAX
#undef MIN
#endif

namespace leat::worker {

#ifdef LEAT_JPEG_TAKES_MCUS

namespace {

boolean NextMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks) {
  if (static_cast<McuSource*>(cinfo->client_data)->Next(blocks)) return TRUE;
  JpegErrors* const errors =
      JpegErrors::Of(reinterpret_cast<j_common_ptr>(cinfo));
  errors->no_mcus = true;
  std::longjmp(errors->jump, 1);
}

}  // namespace

void TakeMcusFrom(McuSource* source, j_decompress_ptr cinfo) {
  cinfo->client_data = source;
  cinfo->entropy->decode_mcu = NextMcu;
}

jvirt_barray_ptr* CoefficientsOf(j_decompress_ptr cinfo) {
  return cinfo->coef->coef_arrays;
}

namespace {

// Counts the MCUs that libjpeg asks for.
class CountingSource final : public McuSource {
 public:
  explicit CountingSource(McuSource* source) : source_(source) {}
  bool Next(JBLOCKROW* blocks) override {
    ++asked_;
    return source_->Next(blocks);
  }
  size_t asked() const { return asked_; }

 private:
  McuSource* const source_;
  size_t asked_ = 0;
};

constexpr size_t kMostTrialBytes = 1 << 20;

// A known file, decoded by libjpeg alone or with a source of ours.
struct Trial {
  enum class Way { kPlain, kRecorder, kStoredScans, kCoefficients };

  std::string file;
  jpeg_decompress_struct cinfo = {};
  JpegErrors errors;
  HuffmanTables tables;
  FileScan scan;
  WantedBlocks wanted;
  FormRecorder recorder;
  CountingSource source{&recorder};
  ProgressiveScans stored;
  std::unique_ptr<const JpegForm> form;
  CoefficientReader reader;
  std::vector<uint8_t> pixels;

  // Returns false if the decoding did not come to its end.
  bool Run(Way way) {
    std::span<const std::byte> bytes = std::as_bytes(std::span(file));
    if (way == Way::kCoefficients) bytes = OfForm().file_header();
    cinfo.err = errors.Init();
    if (setjmp(errors.jump) != 0) {
      jpeg_destroy_decompress(&cinfo);
      return false;
    }
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(bytes.data()),
                 static_cast<unsigned long>(bytes.size()));
    jpeg_read_header(&cinfo, TRUE);
    cinfo.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&cinfo);
    const size_t row_bytes = size_t{3} * cinfo.output_width;
    pixels.resize(row_bytes * cinfo.output_height);
    const bool taken = Take(way, bytes);
    while (taken && cinfo.output_scanline < cinfo.output_height) {
      JSAMPROW row = pixels.data() + row_bytes * cinfo.output_scanline;
      jpeg_read_scanlines(&cinfo, &row, 1);
    }
    jpeg_destroy_decompress(&cinfo);
    return taken;
  }
  bool Take(Way way, std::span<const std::byte> bytes) {
    if (way == Way::kPlain) return true;
    if (way == Way::kStoredScans)
      return stored.Take(&cinfo, bytes, kMostTrialBytes).ok();
    const bool reads_codes = way == Way::kRecorder;
    if (!DescribeScan(cinfo, bytes, reads_codes ? &tables : nullptr, &scan,
                      &wanted))
      return false;
    if (reads_codes) {
      recorder.Begin(bytes, scan, wanted, {}, 0);
      TakeMcusFrom(&source, &cinfo);
    } else {
      reader.Begin(OfForm(), scan, wanted);
      TakeMcusFrom(&reader, &cinfo);
    }
    return true;
  }
  bool MakeForm() {
    auto made = stored.Make();
    if (!made.ok()) return false;
    form = *std::move(made);
    return true;
  }
  const Coefficients& OfForm() const {
    return static_cast<const Coefficients&>(*form);
  }
};

bool TryMcus() {
  const auto trial = std::make_unique<Trial>();
  trial->file = KnownImages().front();  // JPEG 4:2:0
  if (!trial->Run(Trial::Way::kPlain)) return false;
  const std::vector<uint8_t> pixels = std::move(trial->pixels);
  return trial->Run(Trial::Way::kRecorder) && trial->pixels == pixels &&
         trial->source.asked() ==
             size_t{trial->scan.layout.columns} * trial->scan.layout.rows;
}

bool TryCoefficients() {
  const auto trial = std::make_unique<Trial>();
  trial->file = KnownImages().at(1);  // JPEG 4:2:2 progressive
  if (!trial->Run(Trial::Way::kPlain)) return false;
  const std::vector<uint8_t> pixels = std::move(trial->pixels);
  if (!trial->Run(Trial::Way::kStoredScans) || trial->pixels != pixels ||
      !trial->MakeForm())
    return false;
  trial->pixels.clear();
  return trial->Run(Trial::Way::kCoefficients) && trial->pixels == pixels;
}

}  // namespace

bool LibraryTakesMcus() {
  static const bool takes = TryMcus();
  return takes;
}

bool LibraryGivesCoefficients() {
  static const bool gives = LibraryTakesMcus() && TryCoefficients();
  return gives;
}

#else

void TakeMcusFrom(McuSource*, j_decompress_ptr) {}
bool LibraryTakesMcus() { return false; }
bool LibraryGivesCoefficients() { return false; }
jvirt_barray_ptr* CoefficientsOf(j_decompress_ptr) { return nullptr; }

#endif

}  // namespace leat::worker
