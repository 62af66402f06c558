// SPDX-License-Identifier: Apache-2.0
//
// SampleForms: the forms of one sample's JPEG, for one row that decodes it: as
// the sample cache and the disk have them, with what the decode takes.
//
// A form that a disk gave with the record takes the place of one that is to be
// made, and the sample cache is offered it. The disk is offered what the sample
// cache has and what is made. For the disk itself seek indexes are made, and
// coefficients where its seek index is used, which is in an epoch after the
// first, if the sample cache's account pays for them. A seek index that lies
// beside the dataset says nothing of epochs before, and is itself offered to
// the disk. A seek index that has not grown to the file's end is for the sample
// cache alone.
//
// What the plan wants and the decode cannot pay for is left to threads that
// nobody waits for, if there are any.
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

namespace leat::worker {

// SampleOnDisk says what disks have of a sample.
struct SampleOnDisk {
  const DiskForms* forms = nullptr;  // null: the disk cache keeps nothing of it
  DiskForms::DatasetPtr dataset = nullptr;
  // The form that was read with the record; there may be no disk cache.
  std::shared_ptr<const ReadForm> read = nullptr;
};

// WhoseRow says of a row what decides which forms are worth making.
struct WhoseRow {
  const Digest* job = nullptr;  // null: it is not known
  uint64_t epoch = 0;
  IdleWork* idle = nullptr;  // null: nobody makes forms but rows
};

// Thread-compatible.
class SampleForms final : public FormKeeper {
 public:
  // `cache` and `dataset` outlive it, and so does what `disk` and `row` point
  // to.
  SampleForms(SampleCache* cache, const SampleCache::DatasetPtr* dataset,
              uint64_t record, SampleOnDisk disk = {}, WhoseRow row = {})
      : cache_(*cache),
        dataset_(*dataset),
        record_(record),
        disk_(std::move(disk)),
        idle_(row.idle),
        terms_{.job = row.job, .epoch = row.epoch} {}

  FormWish Begin(std::span<const std::byte> file, DecodeScale scale) override;
  void End(FormAnswer answer) override;

 private:
  void AskDisk(FormWish* wish);
  // What a decode may make for the disk, which uses `used` if it is not null.
  FormKinds DiskLacks(const KeptForm& used) const;
  void EndOf(JpegFormKind refused);
  // What is lacking still.
  void Leave(const FormAnswer& answer);

  SampleCache& cache_;
  const SampleCache::DatasetPtr& dataset_;
  const uint64_t record_;
  const SampleOnDisk disk_;
  IdleWork* const idle_;
  std::span<const std::byte> file_;
  FormKinds for_memory_;  // what the sample cache wants to be made
  bool grows_ = false;
  std::optional<JpegFormKind> making_;
  FormShelf::DecodeTerms terms_;
  MonotonicTime began_;
};

}  // namespace leat::worker
