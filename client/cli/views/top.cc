// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/top.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "client/cli/base/text.h"
#include "client/cli/views/listing.h"
#include "core/status.h"

namespace leat::cli {
namespace {

// A share that is highlighted.
constexpr double kMuch = 0.7;

const Json& StageIn(const Json& stats, std::string_view stage) {
  static const Json& none = *new Json();
  for (const Json& each : Items(stats, "stages"))
    if (Text(each, "stage") == stage) return each;
  return none;
}

// Returns seconds of one place, from a count in ns.
double PlaceSeconds(const Json& stage, std::string_view field) {
  const double places = std::max<double>(1, Number(stage, "places"));
  return Number(stage, field) / 1e9 / places;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lower(std::string_view text) {
  std::string lower;
  for (const char c : text)
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

absl::StatusOr<size_t> ColumnFor(const std::vector<Column>& columns,
                                 const std::string& wanted) {
  std::string titles;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string title = Lower(columns[i].title);
    if (title.starts_with(Lower(wanted))) return i;
    titles += (i == 0 ? "" : ", ") + title.substr(0, title.find('('));
  }
  return InvalidArgument("--sort \"{}\": want the beginning of one of {}",
                         wanted, titles);
}

// Returns the number that the text begins with, in seconds if it is an age such
// as "3h12m". REQUIRES: it begins with a digit.
double NumberIn(const std::string& text) {
  double sum = 0;
  for (const char* at = text.c_str(); IsDigit(*at);) {
    char* end = nullptr;
    const double value = std::strtod(at, &end);
    const double unit = *end == 'd'   ? 24 * 3600
                        : *end == 'h' ? 3600
                        : *end == 'm' ? 60
                                      : 1;
    sum += value * unit;
    if (unit == 1) break;
    at = end + 1;
  }
  return sum;
}

// Sorts numbers in descending order, then texts in ascending order, then empty
// cells. A text such as "infra" or "nan" is no number.
bool ComesBefore(const Cell& a, const Cell& b) {
  const auto number = [](const Cell& cell) -> std::pair<int, double> {
    if (!cell.text.empty() && IsDigit(cell.text.front()))
      return {0, -NumberIn(cell.text)};
    return {cell.text == "-" || cell.text.empty() ? 2 : 1, 0};
  };
  const auto left = number(a), right = number(b);
  if (left != right) return left < right;
  return left.first == 1 && a.text < b.text;
}

}  // namespace

std::array<Cell, Top::kMaxShares> Top::Shares(const std::string& name,
                                              const Counts& counts,
                                              absl::Time now) {
  next_[name] = {now, counts};
  std::array<Cell, kMaxShares> cells = {"-", "-", "-", "-", "-", "-"};
  const auto found = before_.find(name);
  if (found == before_.end()) return cells;
  const double seconds = absl::ToDoubleSeconds(now - found->second.at);
  if (seconds <= 0) return cells;
  for (size_t i = 0; i < kMaxShares; ++i) {
    const double share =
        std::clamp((counts[i] - found->second.counts[i]) / seconds, 0.0, 1.0);
    cells[i] = {Percent(share), share >= kMuch ? Tone::kWarn : Tone::kPlain};
  }
  return cells;
}

Table Top::Workers(const Json& workers, absl::Time now) {
  Table table;
  table.columns = {{"NAME"},
                   {"STATE", 7},
                   {"RATE(rows/s)", 0, false, true},
                   {"READ(%)", 3, false, true},
                   {"DECODE(%)", 1, false, true},
                   {"AUGMENT(%)", 4, false, true},
                   {"WAITS IN(%)", 2, false, true},
                   {"WAITS OUT(%)", 2, false, true},
                   {"SENDS(%)", 5, false, true},
                   {"QUEUED(rows)", 6, false, true}};
  for (const Json& worker : workers) {
    const Json& stats = At(worker, "stats");
    const Json& read = StageIn(stats, "STAGE_READ");
    const Json& decode = StageIn(stats, "STAGE_DECODE");
    const std::string name = Text(worker, "name");
    const auto shares =
        Shares(name,
               {PlaceSeconds(read, "busy_ns_total"),
                PlaceSeconds(decode, "busy_ns_total"),
                PlaceSeconds(StageIn(stats, "STAGE_AUGMENT"), "busy_ns_total"),
                PlaceSeconds(decode, "input_ns_total"),
                PlaceSeconds(decode, "output_ns_total"),
                PlaceSeconds(StageIn(stats, "STAGE_SEND"), "busy_ns_total")},
               now);
    table.rows.push_back({{name, Tone::kBold},
                          EnumWord(Text(worker, "state"), "WORKER_STATE_"),
                          Text(worker, "state") == "WORKER_STATE_LOST"
                              ? "-"  // its last statistics are out of date
                              : Rate(Number(stats, "rows_per_s")),
                          shares[0],
                          shares[1],
                          shares[2],
                          shares[3],
                          shares[4],
                          shares[5],
                          std::to_string(Whole(stats, "rows_queued"))});
  }
  return table;
}

Table Top::Consumers(const Json& consumers, absl::Time now) {
  Table table;
  table.columns = {{"NAME"},
                   {"JOB", 4},
                   {"STEP", 5, false, true},
                   {"RATE(rows/s)", 0, false, true},
                   {"WAITS(%)", 1, false, true},
                   {"READY(steps)", 2, false, true},
                   {"OPEN(rows)", 3, false, true},
                   {"WAITED FOR", 6}};
  for (const Json& consumer : consumers) {
    const Json& stats = At(consumer, "stats");
    const Json& train = StageIn(stats, "STAGE_TRAIN");
    const Json& receive = StageIn(stats, "STAGE_RECEIVE");
    const std::string name = Text(consumer, "consumer");
    const auto shares =
        Shares(name, {PlaceSeconds(train, "input_ns_total")}, now);
    const Json& waited = Items(stats, "waited_for");
    table.rows.push_back({{name, Tone::kBold},
                          Text(stats, "job"),
                          std::to_string(Whole(stats, "step")),
                          Rate(Number(stats, "rows_per_s")),
                          shares[0],
                          fmt::format("{} of {}", Whole(train, "queue_depth"),
                                      Whole(train, "queue_capacity")),
                          std::to_string(Whole(receive, "queue_depth")),
                          waited.empty() ? "-" : Text(waited[0], "worker")});
  }
  return table;
}

absl::StatusOr<View> Top::Next(Json answer, absl::Time now) {
  const Json& items = Items(answer, options_.kind);
  next_.clear();
  Section section;
  section.table = options_.kind == "jobs"        ? JobsTable(items, now)
                  : options_.kind == "consumers" ? Consumers(items, now)
                                                 : Workers(items, now);
  before_ = std::move(next_);
  const std::string wanted = options_.sort.empty() ? "rate" : options_.sort;
  ASSIGN_OR_RETURN(const size_t column,
                   ColumnFor(section.table.columns, wanted));
  auto& rows = section.table.rows;
  std::stable_sort(rows.begin(), rows.end(),
                   [column](const auto& a, const auto& b) {
                     return ComesBefore(a[column], b[column]);
                   });
  section.title = fmt::format("{} {} of {}, by {}", options_.kind,
                              std::min(rows.size(), options_.rows), rows.size(),
                              Lower(section.table.columns[column].title));
  if (rows.size() > options_.rows)
    rows.erase(rows.begin() + static_cast<ptrdiff_t>(options_.rows),
               rows.end());
  View view;
  for (const std::vector<Cell>& row : rows) view.names.push_back(row[0].text);
  if (rows.empty()) view.note = fmt::format("no {}", options_.kind);
  view.sections.push_back(std::move(section));
  view.data = std::move(answer);
  return view;
}

}  // namespace leat::cli
