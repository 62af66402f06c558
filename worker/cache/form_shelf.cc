// SPDX-License-Identifier: Apache-2.0
//
// Decides which forms are kept beside records.
//
// For example, a cache of 300 MB has 1,000 records of 100 kB. The first 16
// decodes are plain and take 1 ms each. The plan after 32 expects that all
// records will be kept, which leaves 200 MB; that a seek index saves 0.3 of a
// plain decode for 1.8 kB, coefficients 0.55 of it for 200 kB, and pixels 0.95
// of it for 540 kB. Seek indexes go to all records, and coefficients to those
// of the lowest 99 % of the ranks: added to a seek index they save more per
// byte than pixels do. Later plans have measured all of these. Seek indexes
// grow while windows are decoded; coefficients are made as the account can pay
// for them.
#include "worker/cache/form_shelf.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "worker/cache/form_plan.h"

namespace leat::worker {
namespace {

// Returns the rank that this share of all ranks is below.
uint64_t RankBelow(double share) {
  if (share >= 1) return std::numeric_limits<uint64_t>::max();
  return share <= 0 ? 0 : static_cast<uint64_t>(share * 0x1p64);
}

std::optional<JpegFormKind> Lesser(JpegFormKind kind) {
  return kind == JpegFormKind::kSeekIndex
             ? std::nullopt
             : std::optional(static_cast<JpegFormKind>(WayOf(kind) - 1));
}

// Forms that are made before the decision whether they repay their cost. The
// first are of small files, which an account with a small balance can pay for,
// and are expensive per byte.
constexpr uint32_t kLeastToJudge = 64;

}  // namespace

FormShelf::FormShelf(SampleCacheState* cache, FormKinds kinds,
                     const Clock& decode_clock)
    : cache_(*cache),
      kinds_(kinds),
      decode_clock_(decode_clock),
      plan_at_(cache->clock.Now() + kPlanPeriod),
      planned_at_(cache->clock.Now()) {
  MutexLock lock(&cache_.mu);
  SetRoom();
}

void FormShelf::SetRoom() {
  cache_.mu.AssertHeld();
  uint64_t used = cache_.shares.bytes() + cache_.form_bytes;
  for (const auto& [key, each] : cache_.datasets)
    if (!each->forms.empty() && !cache_.IsLiving(*each))
      used -= each->all_form_bytes();
  room_ = cache_.limit_bytes - std::min(cache_.limit_bytes, used);
}

void FormShelf::PlanIfDue() {
  const uint64_t asked = ++asked_;
  const MonotonicTime now = cache_.clock.Now();
  if (asked < plan_at_asked_ && now < plan_at_.load()) return;
  Gone gone;  // freed without the lock
  MutexLock lock(&cache_.mu);
  if (asked < plan_at_asked_ && now < plan_at_.load()) return;
  plan_at_asked_ = std::max(kFirstPlan, 2 * asked);
  plan_at_ = now + kPlanPeriod;
  Plan(now, &gone);
}

void FormShelf::Plan(MonotonicTime now, Gone* gone) {
  const double seconds =
      std::max(1e-3, std::chrono::duration<double>(now - planned_at_).count());
  planned_at_ = now;
  std::vector<SampleDataset*> planned;
  std::vector<FormDemand> demands;
  double to_keep_bytes = 0;
  for (const auto& [key, each] : cache_.datasets) {
    if (each->entries == 0) continue;
    const double records = each->RecordsToKeep(cache_.IsLiving(*each));
    to_keep_bytes += records * static_cast<double>(each->bytes) /
                     static_cast<double>(each->entries);
    planned.push_back(each.get());
    demands.push_back(each->DemandSince(records, seconds));
  }
  const std::vector<FormShare> shares = PlanForms(
      demands, kinds_,
      std::max(0.0, static_cast<double>(cache_.limit_bytes) - to_keep_bytes));
  for (size_t i = 0; i < planned.size(); ++i)
    for (size_t way = 1; way < kDecodeWays; ++way)
      planned[i]->wanted_below[way] = RankBelow(shares[i].from[way]);
  // If forms lack room, forms of owned records are worth more than records that
  // others own, once the new owners have had time to request these. The next
  // plan has the room.
  const size_t best = kinds_.pixels         ? WayOf(JpegFormKind::kPixels)
                      : kinds_.coefficients ? WayOf(JpegFormKind::kCoefficients)
                                            : WayOf(JpegFormKind::kSeekIndex);
  if (std::ranges::any_of(
          shares, [&](const FormShare& share) { return share.from[best] < 1; }))
    cache_.DropNotOwned(now - kPlanPeriod, gone);
  SetRoom();
}

bool FormShelf::HasForm(const DatasetPtr& dataset, uint64_t record) const {
  const Key key = {dataset->number, record};
  Slice& slice = cache_.SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  return it != slice.kept.end() && it->second.OfJpeg() != nullptr;
}

FormWish FormShelf::WishFor(const DatasetPtr& dataset, uint64_t record,
                            std::span<const std::byte> file,
                            DecodeTerms* terms) {
  if (!kinds_.any()) return {};
  PlanIfDue();
  const uint64_t turn = dataset->of(terms->decode).asked++;
  terms->plainly = turn < kFirstPlain || turn % kPlainOf == 0;
  const std::optional<JpegFormKind> wanted =
      dataset->WantedAt(RankOf(dataset->key, record));
  const uint64_t room = room_;
  FormWish wish;
  wish.max_bytes = room;
  const Key key = {dataset->number, record};
  Slice& slice = cache_.SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  if (it == slice.kept.end()) return {};
  const std::optional<size_t> field = it->second.FieldOf(file);
  if (!field) return {};
  dataset->SawField(*field);
  terms->field = *field;
  const Entry::File& of = it->second.Of(*field);
  terms->lacks = LacksOf(of, wanted, file.size(), terms->decode);
  if (terms->plainly) return {};
  const std::optional<JpegFormKind> instead =
      of.form.form == nullptr ? std::nullopt : std::optional(of.form.kind);
  for (std::optional<JpegFormKind> kind = terms->lacks;
       kind && kind != JpegFormKind::kSeekIndex;
       kind = LacksOf(of, Lesser(*kind), file.size(), terms->decode)) {
    if (!Repays(dataset, *kind, instead, file.size(), *terms)) continue;
    if (!PayFor(dataset, *kind, file.size(), terms)) break;
    wish.make.Add(*kind);
    terms->lacks = std::nullopt;
    return wish;
  }
  wish.use = of.form;
  wish.grow =
      (of.form.form == nullptr || !of.form.whole) &&
      LacksOf(of,
              wanted ? std::optional(JpegFormKind::kSeekIndex) : std::nullopt,
              file.size(), terms->decode);
  return wish;
}

std::optional<JpegFormKind> FormShelf::LacksOf(
    const Entry::File& of, std::optional<JpegFormKind> wanted,
    size_t file_bytes, DecodeClass decode) const {
  for (std::optional<JpegFormKind> kind = wanted; kind; kind = Lesser(*kind)) {
    if (of.Has(*kind)) return std::nullopt;
    const double bytes = static_cast<double>(file_bytes) *
                             UsualFormsOf(decode)[WayOf(*kind)].size +
                         SampleDataset::kFormBytes;
    if (kinds_.Has(*kind) && KindsOf(decode).Has(*kind) &&
        !of.refused.Has(*kind) && bytes <= static_cast<double>(room_))
      return kind;
  }
  return std::nullopt;
}

std::optional<StoredSample> FormShelf::FindLacking(
    const DatasetPtr& dataset, uint64_t record, JpegFormKind kind,
    std::span<const std::byte> file, DecodeClass decode,
    uint64_t* max_bytes) const {
  if (dataset->owns_none || !cache_.IsLiving(*dataset)) return std::nullopt;
  const std::optional<JpegFormKind> wanted =
      dataset->WantedAt(RankOf(dataset->key, record));
  const Key key = {dataset->number, record};
  Slice& slice = cache_.SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  if (it == slice.kept.end() || !wanted || *wanted < kind) return std::nullopt;
  const std::optional<size_t> field = it->second.FieldOf(file);
  if (!field ||
      LacksOf(it->second.Of(*field), kind, file.size(), decode) != kind)
    return std::nullopt;
  *max_bytes = room_;
  return it->second.sample;
}

bool FormShelf::KeepForm(const DatasetPtr& dataset, uint64_t record,
                         std::span<const std::byte> file, KeptForm form) {
  const uint64_t bytes = form.bytes + SampleDataset::kFormBytes;
  const JpegFormKind kind = form.kind;
  const bool whole = form.whole;
  const uint64_t rank = RankOf(dataset->key, record);
  // Holds the form that this one replaces, or this one itself; freed without a
  // lock.
  KeptForm other = std::move(form);
  Gone gone;  // freed likewise
  const Key key = {dataset->number, record};
  Slice& slice = cache_.SliceOf(key);
  MutexLock lock(&cache_.mu);
  Drop(bytes, true, &gone);
  MutexLock slice_lock(&slice.mu);
  const auto it = slice.kept.find(key);
  if (it == slice.kept.end()) return false;
  const std::optional<size_t> field = it->second.FieldOf(file);
  if (!field) return false;
  const KeptForm& kept = it->second.Of(*field).form;
  uint64_t before = 0;
  if (kept.form != nullptr) {
    before = kept.bytes + SampleDataset::kFormBytes;
    const bool knows_more =
        kept.kind == kind && !kept.whole && (whole || bytes > before);
    if (kept.kind >= kind && !knows_more) return false;
  }
  if (bytes > cache_.limit_bytes ||
      cache_.shares.bytes() + cache_.form_bytes - before >
          cache_.limit_bytes - bytes)
    return false;
  std::swap(it->second.At(*field).form, other);
  const SampleDataset::FormPlace place = {rank, record, *field};
  cache_.form_bytes -= dataset->RemoveForm(place);
  dataset->AddForm(place, {.kind = kind, .bytes = bytes});
  cache_.form_bytes += bytes;
  SetRoom();
  return true;
}

void FormShelf::RefuseForms(const DatasetPtr& dataset, uint64_t record,
                            std::span<const std::byte> file, FormKinds kinds) {
  const Key key = {dataset->number, record};
  Slice& slice = cache_.SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  if (it == slice.kept.end()) return;
  if (const std::optional<size_t> field = it->second.FieldOf(file))
    it->second.At(*field).refused.Add(kinds);
}

// Drops forms of datasets without readers first, then of the dataset that has
// the most.
void FormShelf::Drop(uint64_t bytes, bool idle_only, Gone* gone) {
  cache_.mu.AssertHeld();
  while (cache_.form_bytes > 0 &&
         cache_.shares.bytes() + cache_.form_bytes + bytes >
             cache_.limit_bytes) {
    SampleDataset* giver = nullptr;
    bool giver_lives = true;
    for (const auto& [key, each] : cache_.datasets) {
      if (each->forms.empty()) continue;
      const bool lives = cache_.IsLiving(*each);
      const bool before = giver == nullptr ||
                          (lives == giver_lives ? each->all_form_bytes() >
                                                      giver->all_form_bytes()
                                                : giver_lives);
      if (!before) continue;
      giver = each.get();
      giver_lives = lives;
    }
    if (idle_only && giver_lives) return;
    const SampleDataset::FormPlace place = std::prev(giver->forms.end())->first;
    cache_.form_bytes -= giver->RemoveForm(place);
    const Key key = {giver->number, place.record};
    Slice& slice = cache_.SliceOf(key);
    MutexLock lock(&slice.mu);
    Entry::File& file = slice.kept.find(key)->second.At(place.field);
    gone->emplace_back().files.push_back({.field = place.field,
                                          .form = std::exchange(file.form, {}),
                                          .refused = {}});
  }
}

// A decode that makes a form is plain, whatever form it could use instead.
bool FormShelf::Repays(const DatasetPtr& dataset, JpegFormKind kind,
                       std::optional<JpegFormKind> instead, size_t file_bytes,
                       const DecodeTerms& terms) {
  const double uses = UsesAfter(dataset, terms);
  if (uses == FormHorizon::kWithoutBound) return true;
  const DecodeCosts& decodes = dataset->of(terms.decode);
  const std::optional<Duration> plain = decodes.plain.Of(file_bytes);
  if (!plain) return uses > 0;
  const Duration without = decodes.TimeOf(instead, file_bytes, *plain);
  const double saves =
      uses * static_cast<double>(
                 (without - decodes.TimeOf(kind, file_bytes, *plain)).count());
  const Duration making = decodes.making[WayOf(kind)]
                              .Of(file_bytes, kLeastToJudge)
                              .value_or(Duration(0));
  return saves > 0 &&
         saves >= static_cast<double>((making + *plain - without).count());
}

bool FormShelf::PayFor(const DatasetPtr& dataset, JpegFormKind kind,
                       size_t file_bytes, DecodeTerms* terms) {
  const std::optional<Duration> cost =
      dataset->of(terms->decode).CostOf(kind, file_bytes);
  if (!cost || !account_.Pay(*cost)) return false;
  terms->paid = *cost;
  return true;
}

void FormShelf::GiveBack(DecodeTerms* terms) {
  if (terms->paid > Duration(0))
    account_.Return(std::exchange(terms->paid, Duration(0)));
}

// A decode that makes a form does not measure decodes. A decode that notes
// where MCUs begin counts as plain: it takes a little less time, so the saving
// is underestimated a little.
void FormShelf::CountDecode(const DatasetPtr& dataset, const Decoded& decode,
                            DecodeTerms* terms) {
  GiveBack(terms);
  account_.Lend(decode.took);
  const size_t bytes = decode.file_bytes;
  const Duration took = decode.took;
  DecodeCosts& decodes = dataset->of(terms->decode);
  const Duration plainly = decodes.plain.AtLeast(bytes).value_or(took);
  if (decode.made) {
    TimeOfBytes& making = decodes.making[WayOf(*decode.made)];
    if (decode.making) {
      making.Add(bytes, *decode.making);
      account_.Spend(*decode.making);
      decodes.plain.Add(bytes, took - *decode.making);
      return;
    }
    making.Add(bytes, took - decodes.plain.Of(bytes).value_or(took));
    account_.Spend(took - plainly);
    return;
  }
  if (decode.used) {
    account_.Save(plainly - took);
    decodes.by_form[WayOf(*decode.used)].Add(bytes, took);
  } else {
    decodes.plain.Add(bytes, took);
  }
  const size_t way = decode.used ? WayOf(*decode.used) : 0;
  ++decodes.count[way];
  decodes.ns[way] += static_cast<uint64_t>(std::max<int64_t>(0, took.count()));
}

double FormShelf::SavedNs(const DatasetPtr& dataset, JpegFormKind kind) {
  double saved_ns = 0;
  uint64_t hits = 0;
  for (const DecodeCosts& decodes : dataset->by_class) {
    const uint64_t by_form = decodes.count[WayOf(kind)];
    if (by_form < kLeastMeasured || decodes.count[0] < kLeastMeasured) continue;
    saved_ns += decodes.SavedNs(kind);
    hits += by_form;
  }
  return hits > 0 ? std::max(0.0, saved_ns / static_cast<double>(hits)) : 0;
}

double FormShelf::UsesAfter(const DatasetPtr& dataset,
                            const DecodeTerms& terms) {
  return terms.job == nullptr
             ? FormHorizon::kWithoutBound
             : dataset->horizon->UsesAfter(*terms.job, terms.epoch);
}

}  // namespace leat::worker
