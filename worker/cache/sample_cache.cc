// SPDX-License-Identifier: Apache-2.0
//
// Each dataset has a heap of its kept records, the highest rank on top, which
// is all that admission needs. The samples themselves are in slices, by record,
// so that hits of many threads do not contend.
#include "worker/cache/sample_cache.h"

#include <algorithm>
#include <utility>

#include "worker/cache/read_form.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxSlices = 16;

std::vector<std::unique_ptr<SampleCacheState::Slice>> MakeSlices() {
  std::vector<std::unique_ptr<SampleCacheState::Slice>> slices;
  for (uint64_t i = 0; i < kMaxSlices; ++i)
    slices.push_back(std::make_unique<SampleCacheState::Slice>());
  return slices;
}

// More than one record for most datasets, and too little to matter.
constexpr uint64_t kMarginOf = 128;

}  // namespace

SampleCacheState::SampleCacheState(uint64_t limit, DatasetUses* dataset_uses,
                                   const Clock& real_clock)
    : limit_bytes(limit),
      uses(dataset_uses),
      clock(real_clock),
      slices(MakeSlices()),
      shares(limit, limit / kMarginOf, dataset_uses, real_clock) {}

void SampleCacheState::DropNotOwned(MonotonicTime changed_until, Gone* gone) {
  for (const auto& [key, each] : datasets) {
    SampleDataset& dataset = *each;
    if (!dataset.owned_changed || dataset.owned_changed_at > changed_until)
      continue;
    dataset.owned_changed = false;
    const auto others = std::partition(
        dataset.heap.begin(), dataset.heap.end(), [&](const KeptRecord& kept) {
          return kept.shard >= dataset.owned.size() ||
                 dataset.owned[kept.shard];
        });
    for (auto it = others; it != dataset.heap.end(); ++it) {
      shares.Shrank(&dataset, it->bytes);
      Take(dataset, *it, gone);
    }
    dataset.heap.erase(others, dataset.heap.end());
    std::make_heap(dataset.heap.begin(), dataset.heap.end());
  }
}

std::optional<size_t> SampleCacheState::Entry::FieldOf(
    std::span<const std::byte> file) const {
  for (size_t i = 0; i < sample.fields.size(); ++i)
    if (sample.fields[i].bytes.data() == file.data() &&
        sample.fields[i].bytes.size() == file.size())
      return i;
  return std::nullopt;
}

const SampleCacheState::Entry::File& SampleCacheState::Entry::Of(
    size_t field) const {
  static const File nothing;
  const auto it = std::ranges::find(files, field, &File::field);
  return it == files.end() ? nothing : *it;
}

const SampleCacheState::Entry::File* SampleCacheState::Entry::OfJpeg() const {
  const auto it = std::ranges::find_if(files, [](const File& file) {
    return file.form.form != nullptr && file.form.whole && file.form.of_jpeg;
  });
  return it == files.end() ? nullptr : &*it;
}

SampleCacheState::Entry::File& SampleCacheState::Entry::At(size_t field) {
  const auto it = std::ranges::find(files, field, &File::field);
  if (it != files.end()) return *it;
  return files.emplace_back(File{.field = field, .form = {}, .refused = {}});
}

void SampleCacheState::Take(SampleDataset& dataset, const KeptRecord& kept,
                            Gone* gone) {
  form_bytes -= dataset.RemoveForms(kept.rank, kept.record);
  const Key key = {dataset.number, kept.record};
  Slice& slice = SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  gone->push_back(std::move(it->second));
  slice.kept.erase(it);
}

SampleCache::SampleCache(uint64_t limit_bytes, DatasetUses* uses,
                         const Clock& clock, FormKinds forms,
                         const Clock* decode_clock)
    : state_(limit_bytes, uses, clock),
      forms_(&state_, forms, decode_clock == nullptr ? clock : *decode_clock) {}

SampleCache::~SampleCache() = default;

SampleCache::DatasetPtr SampleCache::Open(const Digest& key,
                                          const std::string& id,
                                          const std::string& name,
                                          uint64_t records) {
  Gone gone;  // freed without the lock
  MutexLock lock(&state_.mu);
  if (const auto it = state_.datasets.find(key); it != state_.datasets.end())
    return it->second;
  if (state_.datasets.size() >= kMaxDatasets) ForgetSome(&gone);
  const auto dataset =
      std::make_shared<SampleDataset>(key, id, name, state_.next_number++);
  dataset->records = records;
  if (const auto owned = state_.owned.find(id); owned != state_.owned.end())
    dataset->owned = owned->second;
  dataset->owns_none = dataset->OwnsNone();
  state_.shares.Add(dataset.get());
  state_.datasets.emplace(key, dataset);
  return dataset;
}

std::shared_ptr<const void> SampleCache::BeginUse(
    const DatasetPtr& dataset) const {
  return state_.uses == nullptr ? nullptr : state_.uses->Begin(dataset->key);
}

// Forgets every dataset without a holder.
void SampleCache::ForgetSome(Gone* gone) {
  for (auto it = state_.datasets.begin(); it != state_.datasets.end();) {
    SampleDataset& dataset = *it->second;
    if (it->second.use_count() > 1) {
      ++it;
      continue;
    }
    for (const KeptRecord& kept : dataset.heap)
      state_.Take(dataset, kept, gone);
    state_.shares.Remove(&dataset);
    it = state_.datasets.erase(it);
  }
}

absl::StatusOr<StoredSample> SampleCache::Get(const DatasetPtr& dataset,
                                              const Record& record, bool keep,
                                              ReadFunction read) {
  const SampleCacheState::Key key = {dataset->number, record.number};
  SampleCacheState::Slice& slice = state_.SliceOf(key);
  std::shared_ptr<SampleCacheState::Flight> flight;
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
    flight = std::make_shared<SampleCacheState::Flight>();
    flight->keep = keep;
    slice.flights.emplace(key, flight);
  }
  const MonotonicTime began = state_.clock.Now();
  absl::StatusOr<StoredSample> sample = read();
  ++dataset->misses;
  dataset->read_ns +=
      static_cast<uint64_t>((state_.clock.Now() - began).count());
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

// Acts as a flight that has landed, so that no other thread keeps the record
// meanwhile.
bool SampleCache::Put(const DatasetPtr& dataset, const Record& record,
                      const StoredSample& sample) {
  const SampleCacheState::Key key = {dataset->number, record.number};
  SampleCacheState::Slice& slice = state_.SliceOf(key);
  {
    const auto flight = std::make_shared<SampleCacheState::Flight>();
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

// No other thread keeps the record meanwhile: its flight is not over.
void SampleCache::Keep(SampleDataset& dataset, const Record& record,
                       const StoredSample& sample, Gone* gone) {
  const uint64_t bytes = sample.bytes() + kEntryBytes;
  const uint64_t rank = RankOf(dataset.key, record.number);
  MutexLock lock(&state_.mu);
  if (!MakeRoom(dataset, rank, bytes, gone)) return;
  dataset.heap.push_back({rank, record.number, bytes, record.shard});
  std::push_heap(dataset.heap.begin(), dataset.heap.end());
  state_.shares.Grew(&dataset, bytes);
  forms_.Drop(0, false, gone);
  forms_.SetRoom();
  const SampleCacheState::Key key = {dataset.number, record.number};
  SampleCacheState::Slice& slice = state_.SliceOf(key);
  MutexLock slice_lock(&slice.mu);
  slice.kept.emplace(key,
                     SampleCacheState::Entry{.sample = sample, .files = {}});
}

bool SampleCache::MakeRoom(SampleDataset& dataset, uint64_t rank,
                           uint64_t bytes, Gone* gone) {
  if (!state_.shares.HasRoom(bytes))
    state_.DropNotOwned(state_.clock.Now(), gone);
  if (!state_.shares.Admits(&dataset, rank, bytes)) return false;
  while (!state_.shares.HasRoom(bytes)) {
    auto* const giver =
        static_cast<SampleDataset*>(state_.shares.Giver(&dataset, bytes));
    if (giver == &dataset &&
        (dataset.heap.empty() || dataset.heap.front().rank <= rank)) {
      CacheShares::Fell(&dataset, rank);
      return false;
    }
    DropTop(*giver, gone);
  }
  return true;
}

void SampleCache::DropTop(SampleDataset& dataset, Gone* gone) {
  std::pop_heap(dataset.heap.begin(), dataset.heap.end());
  const KeptRecord top = dataset.heap.back();
  dataset.heap.pop_back();
  state_.shares.Shrank(&dataset, top.bytes);
  CacheShares::Fell(&dataset, top.rank);
  state_.Take(dataset, top, gone);
}

std::optional<StoredSample> SampleCache::Find(const DatasetPtr& dataset,
                                              uint64_t record) const {
  const SampleCacheState::Key key = {dataset->number, record};
  SampleCacheState::Slice& slice = state_.SliceOf(key);
  KeptForm form;
  size_t of = 0;
  StoredSample sample;
  {
    MutexLock lock(&slice.mu);
    const auto it = slice.kept.find(key);
    if (it == slice.kept.end()) return std::nullopt;
    sample = it->second.sample;
    if (const auto* file = it->second.OfJpeg()) {
      form = file->form;
      of = file->field;
    }
  }
  if (form.form == nullptr) return sample;
  sample.form_bytes = form.bytes;
  sample.form = std::make_shared<const ReadForm>(
      ReadForm{.file = sample.fields[of].bytes, .kept = form});
  return sample;
}

bool SampleCache::Contains(const DatasetPtr& dataset, uint64_t record) const {
  const SampleCacheState::Key key = {dataset->number, record};
  SampleCacheState::Slice& slice = state_.SliceOf(key);
  MutexLock lock(&slice.mu);
  return slice.kept.contains(key) || slice.flights.contains(key);
}

void SampleCache::SetOwned(const std::string& id,
                           const std::vector<bool>& owned) {
  MutexLock lock(&state_.mu);
  // Full of former datasets; only caching depends on it.
  if (state_.owned.size() >= kMaxDatasets && !state_.owned.contains(id))
    state_.owned.clear();
  state_.owned[id] = owned;
  for (const auto& [key, dataset] : state_.datasets) {
    if (dataset->id != id) continue;
    dataset->owned = owned;
    dataset->owns_none = dataset->OwnsNone();
    dataset->owned_changed = true;
    dataset->owned_changed_at = state_.clock.Now();
  }
}

const std::shared_ptr<FormHorizon>& SampleCache::HorizonOf(
    const DatasetPtr& dataset) {
  return dataset->horizon;
}

SampleCache::Stats SampleCache::stats() const {
  MutexLock lock(&state_.mu);
  return {.bytes = state_.shares.bytes() + state_.form_bytes,
          .records = state_.shares.entries(),
          .hits = state_.shares.hits(),
          .misses = state_.shares.misses(),
          .datasets = state_.shares.stats()};
}

}  // namespace leat::worker
