// SPDX-License-Identifier: Apache-2.0
//
// SampleForms: the forms of one sample's images, for one row that decodes them,
// from the sample cache and the disk, with the time that the decode takes.
//
// A form that was read from a disk with the record replaces one that is to be
// made, and is offered to the sample cache. The disk is offered what the sample
// cache has and what is made. For the disk itself seek indexes are made.
// Coefficients are made for it if its seek index is used, which is in an epoch
// after the first, and the sample cache's account pays for them. A seek index
// that lies beside the dataset says nothing about earlier epochs, and is itself
// offered to the disk. A seek index that has not grown to the file's end is for
// the sample cache only.
//
// A form that the plan wants and the decode cannot pay for is left to
// background threads, if there are any.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "core/clock.h"
#include "worker/cache/disk_forms.h"
#include "worker/cache/idle_work.h"
#include "worker/cache/sample_cache.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/source/source.h"

namespace leat::worker {

// SampleOnDisk: the data that disks have of a sample.
struct SampleOnDisk {
  // nullptr: the disk cache keeps nothing of it.
  const DiskForms* forms = nullptr;
  DiskForms::DatasetPtr dataset = nullptr;
  // The form that was read with the record; there may be no disk cache.
  std::shared_ptr<const ReadForm> read = nullptr;
};

// WhoseRow: the facts about a row that decide which forms are worth making.
struct WhoseRow {
  const Digest* job = nullptr;  // nullptr: not known
  uint64_t epoch = 0;
  IdleWork* idle = nullptr;  // nullptr: only rows make forms
};

// Thread-compatible.
class SampleForms final : public FormKeeper {
 public:
  // `cache` and `dataset` outlive it, and so do the objects that `disk` and
  // `row` point to. `record`: with Source::kNoRecord there are no forms.
  SampleForms(SampleCache* cache, const SampleCache::DatasetPtr* dataset,
              uint64_t record, SampleOnDisk disk = {}, WhoseRow row = {})
      : cache_(*cache),
        dataset_(*dataset),
        record_(record),
        disk_(std::move(disk)),
        idle_(row.idle),
        terms_{.job = row.job, .epoch = row.epoch} {}
  // Gives back what was paid for the form of a file that was not decoded.
  ~SampleForms() override { cache_.forms().GiveBack(&terms_); }
  // REQUIRES: Begin was not called.
  SampleForms(SampleForms&&) = default;

  FormWish Begin(std::span<const std::byte> file, DecodeClass decode) override;
  void End(FormAnswer answer) override;
  MonotonicTime Now() const override {
    return cache_.forms().decode_clock().Now();
  }
  KeepLater Later() override;

 private:
  bool keeps_any() const {
    return record_ != Source::kNoRecord && cache_.forms().keeps_any();
  }
  void AskDisk(FormWish* wish);
  // Returns what a decode that uses `used`, if that is not null, may make for
  // the disk.
  FormKinds DiskLacks(const KeptForm& used) const;
  void EndOf(JpegFormKind refused);
  // Offers the form that is still lacking.
  void Leave(const FormAnswer& answer);

  SampleCache& cache_;
  const SampleCache::DatasetPtr& dataset_;
  const uint64_t record_;
  const SampleOnDisk disk_;
  IdleWork* const idle_;
  std::span<const std::byte> file_;
  FormKinds for_memory_;  // those that the sample cache wants made
  bool grows_ = false;
  std::optional<JpegFormKind> making_;
  FormShelf::DecodeTerms terms_;
  MonotonicTime began_;
};

}  // namespace leat::worker
