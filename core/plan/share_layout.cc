// SPDX-License-Identifier: Apache-2.0
//
// Cut finds the spots of all rows, and sorts them by source and group, so that
// one order maps many positions together. Within a run of 64 it walks the rows
// by their places π(r) and not by r: a source's positions then ascend, and so
// its passes follow each other.
#include "core/plan/share_layout.h"

#include <algorithm>
#include <array>
#include <numeric>
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

// A row, found.
struct ShareLayout::Found {
  uint32_t run = 0;   // among the runs of all sources
  uint32_t slot = 0;  // among the rows asked for
  uint32_t source = 0;
  uint64_t pass = 0, position = 0;

  // Sorts by run, and else leaves the order as it is: by one byte of the run's
  // number after the other. Up to 256 runs take one round.
  static void Sort(uint32_t num_runs, std::vector<Found>* found) {
    std::vector<Found> sorted(found->size());
    for (uint32_t shift = 0; (num_runs - 1) >> shift > 0; shift += 8) {
      std::array<uint32_t, 257> begins = {};
      const auto byte = [&](const Found& row) {
        return row.run >> shift & 0xFF;
      };
      for (const Found& row : *found) ++begins[byte(row) + 1];
      std::partial_sum(begins.begin(), begins.end(), begins.begin());
      for (const Found& row : *found) sorted[begins[byte(row)]++] = row;
      found->swap(sorted);
    }
  }
};

ShareLayout::ShareLayout(ShareSchedule schedule, std::vector<Source> sources,
                         MixEnd ends, uint64_t seed)
    : schedule_(std::move(schedule)),
      sources_(std::move(sources)),
      ends_(ends),
      seed_(seed) {
  uint32_t runs = 0;
  for (const Source& source : sources_) {
    first_runs_.push_back(runs);
    runs += source.groups ? source.groups->num_groups() : 1;
  }
  num_runs_ = runs;
}

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

void ShareLayout::Find(uint64_t step, std::span<const uint32_t> rows,
                       std::vector<Found>* found) const {
  constexpr uint32_t kNone = ~uint32_t{0};
  const uint64_t key = MixKey(seed_, step, kMixedRowsSalt);
  const ShareSchedule::Segment segment = schedule_.At(step);
  std::array<uint64_t, kRun> places;
  std::array<uint32_t, kRun> slots;  // of the row at each place
  slots.fill(kNone);
  found->reserve(rows.size());
  for (uint32_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    // Rows that ascend within a run.
    const uint32_t run = rows[begin] / kRun;
    do {
      places[end - begin] = rows[end] % kRun;
      ++end;
    } while (end < rows.size() && rows[end] / kRun == run &&
             rows[end] > rows[end - 1]);
    RowsOfRun(key, run, schedule_.batch())
        .MapInPlace(std::span(places).first(end - begin));
    for (uint32_t slot = begin; slot < end; ++slot)
      slots[places[slot - begin]] = slot;
    for (uint32_t place = 0; place < kRun; ++place) {
      const uint32_t slot = std::exchange(slots[place], kNone);
      if (slot == kNone) continue;
      const auto [source, stream_row] =
          segment.Locate(step, run * kRun + place);
      const Spot spot = SpotIn(source, stream_row);
      found->push_back({.run = first_runs_[source] + spot.run.number,
                        .slot = slot,
                        .source = source,
                        .pass = spot.pass,
                        .position = spot.position});
    }
  }
}

void ShareLayout::Cut(uint64_t epoch, uint64_t step,
                      std::span<const uint32_t> rows, Stretches* out) const {
  std::vector<Found> found;
  Find(StepOfAll(epoch, step), rows, &found);
  Found::Sort(num_runs_, &found);
  out->list.clear();
  out->positions.resize(found.size());
  out->slots.resize(found.size());
  const Found* previous = nullptr;
  for (size_t i = 0; i < found.size(); ++i) {
    const Found& row = found[i];
    if (previous == nullptr || previous->run != row.run ||
        previous->pass != row.pass)
      out->list.push_back(
          {.source = row.source,
           .pass = row.pass,
           .run = RunOf(row.source, row.run - first_runs_[row.source])});
    ++out->list.back().rows;
    out->positions[i] = row.position;
    out->slots[i] = row.slot;
    previous = &row;
  }
}

}  // namespace leat
