// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/sample_forms.h"

#include <utility>

namespace leat::worker {
namespace {

// True if one of the others decodes faster than the kind.
bool IsLess(JpegFormKind kind, FormKinds others) {
  for (const JpegFormKind other : kJpegFormKinds)
    if (others.Has(other) && other > kind) return true;
  return false;
}

// A decode makes at most one kind.
std::optional<JpegFormKind> KindOf(FormKinds kinds) {
  for (const JpegFormKind kind : kJpegFormKinds)
    if (kinds.Has(kind)) return kind;
  return std::nullopt;
}

bool IsBetter(const KeptForm& form, const KeptForm& than) {
  return than.form == nullptr || form.kind > than.kind ||
         (form.kind == than.kind && form.whole && !than.whole);
}

}  // namespace

FormWish SampleForms::Begin(std::span<const std::byte> file,
                            DecodeClass decode) {
  if (!keeps_any()) return {};
  file_ = file;
  // A device begins a decode, and leaves some of them to the CPU.
  cache_.forms().GiveBack(&terms_);
  terms_ = {.decode = decode, .job = terms_.job, .epoch = terms_.epoch};
  FormWish wish = cache_.forms().WishFor(dataset_, record_, file, &terms_);
  for_memory_ = wish.make;
  // Pixels, the only form of another format, are not for disks.
  if (decode != DecodeClass::kOtherFormat &&
      (disk_.forms != nullptr || disk_.read != nullptr) && !terms_.plainly)
    AskDisk(&wish);
  making_ = KindOf(wish.make);
  grows_ = wish.grow;
  began_ = Now();
  return wish;
}

void SampleForms::AskDisk(FormWish* wish) {
  const KeptForm* const read = disk_.read != nullptr && disk_.read->IsOf(file_)
                                   ? &disk_.read->kept
                                   : nullptr;
  const bool at_hand = read != nullptr && !IsLess(read->kind, wish->make);
  if (at_hand && wish->make.any()) {
    cache_.forms().KeepForm(dataset_, record_, file_, *read);
    cache_.forms().GiveBack(&terms_);
    for_memory_ = wish->make = {};
  }
  if (wish->make.any()) return;
  const bool better = read != nullptr && IsBetter(*read, wish->use);
  if (better) {
    if (wish->grow) cache_.forms().KeepForm(dataset_, record_, file_, *read);
    wish->use = *read;
    wish->grow = false;
  }
  if (disk_.forms == nullptr) return;
  if (wish->use.form != nullptr && wish->use.whole &&
      (!better || disk_.read->beside_dataset))
    disk_.forms->KeepForm(disk_.dataset, record_, wish->use);
  const std::optional<JpegFormKind> lacks = KindOf(DiskLacks(wish->use));
  if (!lacks) return;
  const std::optional<JpegFormKind> instead =
      wish->use.form == nullptr ? std::nullopt : std::optional(wish->use.kind);
  if (!FormShelf::Repays(dataset_, *lacks, instead, file_.size(), terms_) ||
      !cache_.forms().PayFor(dataset_, *lacks, file_.size(), &terms_))
    return;
  wish->make = FormKinds::Only(*lacks);
  wish->use = {};
  wish->grow = false;
  wish->max_bytes = disk_.forms->max_form_bytes();
}

FormKinds SampleForms::DiskLacks(const KeptForm& used) const {
  const FormKinds kinds = disk_.forms->kinds();
  JpegFormKind next = JpegFormKind::kCoefficients;
  // A progressive file has only coefficients. It was found in an earlier epoch
  // that it has no seek index.
  const bool known = used.form != nullptr && used.whole;
  if (!known && kinds.seek_index &&
      !disk_.forms->HasRefused(disk_.dataset, record_,
                               JpegFormKind::kSeekIndex))
    next = JpegFormKind::kSeekIndex;
  // Only seek indexes from the disk count: other ones do not show that the
  // record was requested in an earlier epoch.
  if (known && (used.kind >= JpegFormKind::kCoefficients ||
                disk_.read == nullptr || disk_.read->beside_dataset))
    return {};
  return kinds.Has(next) &&
                 disk_.forms->Wants(disk_.dataset, record_, next, file_.size())
             ? FormKinds::Only(next)
             : FormKinds();
}

void SampleForms::End(FormAnswer answer) {
  if (!keeps_any()) return;
  cache_.forms().CountDecode(dataset_,
                             {.used = answer.used,
                              .made = making_,
                              .file_bytes = file_.size(),
                              .took = Now() - began_,
                              .making = answer.making},
                             &terms_);
  // A decode of another format makes its pixels at hardly any cost.
  if (idle_ != nullptr && terms_.lacks &&
      terms_.decode != DecodeClass::kOtherFormat &&
      !answer.impossible.Has(*terms_.lacks))
    Leave(answer);
  if (idle_ != nullptr && for_memory_.any())
    idle_->Forget(dataset_, record_, terms_.field);
  if (answer.impossible.any())
    cache_.forms().RefuseForms(dataset_, record_, file_, answer.impossible);
  for (const JpegFormKind kind : kJpegFormKinds)
    if (answer.refused.Has(kind)) EndOf(kind);
  for (KeptForm& form : answer.made) {
    const JpegFormKind kind = form.kind;
    if (disk_.forms != nullptr && form.whole)
      disk_.forms->KeepForm(disk_.dataset, record_, form);
    if (grows_) {
      cache_.forms().KeepForm(dataset_, record_, file_, std::move(form));
      continue;
    }
    if (!for_memory_.Has(kind) ||
        cache_.forms().KeepForm(dataset_, record_, file_, std::move(form)))
      continue;
    // Prevents another attempt in vain.
    cache_.forms().RefuseForms(dataset_, record_, file_, FormKinds::Only(kind));
  }
}

FormKeeper::KeepLater SampleForms::Later() {
  if (!grows_) return nullptr;
  return [&cache = cache_, dataset = dataset_, record = record_, file = file_,
          disk = disk_.forms, on_disk = disk_.dataset](KeptForm form) {
    if (disk != nullptr && form.whole) disk->KeepForm(on_disk, record, form);
    cache.forms().KeepForm(dataset, record, file, std::move(form));
  };
}

void SampleForms::Leave(const FormAnswer& answer) {
  for (const KeptForm& form : answer.made)
    if (form.kind == terms_.lacks && form.whole) return;
  if (FormShelf::UsesAfter(dataset_, terms_) <= 0)
    return idle_->Forget(dataset_, record_, terms_.field);
  idle_->Offer({.dataset = dataset_,
                .record = record_,
                .field = terms_.field,
                .file = file_,
                .kind = *terms_.lacks,
                .gray = answer.gray,
                .pixel_halvings = answer.pixel_halvings,
                .job = terms_.job == nullptr ? Digest() : *terms_.job,
                .epoch = terms_.epoch});
}

// Coefficients may have been too large for the sample cache and not for the
// disk, or the other way round.
void SampleForms::EndOf(JpegFormKind refused) {
  const bool of_no_kind = refused == JpegFormKind::kSeekIndex;
  const bool memory = for_memory_.Has(refused);
  if (memory || of_no_kind)
    cache_.forms().RefuseForms(dataset_, record_, file_,
                               FormKinds::Only(refused));
  if (disk_.forms != nullptr && (!memory || of_no_kind))
    disk_.forms->RefuseForm(disk_.dataset, record_, refused);
}

}  // namespace leat::worker
