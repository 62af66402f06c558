// SPDX-License-Identifier: Apache-2.0
//
// SampleCache: stored samples in memory, by dataset and record, within a limit
// of bytes.
//
// Which records are kept is worker/source/disk_cache/cache_shares.h's rule: of
// a dataset those of the lowest ranks that fit, whatever order they come in,
// and none is given up while jobs read the dataset, but for lower ranks and for
// other datasets' shares. Records of shards that this worker does not own any
// more go first, as soon as room is wanted for records, or after a minute for
// forms.
//
// A dataset is known by a digest of what its records are (their files'
// identities included) and of what its reader takes of them. So a file that
// changed is never served for the one that was indexed, nor the reverse.
//
// What an entry costs is all that it holds, and 192 bytes.
//
// Beside a record may be kept a form of its JPEG, by which it is decoded faster
// to the same bits (worker/image/jpeg_forms). Forms have what records leave:
// they count for no dataset's share, and give way, the highest ranks first,
// whenever a record is kept. Which records have which form is planned
// (form_plan.h) by what decodes have been seen to take, after 32 decodes, at
// twice as many, and so on, and every minute: a form for the lowest ranks, so
// that owners of a shard agree. What is kept beyond a plan stays. A seek index
// grows with the decodes of its record; other forms are made when an account of
// what forms save can pay for them (form_account.h), or while the worker owes
// no row (idle_forms.h).
//
// Reads are single-flight: of several threads that miss the same record one
// reads, the others wait for it, as long as storage lets it take, and get the
// same record or the same error. Errors are not kept.
// Thread-safe: hits take the lock of a slice of the records only, and none is
// held while reading or freeing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/mutex.h"
#include "worker/cache/form_account.h"
#include "worker/cache/form_horizon.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/sample/stored_sample.h"
#include "worker/source/disk_cache/cache_shares.h"

namespace leat::worker {

class SampleCache {
 public:
  using ReadFunction = absl::FunctionRef<absl::StatusOr<StoredSample>()>;

  static constexpr uint64_t kEntryBytes = 192;  // beside its value
  static constexpr uint64_t kFormBytes = 192;   // beside a form
  static constexpr size_t kMaxDatasets = 1024;  // that nobody holds
  // Decodes of a dataset that use no form: the first, and each of so many, to
  // know how long that takes.
  static constexpr uint64_t kFirstPlain = 16, kPlainOf = 256;
  // Decodes before the first plan.
  static constexpr uint64_t kFirstPlan = 32;
  static constexpr Duration kPlanPeriod = std::chrono::minutes(1);

  // A dataset that is read through the cache, by whoever holds it.
  class Dataset;
  using DatasetPtr = std::shared_ptr<Dataset>;

  struct Record {
    uint64_t number = 0;
    uint32_t shard = 0;
  };

  // `limit_bytes` 0: keeps nothing, but reads are still single-flight. `uses`
  // null: no dataset is known to be in use. `forms`: what may be kept beside
  // records. `decode_clock`: by which decodes are measured; null: `clock`. What
  // is pointed to outlives it.
  explicit SampleCache(uint64_t limit_bytes, DatasetUses* uses = nullptr,
                       const Clock& clock = Clock::Real(), FormKinds forms = {},
                       const Clock* decode_clock = nullptr);
  ~SampleCache();

  // `key`: as above. `id`: by which SetOwned names the dataset. `records`: how
  // many it has; 0: not known. The datasets of this cache; it outlives their
  // uses.
  DatasetPtr Open(const Digest& key, const std::string& id,
                  const std::string& name, uint64_t records = 0);

  // Jobs read the dataset while what is returned lives. Null without `uses`.
  std::shared_ptr<const void> BeginUse(const DatasetPtr& dataset) const;

  // Returns what tells how often the dataset's records will be decoded.
  static const std::shared_ptr<FormHorizon>& HorizonOf(
      const DatasetPtr& dataset);

  // The record: kept, or what `read` returns. `keep`: whether a record that was
  // read may stay. May wait for another thread's read.
  absl::StatusOr<StoredSample> Get(const DatasetPtr& dataset,
                                   const Record& record, bool keep,
                                   ReadFunction read);

  // Keeps a record that nobody has asked for. False: there is no room for it,
  // or it is being read. Counts as nothing.
  bool Put(const DatasetPtr& dataset, const Record& record,
           const StoredSample& sample);

  // Whether it is kept, or on its way: Get would read nothing. Counts as
  // nothing.
  bool Contains(const DatasetPtr& dataset, uint64_t record) const;

  // The record as it is kept, with its form. nullopt: it is not kept. Counts as
  // nothing.
  std::optional<StoredSample> Find(const DatasetPtr& dataset,
                                   uint64_t record) const;

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
  // Before a decode of a record's JPEG. Forms are those of the very bytes that
  // are kept, at the same address: of others, and of records that are not kept,
  // there is nothing to use nor to make.
  FormWish AskForm(const DatasetPtr& dataset, uint64_t record,
                   std::span<const std::byte> file, DecodeTerms* terms);
  // Whether the decodes of the record that are still expected will save what
  // such a form costs, if they would otherwise use `instead`.
  bool Repays(const DatasetPtr& dataset, JpegFormKind kind,
              std::optional<JpegFormKind> instead, size_t file_bytes,
              const DecodeTerms& terms) const;
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
  struct Decoded {
    std::optional<JpegFormKind> used;  // none: it was plain
    std::optional<JpegFormKind> made;  // or was to be made
    size_t file_bytes = 0;
    Duration took{0};
  };
  // After the decode. What was paid is given back, and its cost spent.
  void CountDecode(const DatasetPtr& dataset, const Decoded& decode,
                   DecodeTerms* terms);
  // Nanoseconds that a decode by such a form takes less than a plain one, on
  // average; 0: not known.
  static double SavedNs(const DatasetPtr& dataset, JpegFormKind kind);
  bool keeps_forms() const { return forms_.any(); }
  const FormKinds& form_kinds() const { return forms_; }
  const Clock& clock() const { return clock_; }
  const Clock& decode_clock() const { return decode_clock_; }
  FormAccount& account() { return account_; }

  // This worker's shards of a dataset: owned[shard]; those beyond its size are
  // owned. Also of one that is opened later: shards are assigned when a dataset
  // is created, and it is opened for the first job.
  void SetOwned(const std::string& id, const std::vector<bool>& owned);

  struct Stats {
    uint64_t bytes = 0;  // forms included
    uint64_t records = 0;
    uint64_t hits = 0;
    uint64_t misses = 0;  // reads
    std::vector<CachedDatasetStats> datasets;
  };
  Stats stats() const;
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  struct Entry;
  struct Kept;
  struct Flight;
  struct Slice;
  struct Key {
    uint64_t dataset = 0;
    uint64_t record = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const Key& key) {
      return H::combine(std::move(state), key.dataset, key.record);
    }
  };
  using Gone = std::vector<Entry>;

  Slice& SliceOf(const Key& key) const;
  void Keep(Dataset& dataset, const Record& record, const StoredSample& sample,
            Gone* gone);
  bool MakeRoom(Dataset& dataset, uint64_t rank, uint64_t bytes, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropTop(Dataset& dataset, Gone* gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropNotOwned(MonotonicTime changed_until, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(Dataset& dataset, const Kept& kept, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetSome(Gone* gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PlanIfDue();
  void Plan(MonotonicTime now, Gone* gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsLiving(const Dataset& dataset) const;
  // The largest kind up to `wanted` that the entry lacks and may have.
  std::optional<JpegFormKind> LacksOf(const Entry& entry,
                                      std::optional<JpegFormKind> wanted,
                                      size_t file_bytes) const;
  // Until so many bytes more fit beside records; `idle_only`: of datasets that
  // nobody reads.
  void DropForms(uint64_t bytes, bool idle_only, Gone* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetFormRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t limit_bytes_;
  const FormKinds forms_;
  DatasetUses* const uses_;
  const Clock& clock_;
  const Clock& decode_clock_;
  FormAccount account_;
  const std::vector<std::unique_ptr<Slice>> slices_;
  mutable Mutex mu_;  // taken before a slice's
  CacheShares shares_ ABSL_GUARDED_BY(mu_);
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<Digest, DatasetPtr> datasets_ ABSL_GUARDED_BY(mu_);
  // By the dataset's id, as they were set.
  absl::flat_hash_map<std::string, std::vector<bool>> owned_
      ABSL_GUARDED_BY(mu_);
  uint64_t form_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // For forms: how often they were asked for, their room, the next plan.
  std::atomic<uint64_t> forms_asked_{0}, form_room_{0};
  std::atomic<uint64_t> plan_at_asked_{kFirstPlan};
  std::atomic<MonotonicTime> plan_at_;
  MonotonicTime planned_at_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
