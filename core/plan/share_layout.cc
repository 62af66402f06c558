// SPDX-License-Identifier: Apache-2.0
//
// Cut takes the rows of consecutive runs together, by their places π(r) and not
// by r. The trees deal these places out, leaf by leaf; so the positions of a
// leaf follow each other, and one order maps all of them. A place whose row is
// not asked for is dealt out, too, and then left out.
#include "core/plan/share_layout.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/random/permutation.h"
#include "core/status.h"

namespace leat {
namespace {

// Salts of MixKey.
constexpr uint64_t kSourceSalt = 0x73726373'00000000;     // "srcs"
constexpr uint64_t kMixedRowsSalt = 0x6D697872'00000000;  // "mixr"

// Returns the permutation of the `run`-th run of rows of a batch.
Permutation RowsOfRun(uint64_t step_key, uint32_t run, uint32_t batch) {
  const uint32_t rows =
      std::min(batch - run * ShareLayout::kRun, ShareLayout::kRun);
  return {rows, MixKey(step_key, run, 0)};
}

absl::Status CheckSources(std::span<const ShareLayout::Source> sources) {
  uint64_t samples = 0;
  for (const ShareLayout::Source& source : sources) {
    if (source.num_samples == 0)
      return InvalidArgument("source \"{}\" has 0 samples: want at least 1",
                             source.name);
    // Up to kMaxSources of these do not overflow.
    samples += std::min(source.num_samples, kMaxSamples + 1);
  }
  if (samples <= kMaxSamples) return absl::OkStatus();
  const auto& most =
      *std::ranges::max_element(sources, {}, &ShareLayout::Source::num_samples);
  return InvalidArgument(
      "sources have over {} samples in all, source \"{}\" alone {}: want at "
      "most {}",
      kMaxSamples, most.name, most.num_samples, kMaxSamples);
}

}  // namespace

uint64_t SourceSeed(uint64_t seed, uint32_t source) {
  return MixKey(seed, source, kSourceSalt);
}

ShareLayout::ShareLayout(ShareSchedule schedule, std::vector<Source> sources,
                         MixEnd ends, uint64_t seed)
    : schedule_(std::move(schedule)),
      sources_(std::move(sources)),
      ends_(ends),
      seed_(seed) {}

absl::StatusOr<ShareLayout> ShareLayout::Create(ShareSchedule schedule,
                                                std::vector<Source> sources,
                                                MixEnd ends, uint64_t seed) {
  RETURN_IF_ERROR(CheckSources(sources));
  ShareLayout layout(std::move(schedule), std::move(sources), ends, seed);
  RETURN_IF_ERROR(layout.FindEnd());
  return layout;
}

absl::Status ShareLayout::FindEnd() {
  if (ends_ == MixEnd::kStream) return absl::OkStatus();
  if (schedule_.num_segments() > 1)
    return InvalidArgument(
        "ends \"{}\" with {} segments of weights: want no ends, as the end "
        "would depend on the weights to come",
        Name(ends_), schedule_.num_segments());
  const bool first = ends_ == MixEnd::kFirst;
  if (const auto source = SourceAgainst(1); first && source)
    return InvalidArgument(
        "ends \"first\": source \"{}\" has {} samples, and {} rows in the "
        "first "
        "batch: want a smaller batch, or other ends",
        sources_[*source].name, sources_[*source].num_samples,
        schedule_.RowsBefore(1, *source));
  if (const auto source = SourceAgainst(kStreamSteps); !first && source)
    return schedule_.weights(0)[*source] == 0
               ? InvalidArgument(
                     "ends \"all\": source \"{}\" has the weight 0, and never "
                     "ends: want a weight over 0, or other ends",
                     sources_[*source].name)
               : InvalidArgument(
                     "ends \"all\": source \"{}\" does not end within {} "
                     "steps: want a larger weight, or other ends",
                     sources_[*source].name, kStreamSteps);
  // No source is against `lower` under kFirst, and none against `upper` under
  // kAll.
  uint64_t lower = 0, upper = kStreamSteps;
  while (upper - lower > 1) {
    const uint64_t middle = lower + (upper - lower) / 2;
    const bool against = SourceAgainst(middle).has_value();
    (against == first ? upper : lower) = middle;
  }
  steps_per_epoch_ = first ? lower : upper;
  return absl::OkStatus();
}

std::optional<uint32_t> ShareLayout::SourceAgainst(uint64_t steps) const {
  std::vector<uint64_t> rows(sources_.size());
  schedule_.RowsBefore(steps, rows);
  for (uint32_t i = 0; i < rows.size(); ++i)
    if (ends_ == MixEnd::kFirst ? rows[i] > sources_[i].num_samples
                                : rows[i] < sources_[i].num_samples)
      return i;
  return std::nullopt;
}

absl::Status ShareLayout::CheckEpoch(uint64_t epoch) const {
  const uint64_t epochs = kStreamSteps / steps_per_epoch_;
  if (epoch < epochs) return absl::OkStatus();
  if (ends_ == MixEnd::kStream)
    return InvalidArgument(
        "epoch {}: a mixture without ends has one epoch, whose steps run on "
        "without an end: want epoch 0 and a step",
        epoch);
  return InvalidArgument("epoch {} of {} steps: want at most {}", epoch,
                         steps_per_epoch_, epochs - 1);
}

SampleOrder::Run ShareLayout::RunOf(uint32_t source, uint32_t group) const {
  const Source& its = sources_[source];
  if (its.groups) return its.groups->RunOf(group);
  return {{0, its.num_samples}, 0};
}

Spot ShareLayout::SpotIn(uint32_t source, uint64_t stream_row) const {
  const Source& its = sources_[source];
  if (its.groups) {
    const GroupShares::Place place = its.groups->Locate(stream_row);
    return {source, place.pass, place.run, place.position};
  }
  const uint64_t pass = stream_row / its.num_samples;
  return {.source = source,
          .pass = pass,
          .run = RunOf(source, 0),
          .position = stream_row - pass * its.num_samples};
}

ShareTree::Place ShareLayout::RowOf(uint64_t epoch, uint64_t step,
                                    uint32_t row) const {
  const uint64_t of_all = StepOfAll(epoch, step);
  const uint64_t key = MixKey(seed_, of_all, kMixedRowsSalt);
  const uint32_t run = row / kRun;
  const auto place = static_cast<uint32_t>(
      run * kRun + RowsOfRun(key, run, schedule_.batch())(row % kRun));
  return schedule_.At(of_all).Locate(of_all, place);
}

Spot ShareLayout::SpotOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  const ShareTree::Place found = RowOf(epoch, step, row);
  return SpotIn(found.leaf, found.index);
}

// Cuts the rows of one step. Thread-compatible.
class ShareLayout::Cutting {
 public:
  // `step` counts over all epochs.
  Cutting(const ShareLayout& layout, uint64_t step,
          std::span<const uint32_t> rows, Stretches* out)
      : layout_(layout),
        step_(step),
        key_(MixKey(layout.seed_, step, kMixedRowsSalt)),
        segment_(layout.schedule_.At(step)),
        rows_(rows),
        out_(out) {
    out->list.clear();
    // A row that is left out is written, and then overwritten.
    out->positions.resize(rows.size() + 1);
    out->slots.resize(rows.size() + 1);
  }

  void All() {
    while (taken_ < rows_.size()) {
      const uint32_t run = rows_[taken_] / kRun;
      const size_t begin = taken_;
      slots_.clear();
      do {
        TakeRun();
      } while (taken_ < rows_.size() && slots_.size() < kMostTogether &&
               rows_[taken_] / kRun == run + slots_.size() / kRun &&
               slots_.size() % kRun == 0);
      if ((taken_ - begin) * kSparse < slots_.size())
        LocateEach(run * kRun);
      else
        DealOut(run * kRun);
    }
    out_->positions.resize(written_);
    out_->slots.resize(written_);
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  // Rows are located one by one if fewer of the places than one in so many are
  // theirs.
  static constexpr size_t kSparse = 4;
  static constexpr size_t kMostTogether = ShareTree::kMostTogether;
  static_assert(kMostTogether % kRun == 0);

  // Takes rows that ascend within a run, and appends the run's places.
  void TakeRun() {
    const uint32_t run = rows_[taken_] / kRun;
    const Permutation mixed = RowsOfRun(key_, run, layout_.schedule_.batch());
    std::array<uint64_t, kRun> places;
    const size_t begin = taken_;
    do {
      places[taken_ - begin] = rows_[taken_] % kRun;
      ++taken_;
    } while (taken_ < rows_.size() && rows_[taken_] / kRun == run &&
             rows_[taken_] > rows_[taken_ - 1]);
    mixed.MapInPlace(std::span(places).first(taken_ - begin));
    const size_t first = slots_.size();
    slots_.resize(first + mixed.size(), kNone);
    for (size_t slot = begin; slot < taken_; ++slot)
      slots_[first + places[slot - begin]] = static_cast<uint32_t>(slot);
  }

  void LocateEach(uint32_t first_place) {
    for (uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] == kNone) continue;
      const auto [source, row] = segment_.Locate(step_, first_place + i);
      AddOfSource(source, row, std::span(&i, 1));
    }
  }

  void DealOut(uint32_t first_place) {
    order_.resize(slots_.size());
    segment_.DealOut(step_, first_place, order_, &hands_);
    for (const ShareTree::Hand& hand : hands_)
      AddOfSource(hand.first.leaf, hand.first.index,
                  std::span(order_).subspan(hand.begin, hand.rows()));
  }

  // Rows of the source's stream from `row` on stand at these places.
  void AddOfSource(uint32_t source, uint64_t row,
                   std::span<const uint32_t> places) {
    const std::optional<GroupShares>& groups = layout_.sources_[source].groups;
    if (!groups) return AddOfRun(source, layout_.RunOf(source, 0), row, places);
    group_order_.resize(places.size());
    groups->tree().DealOut(row, group_order_, &group_hands_);
    for (uint32_t& place : group_order_) place = places[place];
    for (const ShareTree::Hand& hand : group_hands_)
      AddOfRun(source, groups->RunOf(hand.first.leaf), hand.first.index,
               std::span(group_order_).subspan(hand.begin, hand.rows()));
  }

  // The same for rows of the stream of one run of samples.
  void AddOfRun(uint32_t source, const SampleOrder::Run& run, uint64_t row,
                std::span<const uint32_t> places) {
    const uint64_t samples = run.range.size();
    uint64_t pass = row / samples, position = row - pass * samples;
    while (!places.empty()) {
      const size_t of_pass =
          std::min<uint64_t>(places.size(), samples - position);
      size_t written = written_;
      for (const uint32_t place : places.first(of_pass)) {
        const uint32_t slot = slots_[place];
        out_->positions[written] = position++;
        out_->slots[written] = slot;
        written += slot != kNone;
      }
      if (written > written_)
        out_->list.push_back({.rows = written - written_,
                              .source = source,
                              .pass = pass,
                              .run = run});
      written_ = written;
      places = places.subspan(of_pass);
      ++pass;
      position = 0;
    }
  }

  const ShareLayout& layout_;
  const uint64_t step_, key_;
  const ShareSchedule::Segment segment_;
  const std::span<const uint32_t> rows_;
  Stretches* const out_;
  size_t taken_ = 0, written_ = 0;  // of the rows
  std::vector<uint32_t> slots_;     // at the places of consecutive runs
  std::vector<uint32_t> order_, group_order_;
  std::vector<ShareTree::Hand> hands_, group_hands_;
};

void ShareLayout::Cut(uint64_t epoch, uint64_t step,
                      std::span<const uint32_t> rows, Stretches* out) const {
  Cutting(*this, StepOfAll(epoch, step), rows, out).All();
}

}  // namespace leat
