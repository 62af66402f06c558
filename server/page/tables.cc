// SPDX-License-Identifier: Apache-2.0
#include "server/page/tables.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/html.h"
#include "core/observe/bottleneck.h"
#include "core/plan/layout.h"
#include "fmt/format.h"

namespace leat::server {
namespace {

constexpr size_t kMaxTableEvents = 50;

// A cell's text, and its number, for programs.
struct HtmlCell {
  HtmlCell(std::string_view plain) : html(EscapeHtml(plain)) {}    // NOLINT
  HtmlCell(const std::string& plain) : html(EscapeHtml(plain)) {}  // NOLINT
  HtmlCell(const char* plain) : html(EscapeHtml(plain)) {}         // NOLINT
  HtmlCell(double value, std::string_view text)
      : html(fmt::format("<data value=\"{}\">{}</data>", value,
                         EscapeHtml(text))),
        kind("right") {}
  std::string html;
  std::string_view kind{};  // its class in page.css
};

// Makes a cell of sentences, with names in them that may be long.
HtmlCell Words(std::string_view text) {
  HtmlCell cell(text);
  cell.kind = "words";
  return cell;
}

HtmlCell Count(uint64_t value) {
  return {static_cast<double>(value), fmt::format("{}", value)};
}
// Writes a number without an exponent, as the CLI does.
std::string NumberText(double value) {
  if (value <= 0) return "0";
  return value < 100 ? fmt::format("{:.1f}", value)
                     : fmt::format("{:.0f}", value);
}
HtmlCell Rate(double value) { return {value, NumberText(value)}; }
HtmlCell Percent(double share) {
  return {share, fmt::format("{:.0f} %", 100 * share)};
}
HtmlCell Bytes(uint64_t value) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto scaled = static_cast<double>(value);
  size_t unit = 0;
  for (; scaled >= 1024 && unit + 1 < std::size(kUnits); ++unit) scaled /= 1024;
  return {static_cast<double>(value),
          fmt::format("{:.{}f} {}", scaled, unit == 0 ? 0 : 1, kUnits[unit])};
}

class HtmlTable {
 public:
  // `none`: the text if there is no row.
  HtmlTable(std::string_view title, std::initializer_list<const char*> columns,
            std::string none = "There are none.")
      : title_(title), columns_(columns), none_(std::move(none)) {}

  void Add(const std::vector<HtmlCell>& cells) {
    if (rows_++ >= kMaxTableRows) return;
    if (rows_ == 1)
      for (const HtmlCell& cell : cells) right_.push_back(cell.kind == "right");
    body_ += "<tr>";
    for (const HtmlCell& cell : cells)
      body_ += cell.kind.empty() ? fmt::format("<td>{}</td>", cell.html)
                                 : fmt::format("<td class=\"{}\">{}</td>",
                                               cell.kind, cell.html);
    body_ += "</tr>\n";
  }
  // `total`: how many entries the rows are taken from.
  std::string Html(size_t total) const {
    std::string html =
        fmt::format("<section><h2>{}</h2>\n", EscapeHtml(title_));
    if (rows_ == 0)
      return html + fmt::format("<p>{}</p></section>\n", EscapeHtml(none_));
    html += "<div class=\"scroll\"><table>\n<thead><tr>";
    // A heading is aligned with its numbers.
    for (size_t i = 0; i < columns_.size(); ++i)
      html += fmt::format("<th scope=\"col\"{}>{}</th>",
                          right_[i] ? " class=\"right\"" : "",
                          EscapeHtml(columns_[i]));
    html += "</tr></thead>\n<tbody>" + body_ + "</tbody></table></div>\n";
    const size_t shown = std::min(rows_, kMaxTableRows);
    if (total > shown)
      html += fmt::format("<p>{} more are not shown.</p>\n", total - shown);
    return html + "</section>\n";
  }
  std::string Html() const { return Html(rows_); }

 private:
  const std::string title_;
  const std::vector<const char*> columns_;
  const std::string none_;
  std::string body_;
  std::vector<bool> right_;
  size_t rows_ = 0;
};

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  return TimeText(absl::FromUnixSeconds(time.seconds()));
}

// Makes a cell that does not wrap.
HtmlCell Time(std::string_view text) {
  HtmlCell cell(text);
  cell.kind = "time";
  return cell;
}

std::string StateOf(v1::WorkerState state) {
  std::string name = v1::WorkerState_Name(state);
  return name.substr(std::min(name.size(), sizeof("WORKER_STATE_") - 1));
}

std::string Verdicts(const PageModel& model) {
  std::string html;
  std::set<std::string_view> given_up;
  for (const v1::JobSummary& job : model.status.jobs()) {
    if (job.failure().empty()) continue;
    given_up.insert(job.job().spec().name());
    html += fmt::format(
        "<section class=\"verdict\"><h2>Job {}</h2>\n<p><strong>given up"
        "</strong>: {}</p></section>\n",
        EscapeHtml(job.job().spec().name()), EscapeHtml(job.failure()));
  }
  for (const v1::GetBottleneckResponse& verdict : model.verdicts) {
    if (given_up.contains(verdict.job())) continue;
    html += fmt::format(
        "<section class=\"verdict\"><h2>Job {}</h2>\n<p><strong>{}</strong>: "
        "{} (seen for {} s)</p>\n<ul>",
        EscapeHtml(verdict.job()), EscapeHtml(TitleOf(verdict.limit())),
        EscapeHtml(verdict.summary()), verdict.seen().seconds());
    for (const v1::Figure& figure : verdict.figures())
      html +=
          fmt::format("<li>{}: <data value=\"{}\">{}</data> {}</li>",
                      EscapeHtml(figure.what()), figure.value(),
                      NumberText(figure.value()), EscapeHtml(figure.unit()));
    html += fmt::format("</ul>\n<p>Change: {}</p></section>\n",
                        EscapeHtml(verdict.advice()));
  }
  return html;
}

std::string Findings(const PageModel& model) {
  HtmlTable table("Findings",
                  {"Severity", "Code", "Finding", "Remedy", "Muted"});
  for (const v1::Finding& finding : model.status.findings())
    table.Add({finding.severity(), finding.code(), Words(finding.summary()),
               Words(finding.remedy()), finding.muted() ? "muted" : ""});
  return table.Html();
}

std::string LimitOf(const v1::JobSummary& job) {
  if (!job.failure().empty()) return "given up";
  if (!job.has_limited_by_seen()) return job.limited_by();
  return fmt::format("{} ({} s)", job.limited_by(),
                     job.limited_by_seen().seconds());
}

// "web 80.0 %, books 20.0 %"; empty: the job is no mixture.
std::string SourcesOf(const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  std::string text;
  for (int i = 0; i < spec.sources_size(); ++i)
    text += fmt::format(
        "{}{} {:.1f} %", text.empty() ? "" : ", ", spec.sources(i).name(),
        spec.shares_size() == 1 ? 100 * spec.shares(0).weights(i) : 0.0);
  if (const int more = job.datasets_size() - spec.sources_size(); more > 0)
    text += fmt::format(" and {} more", more);
  return text;
}

// Empty: an epoch does not end.
HtmlCell StepsOf(const v1::JobSummary& job) {
  if (job.steps_per_epoch() < kStreamSteps) return Count(job.steps_per_epoch());
  HtmlCell none("");
  none.kind = "right";
  return none;
}

std::string Jobs(const PageModel& model) {
  HtmlTable table("Jobs",
                  {"Name", "Limited by", "Epoch", "Step", "Steps", "Rows/s",
                   "Waits", "Consumers", "Bad samples", "Sources"},
                  fmt::format("There are none. A training makes them: "
                              "leat.connect(\"{}\").job(...)",
                              model.status.address()));
  for (const v1::JobSummary& job : model.status.jobs())
    table.Add({job.job().spec().name(), LimitOf(job), Count(job.epoch()),
               Count(job.step()), StepsOf(job), Rate(job.rows_per_s()),
               Percent(job.stall_fraction()), Count(job.consumers()),
               Count(job.bad_samples_total()), SourcesOf(job.job())});
  return table.Html(model.jobs);
}

std::string Workers(const PageModel& model) {
  HtmlTable table("Workers",
                  {"Name", "State", "Host", "Rows/s", "Busy", "Queued rows",
                   "Shards", "Failures"},
                  fmt::format("There are none. Start one: leat-worker "
                              "--coordinator {}",
                              model.status.address()));
  for (const v1::WorkerInfo& worker : model.status.workers())
    table.Add({worker.name(), StateOf(worker.state()), worker.host(),
               Rate(worker.stats().rows_per_s()),
               Percent(worker.stats().busy_fraction()),
               Count(worker.stats().rows_queued()),
               Count(worker.shards_owned()),
               Words(worker.storage_failures().empty()
                         ? std::string()
                         : worker.storage_failures(0).error())});
  return table.Html(model.workers);
}

std::string Consumers(const PageModel& model) {
  HtmlTable table("Consumers", {"Consumer", "Job", "Epoch", "Step", "Rows/s",
                                "Waits", "Wait p95"});
  for (const v1::ConsumerInfo& consumer : model.consumers) {
    const v1::ConsumerStats& stats = consumer.stats();
    table.Add({consumer.consumer(), stats.job(), Count(stats.epoch()),
               Count(stats.step()), Rate(stats.rows_per_s()),
               Percent(stats.stall_fraction()),
               HtmlCell(stats.wait().p95_ms(),
                        NumberText(stats.wait().p95_ms()) + " ms")});
  }
  return table.Html(model.num_consumers);
}

std::string Stages(const PageModel& model) {
  HtmlTable table("Stages, in the last minute",
                  {"Stage", "Places", "Busy", "Waits for input",
                   "Waits for room", "Idle", "In the queue", "Room"});
  for (const v1::StageStats& stage : model.stages) {
    // Shares are of the time of all its places.
    const auto share = [&](uint64_t ns) {
      const double all =
          std::chrono::duration<double>(model.stages_of).count() * 1e9 *
          std::max(stage.places(), 1u);
      return Percent(all > 0 ? static_cast<double>(ns) / all : 0);
    };
    std::string name = v1::Stage_Name(stage.stage());
    name = name.substr(std::min(name.size(), sizeof("STAGE_") - 1));
    table.Add({name, Count(stage.places()), share(stage.busy_ns_total()),
               share(stage.input_ns_total()), share(stage.output_ns_total()),
               share(stage.idle_ns_total()), Count(stage.queue_depth()),
               Count(stage.queue_capacity())});
  }
  return table.Html();
}

std::string Storage(const PageModel& model) {
  const v1::WorkerStats& total = model.total;
  HtmlTable table("Cache and storage", {"Quantity", "All workers"});
  table.Add({"hits of the cache in memory", Count(total.cache_hits_total())});
  table.Add({"misses of it", Count(total.cache_misses_total())});
  table.Add({"bytes in it", Bytes(total.cache_bytes())});
  table.Add({"hits of the disk cache", Count(total.disk_cache_hits_total())});
  table.Add({"misses of it", Count(total.disk_cache_misses_total())});
  table.Add({"bytes in it", Bytes(total.disk_cache_bytes())});
  table.Add(
      {"requests to object storage", Count(total.storage_requests_total())});
  table.Add(
      {"made again after a failure", Count(total.storage_retries_total())});
  table.Add({"made twice, as the first was late",
             Count(total.storage_hedges_total())});
  return table.Html();
}

std::string ListedAt(const v1::DatasetSummary& dataset) {
  return dataset.has_indexed_at() ? TimeText(dataset.indexed_at()) : "";
}

// Includes the results of the look.
std::string LookedAt(const v1::DatasetSummary& dataset) {
  if (!dataset.has_looked_at()) return "";
  return TimeText(dataset.looked_at()) +
         (dataset.changes().empty() ? "" : ": " + dataset.changes(0));
}

std::string Datasets(const PageModel& model) {
  HtmlTable table("Datasets", {"Name", "State", "Samples", "Size", "Listed",
                               "Looked at", "Failure"});
  for (const v1::DatasetSummary& each : model.datasets)
    table.Add({each.dataset().name(), each.state(),
               Count(each.dataset().shards().num_samples()),
               Bytes(each.dataset().bytes()), Time(ListedAt(each)),
               LookedAt(each), Words(each.failure())});
  return table.Html(model.status.datasets());
}

std::string Events(const EventPage& events) {
  HtmlTable table("Events", {"Time", "Severity", "Type", "Event"});
  size_t shown = 0;
  for (auto it = events.events.rbegin();
       it != events.events.rend() && shown < kMaxTableEvents; ++it, ++shown)
    table.Add({Time(TimeText(absl::FromChrono((*it)->at))), (*it)->severity,
               (*it)->type, Words((*it)->message)});
  return table.Html(events.events.size());
}

}  // namespace

std::string TablesOf(const PageModel& model, const EventPage& events) {
  const v1::GetStatusResponse& status = model.status;
  std::string html = fmt::format(
      "<p>Cluster {}, coordinator {} {}, since {}. <data "
      "value=\"{}\">{}</data> "
      "workers are ready, {} drain, {} are lost.</p>\n",
      EscapeHtml(status.cluster().empty() ? "(no name)" : status.cluster()),
      EscapeHtml(status.version()), EscapeHtml(status.address()),
      TimeText(status.started_at()), model.ready, model.ready, model.draining,
      model.lost);
  html += Verdicts(model) + Findings(model) + Jobs(model) + Consumers(model);
  html += Stages(model) + Workers(model) + Storage(model) + Datasets(model);
  return html + Events(events);
}

}  // namespace leat::server
