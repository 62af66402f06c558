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
#include "core/counted.h"
#include "core/plan/layout.h"
#include "core/plan/share_layout.h"
#include "core/plan/share_schedule.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

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

// The next step of the job, counted over all epochs.
uint64_t StepOfAll(const Json& job) {
  return std::min(
      kStreamSteps - 1,
      Whole(job, "epoch") * Whole(job, "steps_per_epoch") + Whole(job, "step"));
}

// Returns how many of a consumer's rows are in runs that it has a part of only.
// Rows are mixed in runs (core/plan/share_layout.h), so the shares of these rows
// are not its own.
uint64_t RowsInPartsOfRuns(uint64_t first, uint64_t rows, uint64_t batch) {
  constexpr uint64_t kRun = ShareLayout::kRun;
  const uint64_t end = std::min(first + rows, batch);
  const uint64_t whole_begin = (first + kRun - 1) / kRun * kRun;
  // The last run of a batch may be shorter.
  const uint64_t whole_end = end == batch ? end : end / kRun * kRun;
  if (whole_begin >= whole_end) return end - std::min(first, end);
  return (whole_begin - first) + (end - whole_end);
}

// Returns "In a batch, and in the rows of each of its 2 consumers, a source has
// its share within 4 rows."
std::string BoundText(const Json& spec, const Json& consumers) {
  const uint64_t batch = Whole(spec, "batch");
  uint64_t most = 0;
  size_t known = 0, exact = 0;
  for (const Json& consumer : consumers) {
    const uint64_t rows = Whole(consumer, "stats.rows_per_step");
    if (rows == 0) continue;
    const uint64_t parts =
        RowsInPartsOfRuns(Whole(consumer, "stats.first_row"), rows, batch);
    ++known;
    exact += parts == 0 ? 1 : 0;
    most = std::max(most, parts);
  }
  if (known == 0)
    return "In a batch a source has its share within 4 rows, and so in the "
           "rows of a host that are whole runs of 64.";
  const std::string of = Counted(known, "consumer");
  if (exact == known)
    return fmt::format(
        "In a batch, and in the rows of its {}, a source has its share within "
        "4 rows.",
        of);
  return fmt::format(
      "In a batch a source has its share within 4 rows. So it has in the rows "
      "of {} of its {}; the others have parts of runs of 64 rows, and add "
      "these parts, at most {}.",
      exact, of, Counted(most, "row"));
}

}  // namespace

std::string PassText(uint64_t rows, uint64_t samples) {
  if (samples == 0) return "-";
  return fmt::format("{} ({:.1f} %)", rows / samples,
                     100.0 * static_cast<double>(rows % samples) /
                         static_cast<double>(samples));
}

std::vector<uint64_t> RowsSoFar(const Json& job) {
  const Json& spec = At(job, "job.spec");
  const uint64_t step = StepOfAll(job);
  std::vector<std::string> names;
  for (const Json& source : Items(spec, "sources"))
    names.push_back(Text(source, "name"));
  if (names.empty()) return {step * Whole(spec, "batch")};
  const absl::StatusOr<ShareSchedule> schedule = ScheduleOf(spec, names);
  if (!schedule.ok()) return {};
  std::vector<uint64_t> rows(names.size());
  schedule->RowsBefore(step, rows);
  return rows;
}

std::string SourceNames(const Json& spec) {
  constexpr size_t kNamed = 4;
  const Json& sources = Items(spec, "sources");
  if (sources.empty()) return "-";
  std::vector<std::string> names;
  for (const Json& source : sources)
    if (names.size() < kNamed) names.push_back(Text(source, "name"));
  return fmt::format(
      "{}{}", fmt::join(names, ", "),
      sources.size() <= kNamed
          ? ""
          : fmt::format(" and {} more", sources.size() - kNamed));
}

Section SourcesOf(const Json& job, const Json& consumers) {
  Section section;
  const Json& spec = At(job, "job.spec");
  std::vector<std::string> names;
  for (const Json& source : Items(spec, "sources"))
    names.push_back(Text(source, "name"));
  if (names.empty()) return section;
  const absl::StatusOr<ShareSchedule> schedule = ScheduleOf(spec, names);
  if (!schedule.ok()) return section;  // of a coordinator that checks otherwise
  const uint64_t step = StepOfAll(job);
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
                          PassText(rows, samples)});
  }
  section.lines.push_back({BoundText(spec, consumers)});
  if (names.size() > kShownSources)
    section.lines.push_back(
        {fmt::format("{} more", names.size() - kShownSources)});
  return section;
}

}  // namespace leat::cli
