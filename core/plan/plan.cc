// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "core/plan/sample_order.h"
#include "core/random/permutation.h"
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
  State(const JobSpec& spec, const ShardTable& shards)
      : seed(spec.seed),
        last_batch(spec.last_batch),
        batch(spec.batch),
        num_samples(shards.num_samples()),
        layout(spec, shards.num_samples()),
        order(spec, shards, layout.num_runs()) {}

  const uint64_t seed;
  const LastBatch last_batch;
  const uint32_t batch;
  const uint64_t num_samples;
  const PassLayout layout;
  const SampleOrder order;
};

Plan::Plan(const JobSpec& spec, const ShardTable& shards)
    : state_(std::make_unique<State>(spec, shards)) {}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

uint64_t Plan::num_samples() const { return state_->num_samples; }
uint64_t Plan::steps_per_epoch() const {
  return state_->layout.steps_per_epoch();
}
absl::Status Plan::CheckEpoch(uint64_t epoch) const {
  if (state_->last_batch != LastBatch::kStream || epoch == 0)
    return absl::OkStatus();
  return InvalidArgument(
      "epoch {}: a stream (last_batch \"stream\") has one epoch, whose steps "
      "run on without an end: want epoch 0 and a step",
      epoch);
}

uint32_t Plan::batch() const { return state_->batch; }

uint32_t Plan::rows_in(uint64_t step) const {
  return state_->layout.rows_in(step);
}

void Plan::Samples(uint64_t epoch, uint64_t step,
                   std::span<const uint32_t> rows,
                   std::span<uint64_t> samples) const {
  for (size_t begin = 0; begin < rows.size();) {
    const Stretch stretch = state_->layout.Locate(
        epoch, step, rows.subspan(begin), samples.subspan(begin));
    const std::span<uint64_t> positions = samples.subspan(begin, stretch.rows);
    if (stretch.whole)
      state_->order.Map(stretch.pass, stretch.run, positions);
    else
      MapSome(state_->order, stretch, positions);
    begin += stretch.rows;
  }
}

bool Plan::IsPadding(uint64_t epoch, uint64_t step, uint32_t row) const {
  return state_->layout.IsPadding(epoch, step, row);
}

uint64_t Plan::PassOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  return state_->layout.PassOf(epoch, step, row);
}

uint32_t Plan::PartnerOf(uint64_t epoch, uint64_t step, uint32_t row) const {
  const State& s = *state_;
  const uint64_t rows = rows_in(step);
  if (rows < 2) return row;
  const uint64_t key = MixKey(MixKey(s.seed, epoch, kPartnerSalt), step, 0);
  const auto shift = static_cast<uint64_t>((Wide{key} * (rows - 1) >> 64) + 1);
  if (rows == s.batch) return static_cast<uint32_t>((row + shift) % rows);
  // Some blocks have rows without a sample, at their ends.
  const uint32_t block_rows = s.layout.block_rows();
  const auto held = [&](uint32_t block) {
    return s.layout.rows_in(epoch, step, block);
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
  const uint64_t n = state_->num_samples;
  if (n < 2) return sample;
  // The others in an order of this sample's own: no attempt repeats another.
  const Permutation others(
      n - 1, MixKey(MixKey(state_->seed, epoch, kSubstituteSalt), sample, 0));
  return (sample + 1 + others(attempt % (n - 1))) % n;
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
