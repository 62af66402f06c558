// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/decode/kept_decode.h"

#include <utility>

#include "core/status.h"
#include "worker/image/jpeg/forms/form.h"
#include "worker/image/jpeg/forms/seek_index.h"

namespace leat::worker {

KeptDecode::KeptDecode(FormKeeper* keeper, std::span<const std::byte> file,
                       DecodeClass decode)
    : keeper_(keeper), file_(file) {
  if (keeper_ != nullptr) wish_ = keeper_->Begin(file, decode);
}

absl::Status KeptDecode::Open(JpegDecoder& decoder) const {
  RETURN_IF_ERROR(decoder.Open(file_, wish_.use.form.get()));
  if (wish_.make.any()) decoder.MakeForms(wish_.make, wish_.max_bytes);
  if (wish_.grow) decoder.GrowSeekIndex();
  return absl::OkStatus();
}

void KeptDecode::End(JpegDecoder& decoder) const {
  if (keeper_ == nullptr) return;
  FormAnswer answer;
  answer.gray = decoder.gray();
  answer.pixel_halvings = decoder.pixel_halvings();
  answer.impossible.pixels = !decoder.KeepsPixels();
  if (wish_.use.form != nullptr && decoder.used_form())
    answer.used = wish_.use.kind;
  for (const JpegFormKind kind : kJpegFormKinds) {
    if (!wish_.make.Has(kind)) continue;
    absl::StatusOr<std::unique_ptr<const JpegForm>> form =
        decoder.TakeForm(kind);
    if (form.ok()) {
      const size_t bytes = (*form)->size_bytes();
      answer.made.push_back({*std::move(form), kind, bytes});
    } else {
      answer.refused.Add(kind);
    }
  }
  if (wish_.grow) {
    absl::StatusOr<std::unique_ptr<const JpegForm>> grown = decoder.TakeGrown();
    if (!grown.ok()) {
      answer.refused.Add(JpegFormKind::kSeekIndex);
    } else if (*grown != nullptr) {
      const size_t bytes = (*grown)->size_bytes();
      const bool whole = static_cast<const SeekIndex&>(**grown).is_whole();
      answer.made.push_back(
          {*std::move(grown), JpegFormKind::kSeekIndex, bytes, whole});
    }
  }
  keeper_->End(std::move(answer));
}

}  // namespace leat::worker
