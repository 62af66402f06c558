// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/describe_sources.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/base/fields.h"
#include "client/cli/base/text.h"
#include "core/plan/layout.h"
#include "core/plan/share_schedule.h"
#include "fmt/format.h"

namespace leat::cli {
namespace {

constexpr size_t kShownSources = 100;

absl::StatusOr<ShareSchedule> ScheduleOf(const Json& spec,
                                         std::span<const std::string> names) {
  std::vector<SharesFrom> shares;
  for (const Json& segment : Items(spec, "shares")) {
    SharesFrom& from = shares.emplace_back();
    from.from_step = Whole(segment, "from_step");
    for (const Json& weight : Items(segment, "weights"))
      from.weights.push_back(weight.is_number() ? weight.get<double>() : 0);
  }
  const uint64_t batch = Whole(spec, "batch");
  return ShareSchedule::Create(
      shares, names,
      static_cast<uint32_t>(std::clamp<uint64_t>(batch, 1, UINT32_MAX)));
}

std::string Share(const ShareSchedule& schedule, uint64_t step, size_t source) {
  const auto weights = schedule.weights(schedule.SegmentAt(step));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  return fmt::format("{:.1f}",
                     100.0 * static_cast<double>(weights[source]) / sum);
}

// "3 (4.8 %)".
std::string Pass(uint64_t rows, uint64_t samples) {
  if (samples == 0) return "-";
  return fmt::format("{} ({:.1f} %)", rows / samples,
                     100.0 * static_cast<double>(rows % samples) /
                         static_cast<double>(samples));
}

}  // namespace

Section SourcesOf(const Json& job) {
  Section section;
  const Json& spec = At(job, "job.spec");
  std::vector<std::string> names;
  for (const Json& source : Items(spec, "sources"))
    names.push_back(Text(source, "name"));
  if (names.empty()) return section;
  const absl::StatusOr<ShareSchedule> schedule = ScheduleOf(spec, names);
  if (!schedule.ok()) return section;  // of a coordinator that checks otherwise
  const uint64_t step = std::min(
      kStreamSteps - 1,
      Whole(job, "epoch") * Whole(job, "steps_per_epoch") + Whole(job, "step"));
  section.title = fmt::format("Sources ({}), at step {} of {} rows",
                              names.size(), step, Text(spec, "batch"));
  Table& table = section.table;
  table.columns = {{"SOURCE"},
                   {"DATASET", 1},
                   {"SAMPLES", 2, false, true},
                   {"SHARE(%)", 0, false, true},
                   {"ROWS SO FAR", 3, false, true},
                   {"PASS", 0, false, true}};
  const Json& datasets = Items(job, "job.datasets");
  for (uint32_t i = 0; i < std::min(names.size(), kShownSources); ++i) {
    const Json none;
    const Json& dataset = i < datasets.size() ? datasets[i] : none;
    const uint64_t samples = Whole(dataset, "shards.num_samples");
    const uint64_t rows = schedule->RowsBefore(step, i);
    table.rows.push_back({{names[i], Tone::kBold},
                          Text(dataset, "name"),
                          fmt::format("{}", samples),
                          Share(*schedule, step, i),
                          fmt::format("{}", rows),
                          Pass(rows, samples)});
  }
  if (names.size() > kShownSources)
    section.lines.push_back(
        {fmt::format("{} more", names.size() - kShownSources)});
  return section;
}

}  // namespace leat::cli
