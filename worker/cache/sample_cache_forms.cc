// SPDX-License-Identifier: Apache-2.0
//
// Which forms are kept beside records.
//
// For example 1,000 records of 100 kB in a cache of 300 MB. The first 16
// decodes are plain and take 1 ms each. The plan after 32 expects that all
// records will be kept, so that 200 MB are left; that a seek index saves 0.3 of
// a plain decode for 1.8 kB, coefficients 0.55 of it for 200 kB, and pixels
// 0.95 of it for 540 kB. Seek indexes go to all records, and coefficients to
// those of the lowest 99 % of the ranks: behind a seek index they save more for
// each byte than pixels do. Later plans have measured all of these. Seek
// indexes grow while windows are decoded; coefficients are made as the account
// can pay for them.
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "worker/cache/read_form.h"
#include "worker/cache/sample_cache_state.h"

namespace leat::worker {
namespace {

// Below it is this share of all ranks.
uint64_t RankBelow(double share) {
  if (share >= 1) return std::numeric_limits<uint64_t>::max();
  return share <= 0 ? 0 : static_cast<uint64_t>(share * 0x1p64);
}

std::optional<JpegFormKind> Lesser(JpegFormKind kind) {
  return kind == JpegFormKind::kSeekIndex
             ? std::nullopt
             : std::optional(static_cast<JpegFormKind>(WayOf(kind) - 1));
}

}  // namespace

void SampleCache::Dataset::AddForm(uint64_t rank, uint64_t record,
                                   FormCost cost) {
  forms[{rank, record}] = cost;
  ++form_entries[WayOf(cost.kind)];
  form_bytes[WayOf(cost.kind)] += cost.bytes;
}

uint64_t SampleCache::Dataset::RemoveForm(uint64_t rank, uint64_t record) {
  const auto it = forms.find({rank, record});
  if (it == forms.end()) return 0;
  const FormCost cost = it->second;
  forms.erase(it);
  --form_entries[WayOf(cost.kind)];
  form_bytes[WayOf(cost.kind)] -= cost.bytes;
  return cost.bytes;
}

double SampleCache::Dataset::RecordsToKeep(bool living) const {
  const auto have = static_cast<double>(entries);
  if (!living) return have;
  double share = 1;
  if (!owned.empty())
    share = static_cast<double>(std::count(owned.begin(), owned.end(), true)) /
            static_cast<double>(owned.size());
  return std::max(have, share * static_cast<double>(records));
}

// Times are those of the decodes at each scale, by how many there were.
FormDemand SampleCache::Dataset::DemandSince(double to_keep, double seconds) {
  std::array<double, kDecodeScales> asked_since{};
  double known = 0;
  for (size_t i = 0; i < kDecodeScales; ++i) {
    asked_since[i] = static_cast<double>(by_scale[i].LookAgain());
    if (by_scale[i].mean_ns[0] > 0) known += asked_since[i];
  }
  const double record_bytes =
      static_cast<double>(bytes) / static_cast<double>(entries);
  const auto ns_of = [&](size_t way) {
    double ns = 0;
    for (size_t i = 0; i < kDecodeScales && known > 0; ++i) {
      const std::array<double, kDecodeWays>& mean = by_scale[i].mean_ns;
      // Pixels are no reduced image's.
      const bool serves = way != WayOf(JpegFormKind::kPixels) ||
                          i == static_cast<size_t>(DecodeScale::kFull);
      const double each = !serves         ? mean[0]
                          : mean[way] > 0 ? mean[way]
                                          : kUsualForms[way].time * mean[0];
      if (mean[0] > 0) ns += asked_since[i] / known * each;
    }
    return ns;
  };
  const auto form = [&](JpegFormKind kind) {
    const size_t way = WayOf(kind);
    const uint64_t count = form_entries[way];
    return FormDemand::Form{
        .bytes = count < kLeastMeasured
                     ? kFormBytes + kUsualForms[way].size * record_bytes
                     : static_cast<double>(form_bytes[way]) /
                           static_cast<double>(count),
        .ns = ns_of(way)};
  };
  return {.records = to_keep,
          .decodes = known / seconds,
          .plain_ns = ns_of(0),
          .seek_index = form(JpegFormKind::kSeekIndex),
          .coefficients = form(JpegFormKind::kCoefficients),
          .pixels = form(JpegFormKind::kPixels)};
}

std::optional<JpegFormKind> SampleCache::Dataset::WantedAt(
    uint64_t rank) const {
  std::optional<JpegFormKind> wanted;
  for (const JpegFormKind kind : kJpegFormKinds)
    if (rank < wanted_below[WayOf(kind)]) wanted = kind;
  return wanted;
}

void SampleCache::Dataset::Describe(CachedDatasetStats* stats) const {
  stats->bytes += all_form_bytes();
  for (const JpegFormKind kind : kJpegFormKinds) {
    const size_t way = WayOf(kind);
    uint64_t hits = 0;
    double saved_ns = 0;
    for (const Decodes& decodes : by_scale) {
      hits += decodes.count[way];
      saved_ns += decodes.SavedNs(kind);
    }
    if (form_entries[way] + hits == 0) continue;
    stats->forms.push_back(
        {.form = FormName(kind),
         .bytes = form_bytes[way],
         .entries = form_entries[way],
         .hits = hits,
         .saved_ms = static_cast<uint64_t>(std::max(0.0, saved_ns / 1e6))});
  }
}

bool SampleCache::IsLiving(const Dataset& dataset) const {
  return uses_ == nullptr || uses_->Of(dataset.key).lives;
}

void SampleCache::SetFormRoom() {
  uint64_t used = shares_.bytes() + form_bytes_;
  for (const auto& [key, each] : datasets_)
    if (!each->forms.empty() && !IsLiving(*each))
      used -= each->all_form_bytes();
  form_room_ = limit_bytes_ - std::min(limit_bytes_, used);
}

void SampleCache::PlanIfDue() {
  const uint64_t asked = ++forms_asked_;
  const MonotonicTime now = clock_.Now();
  if (asked < plan_at_asked_ && now < plan_at_.load()) return;
  Gone gone;  // freed without the lock
  MutexLock lock(&mu_);
  if (asked < plan_at_asked_ && now < plan_at_.load()) return;
  plan_at_asked_ = std::max(kFirstPlan, 2 * asked);
  plan_at_ = now + kPlanPeriod;
  Plan(now, &gone);
}

void SampleCache::Plan(MonotonicTime now, Gone* gone) {
  const double seconds =
      std::max(1e-3, std::chrono::duration<double>(now - planned_at_).count());
  planned_at_ = now;
  std::vector<Dataset*> planned;
  std::vector<FormDemand> demands;
  double to_keep_bytes = 0;
  for (const auto& [key, each] : datasets_) {
    if (each->entries == 0) continue;
    const double records = each->RecordsToKeep(IsLiving(*each));
    to_keep_bytes += records * static_cast<double>(each->bytes) /
                     static_cast<double>(each->entries);
    planned.push_back(each.get());
    demands.push_back(each->DemandSince(records, seconds));
  }
  const std::vector<FormShare> shares = PlanForms(
      demands, forms_,
      std::max(0.0, static_cast<double>(limit_bytes_) - to_keep_bytes));
  for (size_t i = 0; i < planned.size(); ++i)
    for (size_t way = 1; way < kDecodeWays; ++way)
      planned[i]->wanted_below[way] = RankBelow(shares[i].from[way]);
  // Where forms lack room, those of own records are worth more than records of
  // others, once the new owners have had time to ask for these. The next plan
  // has the room.
  const size_t best = forms_.pixels         ? WayOf(JpegFormKind::kPixels)
                      : forms_.coefficients ? WayOf(JpegFormKind::kCoefficients)
                                            : WayOf(JpegFormKind::kSeekIndex);
  if (std::ranges::any_of(
          shares, [&](const FormShare& share) { return share.from[best] < 1; }))
    DropNotOwned(now - kPlanPeriod, gone);
  SetFormRoom();
}

bool SampleCache::HasForm(const DatasetPtr& dataset, uint64_t record) const {
  const Key key = {dataset->number, record};
  Slice& slice = SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  return it != slice.kept.end() && it->second.form != nullptr &&
         it->second.form->kept.whole;
}

std::optional<StoredSample> SampleCache::Find(const DatasetPtr& dataset,
                                              uint64_t record) const {
  const Key key = {dataset->number, record};
  Slice& slice = SliceOf(key);
  KeptForm form;
  const std::byte* file = nullptr;
  StoredSample sample;
  {
    MutexLock lock(&slice.mu);
    const auto it = slice.kept.find(key);
    if (it == slice.kept.end()) return std::nullopt;
    sample = it->second.sample;
    if (it->second.form != nullptr && it->second.form->kept.whole) {
      form = it->second.form->kept;
      file = it->second.form->file;
    }
  }
  for (const StoredField& field : sample.fields) {
    if (form.form == nullptr || field.bytes.data() != file) continue;
    sample.form_bytes = form.bytes;
    sample.form = std::make_shared<const ReadForm>(
        ReadForm{.file = field.bytes, .kept = form});
  }
  return sample;
}

FormWish SampleCache::AskForm(const DatasetPtr& dataset, uint64_t record,
                              std::span<const std::byte> file,
                              DecodeTerms* terms) {
  if (!forms_.any()) return {};
  PlanIfDue();
  const uint64_t turn = dataset->of(terms->scale).asked++;
  terms->plainly = turn < kFirstPlain || turn % kPlainOf == 0;
  const bool takes_pixels = terms->scale == DecodeScale::kFull;
  std::optional<JpegFormKind> wanted =
      dataset->WantedAt(RankOf(dataset->key, record));
  if (!takes_pixels && wanted)
    wanted = std::min(*wanted, JpegFormKind::kCoefficients);
  const uint64_t room = form_room_;
  FormWish wish;
  wish.max_bytes = room;
  const Key key = {dataset->number, record};
  Slice& slice = SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  if (it == slice.kept.end() || !it->second.Holds(file)) return {};
  const Entry& entry = it->second;
  if (entry.form != nullptr && entry.form->file != file.data()) return {};
  terms->lacks = LacksOf(entry, wanted, file.size());
  if (terms->plainly) return {};
  const std::optional<JpegFormKind> instead =
      entry.form == nullptr ? std::nullopt
                            : std::optional(entry.form->kept.kind);
  for (std::optional<JpegFormKind> kind = terms->lacks;
       kind && kind != JpegFormKind::kSeekIndex;
       kind = LacksOf(entry, Lesser(*kind), file.size())) {
    if (!Repays(dataset, *kind, instead, file.size(), *terms)) continue;
    if (!PayFor(dataset, *kind, file.size(), terms)) break;
    wish.make.Add(*kind);
    terms->lacks = std::nullopt;
    return wish;
  }
  if (entry.form != nullptr &&
      (takes_pixels || entry.form->kept.kind != JpegFormKind::kPixels))
    wish.use = entry.form->kept;
  wish.grow =
      (entry.form == nullptr || !entry.form->kept.whole) &&
      LacksOf(entry,
              wanted ? std::optional(JpegFormKind::kSeekIndex) : std::nullopt,
              file.size());
  return wish;
}

std::optional<JpegFormKind> SampleCache::LacksOf(
    const Entry& entry, std::optional<JpegFormKind> wanted,
    size_t file_bytes) const {
  for (std::optional<JpegFormKind> kind = wanted; kind; kind = Lesser(*kind)) {
    if (entry.Has(*kind)) return std::nullopt;
    const double bytes =
        static_cast<double>(file_bytes) * kUsualForms[WayOf(*kind)].size +
        kFormBytes;
    if (forms_.Has(*kind) && !entry.refused.Has(*kind) &&
        bytes <= static_cast<double>(form_room_))
      return kind;
  }
  return std::nullopt;
}

std::optional<StoredSample> SampleCache::FindLacking(
    const DatasetPtr& dataset, uint64_t record, JpegFormKind kind,
    std::span<const std::byte> file, uint64_t* max_bytes) const {
  if (dataset->owns_none || !IsLiving(*dataset)) return std::nullopt;
  const std::optional<JpegFormKind> wanted =
      dataset->WantedAt(RankOf(dataset->key, record));
  const Key key = {dataset->number, record};
  Slice& slice = SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  if (it == slice.kept.end() || !it->second.Holds(file) || !wanted ||
      *wanted < kind || LacksOf(it->second, kind, file.size()) != kind)
    return std::nullopt;
  *max_bytes = form_room_;
  return it->second.sample;
}

bool SampleCache::KeepForm(const DatasetPtr& dataset, uint64_t record,
                           std::span<const std::byte> file, KeptForm form) {
  const uint64_t bytes = form.bytes + kFormBytes;
  const JpegFormKind kind = form.kind;
  const bool whole = form.whole;
  const uint64_t rank = RankOf(dataset->key, record);
  // What it replaces, or itself; freed without a lock.
  auto other = std::make_unique<const Entry::Form>(
      Entry::Form{.file = file.data(), .kept = std::move(form)});
  Gone gone;  // as that
  const Key key = {dataset->number, record};
  Slice& slice = SliceOf(key);
  MutexLock lock(&mu_);
  DropForms(bytes, true, &gone);
  MutexLock slice_lock(&slice.mu);
  const auto it = slice.kept.find(key);
  if (it == slice.kept.end() || !it->second.Holds(file)) return false;
  Entry& entry = it->second;
  const uint64_t before =
      entry.form == nullptr ? 0 : entry.form->kept.bytes + kFormBytes;
  if (entry.form != nullptr) {
    const KeptForm& kept = entry.form->kept;
    const bool knows_more =
        kept.kind == kind && !kept.whole && (whole || bytes > before);
    if ((kept.kind >= kind && !knows_more) || entry.form->file != file.data())
      return false;
  }
  if (bytes > limit_bytes_ ||
      shares_.bytes() + form_bytes_ - before > limit_bytes_ - bytes)
    return false;
  std::swap(entry.form, other);
  form_bytes_ -= dataset->RemoveForm(rank, record);
  dataset->AddForm(rank, record, {.kind = kind, .bytes = bytes});
  form_bytes_ += bytes;
  SetFormRoom();
  return true;
}

void SampleCache::RefuseForms(const DatasetPtr& dataset, uint64_t record,
                              FormKinds kinds) {
  const Key key = {dataset->number, record};
  Slice& slice = SliceOf(key);
  MutexLock lock(&slice.mu);
  const auto it = slice.kept.find(key);
  if (it == slice.kept.end()) return;
  it->second.refused.Add(kinds);
}

// First of datasets that nobody reads, then of the one that has most.
void SampleCache::DropForms(uint64_t bytes, bool idle_only, Gone* gone) {
  while (form_bytes_ > 0 &&
         shares_.bytes() + form_bytes_ + bytes > limit_bytes_) {
    Dataset* giver = nullptr;
    bool giver_lives = true;
    for (const auto& [key, each] : datasets_) {
      if (each->forms.empty()) continue;
      const bool lives = IsLiving(*each);
      const bool before = giver == nullptr ||
                          (lives == giver_lives ? each->all_form_bytes() >
                                                      giver->all_form_bytes()
                                                : giver_lives);
      if (!before) continue;
      giver = each.get();
      giver_lives = lives;
    }
    if (idle_only && giver_lives) return;
    const auto [rank, record] = std::prev(giver->forms.end())->first;
    form_bytes_ -= giver->RemoveForm(rank, record);
    const Key key = {giver->number, record};
    Slice& slice = SliceOf(key);
    MutexLock lock(&slice.mu);
    gone->push_back({.sample = {},
                     .form = std::move(slice.kept.find(key)->second.form),
                     .refused = {}});
  }
}

}  // namespace leat::worker
