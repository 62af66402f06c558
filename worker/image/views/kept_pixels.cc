// SPDX-License-Identifier: Apache-2.0
#include "worker/image/views/kept_pixels.h"

#include <utility>
#include <vector>

#include "core/status.h"
#include "worker/image/base/pixel_rows.h"
#include "worker/image/jpeg/forms/pixels.h"

namespace leat::worker {

KeptPixels::KeptPixels(FormKeeper* keeper, std::span<const std::byte> file)
    : keeper_(keeper), file_(file) {
  if (keeper_ != nullptr)
    wish_ = keeper_->Begin(file, DecodeClass::kOtherFormat);
}

absl::StatusOr<const std::byte*> KeptPixels::Get(const ImageHeader& header,
                                                 Decode decode) {
  const Pixels::Image image = {.size = header.size,
                               .gray = header.channels == 1};
  if (wish_.use.form != nullptr && wish_.use.kind == JpegFormKind::kPixels) {
    const auto& kept = static_cast<const Pixels&>(*wish_.use.form);
    if (kept.Serves(file_.size(), image)) {
      answer_.used = JpegFormKind::kPixels;
      return kept.bytes().data();
    }
  }
  if (!wish_.make.pixels) return nullptr;
  if (header.bytes() > wish_.max_bytes) {
    answer_.refused.Add(JpegFormKind::kPixels);
    answer_.making = Duration(0);
    return nullptr;
  }
  // Code that reads the rows may read some bytes after them. The zeroes bring
  // the memory into the process, so that its cost is measured here.
  const MonotonicTime began = keeper_->Now();
  std::vector<std::byte> pixels(header.bytes() + kRowPadding);
  const MonotonicTime allocated = keeper_->Now();
  RETURN_IF_ERROR(decode(pixels.data()));
  const std::byte* const made = pixels.data();
  const MonotonicTime decoded = keeper_->Now();
  std::shared_ptr<const JpegForm> form =
      Pixels::Of(file_, image, std::move(pixels));
  answer_.making = (allocated - began) + (keeper_->Now() - decoded);
  const size_t bytes = form->size_bytes();
  made_ = {.form = std::move(form),
           .kind = JpegFormKind::kPixels,
           .bytes = bytes,
           .of_jpeg = false};
  answer_.made.push_back(made_);
  return made;
}

void KeptPixels::End() {
  if (keeper_ != nullptr) keeper_->End(std::move(answer_));
}

}  // namespace leat::worker
