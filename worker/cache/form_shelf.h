// SPDX-License-Identifier: Apache-2.0
//
// FormShelf: forms of JPEG files beside the records that a SampleCache keeps, by
// which these are decoded faster to the same bits (worker/image/jpeg_forms).
//
// Forms have what records leave: they count for no dataset's share, and give
// way, the highest ranks first, whenever a record is kept. Which records have
// which form is planned (form_plan.h) by what decodes have been seen to take,
// after 32 decodes, at twice as many, and so on, and every minute: a form for
// the lowest ranks, so that owners of a shard agree. What is kept beyond a plan
// stays. A seek index grows with the decodes of its record; other forms are made
// when an account of what forms save can pay for them (form_account.h), or while
// the worker owes no row (idle_forms.h).
//
// A decode asks before it begins, and is counted when it has ended:
//
//   WishFor → decode by `use`, make `make` → KeepForm or RefuseForms → CountDecode
//
// Thread-safe, by the cache's locks; none is held while a form is freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/clock.h"
#include "core/hash.h"
#include "worker/cache/form_account.h"
#include "worker/cache/sample_cache_state.h"
#include "worker/cache/sample_dataset.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/sample/stored_sample.h"

namespace leat::worker {

class FormShelf {
 public:
  using DatasetPtr = std::shared_ptr<SampleDataset>;

  // Decodes of a dataset that use no form: the first, and each of so many, to
  // know how long that takes.
  static constexpr uint64_t kFirstPlain = 16, kPlainOf = 256;
  // Decodes before the first plan.
  static constexpr uint64_t kFirstPlan = 32;
  static constexpr Duration kPlanPeriod = std::chrono::minutes(1);

  // On what terms a decode goes ahead.
  struct DecodeTerms {
    // By which the decode is measured. Reduced ones use and make no pixels.
    DecodeScale scale = DecodeScale::kFull;
    // It is to use no form and make none, whoever has one, so that it can be
    // measured.
    bool plainly = false;
    // What the account has paid for the form that is to be made.
    Duration paid{0};
    // What the plan wants, and neither is there nor is made by this decode.
    std::optional<JpegFormKind> lacks;
    // Whose row it is, for the dataset's horizon; null: it is not asked.
    const Digest* job = nullptr;
    uint64_t epoch = 0;
  };
  struct Decoded {
    std::optional<JpegFormKind> used;  // none: it was plain
    std::optional<JpegFormKind> made;  // or was to be made
    size_t file_bytes = 0;
    Duration took{0};
  };

  // `kinds`: what may be kept. `decode_clock`: by which decodes are measured.
  // What is pointed to outlives it.
  FormShelf(SampleCacheState* cache, FormKinds kinds,
            const Clock& decode_clock);

  // Before a decode of a record's JPEG. Forms are those of the very bytes that
  // are kept, at the same address: of others, and of records that are not kept,
  // there is nothing to use nor to make.
  FormWish WishFor(const DatasetPtr& dataset, uint64_t record,
                   std::span<const std::byte> file, DecodeTerms* terms);
  // Whether the decodes of the record that are still expected will save what
  // such a form costs, if they would otherwise use `instead`.
  static bool Repays(const DatasetPtr& dataset, JpegFormKind kind,
                     std::optional<JpegFormKind> instead, size_t file_bytes,
                     const DecodeTerms& terms);
  // Whether the account pays for such a form. REQUIRES: nothing was paid.
  bool PayFor(const DatasetPtr& dataset, JpegFormKind kind, size_t file_bytes,
              DecodeTerms* terms);
  // The form that was paid for is not made.
  void GiveBack(DecodeTerms* terms);
  // How often the record will be decoded after a decode on these terms.
  static double UsesAfter(const DatasetPtr& dataset, const DecodeTerms& terms);
  // The record, if it is kept as it was decoded from `file`, and such a form is
  // still lacking, wanted, and may be made; `max_bytes`: of it. Counts as
  // nothing.
  std::optional<StoredSample> FindLacking(const DatasetPtr& dataset,
                                          uint64_t record, JpegFormKind kind,
                                          std::span<const std::byte> file,
                                          uint64_t* max_bytes) const;
  // Whether one is kept, of the whole file. Counts as nothing.
  bool HasForm(const DatasetPtr& dataset, uint64_t record) const;
  // Keeps the form in place of a lesser one, or of a seek index that knows
  // less. False: there is no room, or `file` is not kept.
  bool KeepForm(const DatasetPtr& dataset, uint64_t record,
                std::span<const std::byte> file, KeptForm form);
  // No such forms are to be made of the record again, as long as it is kept.
  void RefuseForms(const DatasetPtr& dataset, uint64_t record, FormKinds kinds);
  // After the decode. What was paid is given back, and its cost spent.
  void CountDecode(const DatasetPtr& dataset, const Decoded& decode,
                   DecodeTerms* terms);
  // Nanoseconds that a decode by such a form takes less than a plain one, on
  // average; 0: not known.
  static double SavedNs(const DatasetPtr& dataset, JpegFormKind kind);

  bool keeps_any() const { return kinds_.any(); }
  const FormKinds& kinds() const { return kinds_; }
  const Clock& decode_clock() const { return decode_clock_; }
  FormAccount& account() { return account_; }

  // For the cache, which holds its lock:
  // Gives up forms until so many bytes more fit beside records; `idle_only`: of
  // datasets that nobody reads.
  void Drop(uint64_t bytes, bool idle_only, SampleCacheState::Gone* gone);
  // After what is kept has changed.
  void SetRoom();

 private:
  using Key = SampleCacheState::Key;
  using Entry = SampleCacheState::Entry;
  using Slice = SampleCacheState::Slice;
  using Gone = SampleCacheState::Gone;

  void PlanIfDue();
  void Plan(MonotonicTime now, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(cache_.mu);
  // The largest kind up to `wanted` that the entry lacks and may have.
  std::optional<JpegFormKind> LacksOf(const Entry& entry,
                                      std::optional<JpegFormKind> wanted,
                                      size_t file_bytes) const;

  SampleCacheState& cache_;
  const FormKinds kinds_;
  const Clock& decode_clock_;
  FormAccount account_;
  // How often forms were asked for, their room, the next plan.
  std::atomic<uint64_t> asked_{0}, room_{0};
  std::atomic<uint64_t> plan_at_asked_{kFirstPlan};
  std::atomic<MonotonicTime> plan_at_;
  MonotonicTime planned_at_ ABSL_GUARDED_BY(cache_.mu);
};

}  // namespace leat::worker
