// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/plan/job_layout.h"
#include "core/plan/pass_layout.h"
#include "core/plan/sample_order.h"
#include "core/plan/share_layout.h"
#include "core/random/permutation.h"
#include "core/random/permute_each.h"
#include "core/status.h"

namespace leat {
namespace {

// Salts of MixKey.
constexpr uint64_t kSubstituteSalt = 0x73756273'00000000;  // "subs"
constexpr uint64_t kPartnerSalt = 0x70617274'00000000;     // "part"

using Wide = unsigned __int128;

// Maps the positions of a stretch; rows without a position get no sample.
void MapSome(const SampleOrder& order, const Stretch& stretch,
             std::span<uint64_t> positions) {
  std::vector<bool> holds(positions.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    holds[i] = positions[i] != kNoPosition;
    if (!holds[i]) positions[i] = 0;  // maps to anything
  }
  order.Map(stretch.pass, stretch.run, positions);
  for (size_t i = 0; i < positions.size(); ++i)
    if (!holds[i]) positions[i] = kNoSample;
}

}  // namespace

struct Plan::State {
  // The order of one source's samples, and their numbers in the job.
  struct Source {
    uint64_t seed = 0;
    uint64_t first = 0, num_samples = 0;
    std::unique_ptr<const SampleOrder> order;
  };

  uint64_t augment_seed = 0;
  uint32_t batch = 0;
  uint64_t num_samples = 0;
  // Exactly one of these is set: `shares` if HasShareLayout.
  std::unique_ptr<const PassLayout> passes;
  std::unique_ptr<const ShareLayout> shares;
  std::vector<Source> sources;

  State(const JobSpec& spec, const ShardTable& shards)
      : augment_seed(AugmentSeed(spec)),
        batch(spec.batch),
        passes(std::make_unique<PassLayout>(spec, shards.num_samples())) {
    Add(spec, spec.seed, shards, passes->num_runs());
  }
  State(const JobSpec& spec, std::span<const DatasetInfo> datasets)
      : augment_seed(AugmentSeed(spec)),
        batch(spec.batch),
        shares(std::make_unique<const ShareLayout>(
            *ShareLayoutOf(spec, datasets))) {
    for (uint32_t i = 0; i < datasets.size(); ++i) {
      const auto& groups = shares->sources()[i].groups;
      Add(spec, IsMixture(spec) ? SourceSeed(spec.seed, i) : spec.seed,
          datasets[i].shards, groups ? groups->num_groups() : 1);
    }
  }

  // Replaces all positions by samples, by their numbers in their sources.
  void MapAll(Stretches* cut) const {
    thread_local std::vector<PermutedIndices> few;
    few.clear();
    std::span<uint64_t> rest = cut->positions;
    for (const Stretch& stretch : cut->list) {
      const std::span<uint64_t> positions = rest.first(stretch.rows);
      rest = rest.subspan(stretch.rows);
      const SampleOrder& order = *sources[stretch.source].order;
      if (stretch.whole)
        order.MapOrAdd(stretch.pass, stretch.run, positions, &few);
      else
        MapSome(order, stretch, positions);
    }
    PermuteEach(few);
  }

  const Layout& layout() const {
    return shares != nullptr ? static_cast<const Layout&>(*shares) : *passes;
  }
  // Returns the samples of the source that may stand for this one: those of its
  // class, or all.
  ShardTable::Range RunOf(uint32_t source, uint64_t sample) const {
    if (shares != nullptr)
      if (const auto& groups = shares->sources()[source].groups;
          groups && groups->are_classes())
        return groups->RunOf(groups->GroupOf(sample)).range;
    return {0, sources[source].num_samples};
  }

 private:
  void Add(const JobSpec& spec, uint64_t of_seed, const ShardTable& shards,
           uint32_t runs) {
    sources.push_back({.seed = of_seed,
                       .first = num_samples,
                       .num_samples = shards.num_samples(),
                       .order = std::make_unique<const SampleOrder>(
                           SampleOrder::Options{.seed = of_seed,
                                                .order = spec.order,
                                                .window = spec.shuffle_window},
                           shards, runs)});
    num_samples += shards.num_samples();
  }
};

Plan::Plan(const JobSpec& spec, const ShardTable& shards)
    : state_(std::make_unique<State>(spec, shards)) {}
Plan::Plan(const JobSpec& spec, std::span<const DatasetInfo> datasets)
    : state_(HasShareLayout(spec)
                 ? std::make_unique<State>(spec, datasets)
                 : std::make_unique<State>(spec, datasets[0].shards)) {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

uint64_t Plan::num_samples() const { return state_->num_samples; }
uint64_t Plan::steps_per_epoch() const {
  return state_->layout().steps_per_epoch();
}
absl::Status Plan::CheckEpoch(uint64_t epoch) const {
  if (state_->shares != nullptr) return state_->shares->CheckEpoch(epoch);
  if (steps_per_epoch() != kStreamSteps || epoch == 0) return absl::OkStatus();
  return InvalidArgument(
      "epoch {}: a stream (last_batch \"stream\") has one epoch, whose steps "
      "run on without an end: want epoch 0 and a step",
      epoch);
}

uint32_t Plan::batch() const { return state_->batch; }

uint32_t Plan::rows_in(uint64_t step) const {
  return state_->layout().rows_in(step);
}

void Plan::Samples(uint64_t epoch, uint64_t step,
                   std::span<const uint32_t> rows,
                   std::span<uint64_t> samples) const {
  thread_local Stretches cut;
  state_->layout().Cut(epoch, step, rows, &cut);
  state_->MapAll(&cut);
  size_t at = 0;
  for (const Stretch& stretch : cut.list) {
    const uint64_t first = state_->sources[stretch.source].first;
    for (const size_t end = at + stretch.rows; at < end; ++at)
      samples[cut.slots.empty() ? at : cut.slots[at]] =
          cut.positions[at] == kNoSample ? kNoSample
                                         : first + cut.positions[at];
  }
}

bool Plan::IsPadding(uint64_t epoch, uint64_t step, uint32_t row) const {
  return state_->layout().IsPadding(epoch, step, row);
}

uint64_t Plan::PassOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  if (state_->passes != nullptr)
    return state_->passes->PassOf(epoch, step, row);
  return state_->shares->SpotOf(epoch, step, row).pass;
}

uint32_t Plan::SourceOf(uint64_t sample) const {
  const std::vector<State::Source>& sources = state_->sources;
  const auto after =
      std::ranges::upper_bound(sources, sample, {}, &State::Source::first);
  return static_cast<uint32_t>(after - sources.begin() - 1);
}

const ShareLayout* Plan::shares() const { return state_->shares.get(); }

uint32_t Plan::PartnerOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  const State& s = *state_;
  const uint64_t rows = rows_in(step);
  if (rows < 2) return row;
  const uint64_t key =
      MixKey(MixKey(s.augment_seed, epoch, kPartnerSalt), step, 0);
  const auto shift = static_cast<uint64_t>((Wide{key} * (rows - 1) >> 64) + 1);
  if (rows == s.batch) return static_cast<uint32_t>((row + shift) % rows);
  // Some blocks have rows without a sample, at their ends.
  const uint32_t block_rows = s.passes->block_rows();
  const auto held = [&](uint32_t block) {
    return s.passes->rows_in(epoch, step, block);
  };
  uint64_t place = row % block_rows + shift;  // among those that hold some
  for (uint32_t block = 0; block < row / block_rows; ++block)
    place += held(block);
  place %= rows;
  uint32_t block = 0;
  for (; place >= held(block); ++block) place -= held(block);
  return static_cast<uint32_t>(block * uint64_t{block_rows} + place);
}

uint64_t Plan::Substitute(uint64_t epoch, uint64_t sample,
                          uint32_t attempt) const {
  const uint32_t number = SourceOf(sample);
  const State::Source& source = state_->sources[number];
  const uint64_t in_source = sample - source.first;
  const ShardTable::Range range = state_->RunOf(number, in_source);
  const uint64_t n = range.size();
  if (n < 2) return sample;
  const uint64_t own = in_source - range.begin;
  // The others in an order of this sample's own: no attempt repeats another.
  const Permutation others(
      n - 1, MixKey(MixKey(source.seed, epoch, kSubstituteSalt), in_source, 0));
  return source.first + range.begin + (own + 1 + others(attempt % (n - 1))) % n;
}

bool DrawsForSteps(const Graph& pipeline) {
  return std::ranges::any_of(pipeline.nodes, [](const Node& node) {
    const auto per = node.args.find("per");
    if (per == node.args.end()) return false;
    const auto* text = std::get_if<std::string>(&per->second);
    return text != nullptr && *text == "batch";
  });
}

}  // namespace leat
