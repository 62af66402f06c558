// SPDX-License-Identifier: Apache-2.0
//
// Each dataset has a heap of what is kept of it, the highest rank on top, which
// is all that admission asks for; the samples themselves are in slices, by
// record, so that hits of many threads do not meet.
#include "worker/cache/sample_cache.h"

#include <algorithm>
#include <utility>

#include "worker/cache/sample_cache_state.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxSlices = 16;
// More than one record of most datasets, and less than anybody notices.
constexpr uint64_t kMarginOf = 128;

template <class Slice>
std::vector<std::unique_ptr<Slice>> MakeSlices() {
  std::vector<std::unique_ptr<Slice>> slices;
  for (uint64_t i = 0; i < kMaxSlices; ++i)
    slices.push_back(std::make_unique<Slice>());
  return slices;
}

}  // namespace

SampleCache::SampleCache(uint64_t limit_bytes, DatasetUses* uses,
                         const Clock& clock, FormKinds forms,
                         const Clock* decode_clock)
    : limit_bytes_(limit_bytes),
      forms_(forms),
      uses_(uses),
      clock_(clock),
      decode_clock_(decode_clock == nullptr ? clock : *decode_clock),
      slices_(MakeSlices<Slice>()),
      shares_(limit_bytes, limit_bytes / kMarginOf, uses, clock),
      plan_at_(clock.Now() + kPlanPeriod),
      planned_at_(clock.Now()) {
  MutexLock lock(&mu_);
  SetFormRoom();
}

SampleCache::~SampleCache() = default;

SampleCache::Slice& SampleCache::SliceOf(const Key& key) const {
  return *slices_[absl::Hash<Key>{}(key) % slices_.size()];
}

SampleCache::DatasetPtr SampleCache::Open(const Digest& key,
                                          const std::string& id,
                                          const std::string& name,
                                          uint64_t records) {
  Gone gone;  // freed without the lock
  MutexLock lock(&mu_);
  if (const auto it = datasets_.find(key); it != datasets_.end())
    return it->second;
  if (datasets_.size() >= kMaxDatasets) ForgetSome(&gone);
  const auto dataset = std::make_shared<Dataset>(key, id, name, next_number_++);
  dataset->records = records;
  if (const auto owned = owned_.find(id); owned != owned_.end())
    dataset->owned = owned->second;
  dataset->owns_none = dataset->OwnsNone();
  shares_.Add(dataset.get());
  datasets_.emplace(key, dataset);
  return dataset;
}

std::shared_ptr<const void> SampleCache::BeginUse(
    const DatasetPtr& dataset) const {
  return uses_ == nullptr ? nullptr : uses_->Begin(dataset->key);
}

// Every dataset that nobody holds.
void SampleCache::ForgetSome(Gone* gone) {
  for (auto it = datasets_.begin(); it != datasets_.end();) {
    Dataset& dataset = *it->second;
    if (it->second.use_count() > 1) {
      ++it;
      continue;
    }
    for (const Kept& kept : dataset.heap) Take(dataset, kept, gone);
    shares_.Remove(&dataset);
    it = datasets_.erase(it);
  }
}

absl::StatusOr<StoredSample> SampleCache::Get(const DatasetPtr& dataset,
                                              const Record& record, bool keep,
                                              ReadFunction read) {
  const Key key = {dataset->number, record.number};
  Slice& slice = SliceOf(key);
  std::shared_ptr<Flight> flight;
  {
    MutexLock lock(&slice.mu);
    if (const auto it = slice.kept.find(key); it != slice.kept.end()) {
      ++dataset->hits;
      return it->second.sample;
    }
    if (const auto it = slice.flights.find(key); it != slice.flights.end()) {
      flight = it->second;
      flight->keep = flight->keep || keep;
      while (!flight->done) slice.landed.Wait(&slice.mu);
      ++dataset->hits;
      return flight->result;
    }
    flight = std::make_shared<Flight>();
    flight->keep = keep;
    slice.flights.emplace(key, flight);
  }
  const MonotonicTime began = clock_.Now();
  absl::StatusOr<StoredSample> sample = read();
  ++dataset->misses;
  dataset->read_ns += static_cast<uint64_t>((clock_.Now() - began).count());
  {
    MutexLock lock(&slice.mu);
    flight->done = true;
    flight->result = sample;
    keep = flight->keep;
    slice.landed.NotifyAll();
  }
  Gone gone;  // freed without a lock
  if (sample.ok() && keep) Keep(*dataset, record, *sample, &gone);
  MutexLock lock(&slice.mu);
  slice.flights.erase(key);
  return sample;
}

// As a flight that has landed, so that nobody else keeps the record meanwhile.
bool SampleCache::Put(const DatasetPtr& dataset, const Record& record,
                      const StoredSample& sample) {
  const Key key = {dataset->number, record.number};
  Slice& slice = SliceOf(key);
  {
    const auto flight = std::make_shared<Flight>();
    flight->done = true;
    flight->result = sample;
    MutexLock lock(&slice.mu);
    if (slice.kept.contains(key) || slice.flights.contains(key)) return false;
    slice.flights.emplace(key, flight);
  }
  Gone gone;  // freed without a lock
  Keep(*dataset, record, sample, &gone);
  MutexLock lock(&slice.mu);
  slice.flights.erase(key);
  return slice.kept.contains(key);
}

// Nobody else keeps the record meanwhile: its flight is not over.
void SampleCache::Keep(Dataset& dataset, const Record& record,
                       const StoredSample& sample, Gone* gone) {
  const uint64_t bytes = sample.bytes() + kEntryBytes;
  const uint64_t rank = RankOf(dataset.key, record.number);
  MutexLock lock(&mu_);
  if (!MakeRoom(dataset, rank, bytes, gone)) return;
  dataset.heap.push_back({rank, record.number, bytes, record.shard});
  std::push_heap(dataset.heap.begin(), dataset.heap.end());
  shares_.Grew(&dataset, bytes);
  DropForms(0, false, gone);
  SetFormRoom();
  const Key key = {dataset.number, record.number};
  Slice& slice = SliceOf(key);
  MutexLock slice_lock(&slice.mu);
  slice.kept.emplace(key,
                     Entry{.sample = sample, .form = nullptr, .refused = {}});
}

bool SampleCache::MakeRoom(Dataset& dataset, uint64_t rank, uint64_t bytes,
                           Gone* gone) {
  if (!shares_.HasRoom(bytes)) DropNotOwned(clock_.Now(), gone);
  if (!shares_.Admits(&dataset, rank, bytes)) return false;
  while (!shares_.HasRoom(bytes)) {
    auto* const giver = static_cast<Dataset*>(shares_.Giver(&dataset, bytes));
    if (giver == &dataset &&
        (dataset.heap.empty() || dataset.heap.front().rank <= rank)) {
      CacheShares::Fell(&dataset, rank);
      return false;
    }
    DropTop(*giver, gone);
  }
  return true;
}

void SampleCache::DropTop(Dataset& dataset, Gone* gone) {
  std::pop_heap(dataset.heap.begin(), dataset.heap.end());
  const Kept top = dataset.heap.back();
  dataset.heap.pop_back();
  shares_.Shrank(&dataset, top.bytes);
  CacheShares::Fell(&dataset, top.rank);
  Take(dataset, top, gone);
}

// Of datasets whose owners have changed since the last time, and until then.
void SampleCache::DropNotOwned(MonotonicTime changed_until, Gone* gone) {
  for (const auto& [key, each] : datasets_) {
    Dataset& dataset = *each;
    if (!dataset.owned_changed || dataset.owned_changed_at > changed_until)
      continue;
    dataset.owned_changed = false;
    const auto others = std::partition(
        dataset.heap.begin(), dataset.heap.end(), [&](const Kept& kept) {
          return kept.shard >= dataset.owned.size() ||
                 dataset.owned[kept.shard];
        });
    for (auto it = others; it != dataset.heap.end(); ++it) {
      shares_.Shrank(&dataset, it->bytes);
      Take(dataset, *it, gone);
    }
    dataset.heap.erase(others, dataset.heap.end());
    std::make_heap(dataset.heap.begin(), dataset.heap.end());
  }
}

// Out of its slice, with its form.
void SampleCache::Take(Dataset& dataset, const Kept& kept, Gone* gone) {
  form_bytes_ -= dataset.RemoveForm(kept.rank, kept.record);
  const Key key = {dataset.number, kept.record};
  Slice& slice = SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  gone->push_back(std::move(it->second));
  slice.kept.erase(it);
}

bool SampleCache::Contains(const DatasetPtr& dataset, uint64_t record) const {
  const Key key = {dataset->number, record};
  Slice& slice = SliceOf(key);
  MutexLock lock(&slice.mu);
  return slice.kept.contains(key) || slice.flights.contains(key);
}

void SampleCache::SetOwned(const std::string& id,
                           const std::vector<bool>& owned) {
  MutexLock lock(&mu_);
  // Full of datasets that were: only caching depends on it.
  if (owned_.size() >= kMaxDatasets && !owned_.contains(id)) owned_.clear();
  owned_[id] = owned;
  for (const auto& [key, dataset] : datasets_) {
    if (dataset->id != id) continue;
    dataset->owned = owned;
    dataset->owns_none = dataset->OwnsNone();
    dataset->owned_changed = true;
    dataset->owned_changed_at = clock_.Now();
  }
}

SampleCache::Stats SampleCache::stats() const {
  MutexLock lock(&mu_);
  return {.bytes = shares_.bytes() + form_bytes_,
          .records = shares_.entries(),
          .hits = shares_.hits(),
          .misses = shares_.misses(),
          .datasets = shares_.stats()};
}

}  // namespace leat::worker
