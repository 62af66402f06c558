// SPDX-License-Identifier: Apache-2.0
#include "worker/sample_forms.h"

#include <utility>

namespace leat::worker {

FormWish SampleForms::Begin(std::span<const std::byte> file) {
  if (!cache_.keeps_forms()) return {};
  FormWish wish = cache_.AskForm(dataset_, record_, file);
  file_ = file;
  making_ = wish.make.any();
  began_ = cache_.clock().Now();
  return wish;
}

// A decode that makes forms takes longer, and is no measure of anything.
void SampleForms::End(FormAnswer answer) {
  if (!cache_.keeps_forms()) return;
  if (!making_)
    SampleCache::CountDecode(dataset_, answer.used,
                             cache_.clock().Now() - began_);
  if (answer.refused.any())
    cache_.RefuseForms(dataset_, record_, answer.refused);
  for (KeptForm& form : answer.made) {
    const JpegFormKind kind = form.kind;
    if (cache_.KeepForm(dataset_, record_, file_, std::move(form))) continue;
    // It is not made in vain again.
    cache_.RefuseForms(dataset_, record_,
                       {.seek_index = kind == JpegFormKind::kSeekIndex,
                        .coefficients = kind == JpegFormKind::kCoefficients});
  }
}

}  // namespace leat::worker
