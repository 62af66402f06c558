// SPDX-License-Identifier: Apache-2.0
//
// FormShelf: forms of images beside the records that a SampleCache keeps. A
// form lets a file of its record be decoded faster to the same bits
// (worker/image/jpeg/forms). Files of other formats than JPEG have one form,
// their pixels.
//
// Forms get the room that records leave: they count toward no dataset's share,
// and give way, the highest ranks first, whenever a record is kept. A plan
// (form_plan.h) decides which records have which form, from the measured times
// of decodes. It is made after 32 decodes, after twice as many, and so on, and
// every minute. It gives forms to the lowest ranks, so that owners of a shard
// agree. Forms beyond a plan stay. A seek index grows with the decodes of its
// record; other forms are made when an account of what forms save can pay for
// them (form_account.h), or while the worker owes no row (idle_forms.h).
//
// A decode asks before it begins, and is counted when it has ended:
//
//   WishFor → decode by `use`, make `make` → KeepForm or RefuseForms
//       → CountDecode
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

  // Decodes of a dataset that use no form, to measure their time: the first
  // kFirstPlain, and one per kPlainOf.
  static constexpr uint64_t kFirstPlain = 16, kPlainOf = 256;
  // Decodes before the first plan.
  static constexpr uint64_t kFirstPlan = 32;
  static constexpr Duration kPlanPeriod = std::chrono::minutes(1);

  // The terms on which a decode goes ahead.
  struct DecodeTerms {
    // The field of the kept record whose file is decoded.
    size_t field = 0;
    // The decodes that it is measured with.
    DecodeClass decode = DecodeClass::kFull;
    // True if it is to use no form and make none, whatever forms exist, so that
    // it can be measured.
    bool plainly = false;
    // The amount that the account has paid for the form that is to be made.
    Duration paid{0};
    // The form that the plan wants, and that neither exists nor is made by this
    // decode.
    std::optional<JpegFormKind> lacks;
    // The job of the row, for the dataset's horizon; nullptr: the horizon is
    // not asked.
    const Digest* job = nullptr;
    uint64_t epoch = 0;
  };
  struct Decoded {
    std::optional<JpegFormKind> used;  // nullopt: it was plain
    std::optional<JpegFormKind> made;  // or was to be made
    size_t file_bytes = 0;
    Duration took{0};
    std::optional<Duration> making;  // FormAnswer::making
  };

  // `kinds`: the forms that may be kept. `decode_clock` measures decodes. The
  // objects pointed to outlive it.
  FormShelf(SampleCacheState* cache, FormKinds kinds,
            const Clock& decode_clock);

  // Call before a decode of a record's file. Forms belong to the very bytes
  // that are kept, at the same address: for other bytes, and for records that
  // are not kept, there is nothing to use or to make.
  FormWish WishFor(const DatasetPtr& dataset, uint64_t record,
                   std::span<const std::byte> file, DecodeTerms* terms);
  // True if the expected remaining decodes of the record will save what such a
  // form costs, if they would otherwise use `instead`.
  static bool Repays(const DatasetPtr& dataset, JpegFormKind kind,
                     std::optional<JpegFormKind> instead, size_t file_bytes,
                     const DecodeTerms& terms);
  // True if the account pays for such a form. REQUIRES: nothing was paid.
  bool PayFor(const DatasetPtr& dataset, JpegFormKind kind, size_t file_bytes,
              DecodeTerms* terms);
  // Gives back the payment for a form that is not made.
  void GiveBack(DecodeTerms* terms);
  // Returns how often the record will be decoded after a decode on these terms.
  static double UsesAfter(const DatasetPtr& dataset, const DecodeTerms& terms);
  // Returns the record, if it is kept as it was decoded from `file`, and such a
  // form is still lacking, wanted, and may be made; `max_bytes`: the form's
  // bound. Does not count as a hit.
  std::optional<StoredSample> FindLacking(const DatasetPtr& dataset,
                                          uint64_t record, JpegFormKind kind,
                                          std::span<const std::byte> file,
                                          DecodeClass decode,
                                          uint64_t* max_bytes) const;
  // True if a form of a whole JPEG file is kept. Does not count as a hit.
  bool HasForm(const DatasetPtr& dataset, uint64_t record) const;
  // Keeps the form in place of a lesser one, or of a seek index that covers
  // less. Returns false if there is no room, or `file` is not kept.
  bool KeepForm(const DatasetPtr& dataset, uint64_t record,
                std::span<const std::byte> file, KeptForm form);
  // Forbids to make such forms of the file again, as long as it is kept.
  void RefuseForms(const DatasetPtr& dataset, uint64_t record,
                   std::span<const std::byte> file, FormKinds kinds);
  // Call after the decode. Gives back what was paid, and charges the real cost.
  void CountDecode(const DatasetPtr& dataset, const Decoded& decode,
                   DecodeTerms* terms);
  // Returns by how many nanoseconds a decode by such a form is faster than a
  // plain one, on average; 0: not known.
  static double SavedNs(const DatasetPtr& dataset, JpegFormKind kind);

  bool keeps_any() const { return kinds_.any(); }
  const FormKinds& kinds() const { return kinds_; }
  const Clock& decode_clock() const { return decode_clock_; }
  FormAccount& account() { return account_; }

  // For the cache, which holds its lock:
  //
  // Gives up forms until `bytes` more bytes fit beside records; `idle_only`:
  // only those of datasets without readers.
  void Drop(uint64_t bytes, bool idle_only, SampleCacheState::Gone* gone);
  // Call after the kept records have changed.
  void SetRoom();

 private:
  using Key = SampleCacheState::Key;
  using Entry = SampleCacheState::Entry;
  using Slice = SampleCacheState::Slice;
  using Gone = SampleCacheState::Gone;

  void PlanIfDue();
  void Plan(MonotonicTime now, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(cache_.mu);
  // Returns the largest kind up to `wanted` that a file lacks and may have.
  std::optional<JpegFormKind> LacksOf(const Entry::File& of,
                                      std::optional<JpegFormKind> wanted,
                                      size_t file_bytes,
                                      DecodeClass decode) const;

  SampleCacheState& cache_;
  const FormKinds kinds_;
  const Clock& decode_clock_;
  FormAccount account_;
  // The number of requests for forms, the forms' room, the next plan.
  std::atomic<uint64_t> asked_{0}, room_{0};
  std::atomic<uint64_t> plan_at_asked_{kFirstPlan};
  std::atomic<MonotonicTime> plan_at_;
  MonotonicTime planned_at_ ABSL_GUARDED_BY(cache_.mu);
};

}  // namespace leat::worker
