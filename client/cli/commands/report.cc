// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/report.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/file.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/events.h"
#include "client/cli/commands/health.h"
#include "client/cli/diagnostics/diagnostics.h"
#include "client/cli/views/bottleneck.h"
#include "client/cli/views/listing.h"
#include "core/html.h"
#include "core/redaction.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr size_t kMaxRows = 2000;       // per table
constexpr size_t kMaxBottlenecks = 32;  // jobs with a verdict
constexpr size_t kLongCell = 40;        // longer cells may break into lines
constexpr size_t kMaxEvents = 1000;     // the newest

constexpr std::string_view kHead =
    R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Leat report</title>
<style>
:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 88rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #8886; }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .15rem .7rem .15rem 0; vertical-align: top; white-space: nowrap; }
.scroll th, .scroll td { font-size: 13px; }
td.long, td.more { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
td.more { padding-bottom: .5rem; }
td.more span { white-space: nowrap; margin-right: 1rem; }
th { font-weight: 600; opacity: .7; white-space: nowrap; }
td.right, th.right { text-align: right; }
.facts { margin-top: .8rem; }
.facts td { white-space: normal; overflow-wrap: anywhere; }
p { margin: .15rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
p.in { padding-left: 1.2rem; }
.good { color: #1a7f37; color: light-dark(#1a7f37, #56d364); }
.warn { color: #9a6700; color: light-dark(#9a6700, #e3b341); }
.bad { color: #cf222e; color: light-dark(#cf222e, #ff7b72); font-weight: 600; }
.dim { opacity: .65; }
.bold { font-weight: 600; }
@page { size: A4 landscape; margin: 1cm; }
@media print {
  :root { color-scheme: light; }
  body { margin: 0; max-width: none; padding: 0; }
  h2, h3 { break-after: avoid; }
  tr { break-inside: avoid; }
  .scroll { overflow: visible; }
  .scroll th, .scroll td { font-size: 10px; padding-right: .4rem; }
  td.long { min-width: 6rem; }
  td.more span { white-space: normal; }
}
</style>
</head>
<body>
)";

std::string Html(std::string_view text) {
  return EscapeHtml(Printable(Redacted(text)));
}

std::string_view ClassOf(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "good";
    case Tone::kWarn:
      return "warn";
    case Tone::kBad:
      return "bad";
    case Tone::kDim:
      return "dim";
    case Tone::kBold:
      return "bold";
    case Tone::kPlain:
      break;
  }
  return "";
}

// Returns a tag such as `<td class="right good">`.
std::string Opened(std::string_view tag, Tone tone,
                   std::string_view also = "") {
  std::string classes(also);
  if (const std::string_view own = ClassOf(tone); !own.empty())
    classes += (classes.empty() ? "" : " ") + std::string(own);
  return classes.empty() ? fmt::format("<{}>", tag)
                         : fmt::format("<{} class=\"{}\">", tag, classes);
}

// Columns for wide terminals only are printed below their row.
void AppendHtmlRow(const Table& table, size_t row, std::string* out) {
  std::string more;
  size_t columns = 0;
  *out += "<tr>";
  for (size_t i = 0; i < table.rows[row].size(); ++i) {
    const Cell& cell = table.rows[row][i];
    const Column& column = table.columns[i];
    if (column.wide_only) {
      if (!cell.text.empty())
        more += fmt::format("<span>{}: {}</span> ", Html(column.title),
                            Html(cell.text));
      continue;
    }
    ++columns;
    std::string opened = Opened("td", cell.tone, column.right ? "right" : "");
    if (cell.text.size() > kLongCell)
      opened = opened.find("class=\"") == std::string::npos
                   ? "<td class=\"long\">"
                   : opened.insert(opened.find('"') + 1, "long ");
    *out += opened + Html(cell.text) + "</td>";
  }
  *out += "</tr>\n";
  if (!more.empty())
    *out +=
        fmt::format("<tr><td class=\"more dim\" colspan=\"{}\">{}</td></tr>\n",
                    columns, more);
}

void AppendHtmlTable(const Table& table, std::string* out) {
  if (table.rows.empty()) return;
  *out += "<div class=\"scroll\"><table>\n<tr>";
  for (const Column& column : table.columns)
    if (!column.wide_only)
      *out += Opened("th", Tone::kPlain, column.right ? "right" : "") +
              Html(column.title) + "</th>";
  *out += "</tr>\n";
  for (size_t r = 0; r < std::min(table.rows.size(), kMaxRows); ++r)
    AppendHtmlRow(table, r, out);
  *out += "</table></div>\n";
  if (table.rows.size() > kMaxRows)
    *out += fmt::format("<p class=\"dim\">The first {} of {} rows.</p>\n",
                        kMaxRows, table.rows.size());
}

void AppendView(const View& view, std::string* out) {
  for (const Section& section : view.sections) {
    if (!section.title.empty())
      *out += "<h3>" + Html(section.title) + "</h3>\n";
    if (!section.facts.empty()) {
      *out += "<table class=\"facts\">\n";
      for (const auto& [key, cell] : section.facts)
        *out += "<tr><th>" + Html(key) + "</th>" + Opened("td", cell.tone) +
                Html(cell.text) + "</td></tr>\n";
      *out += "</table>\n";
    }
    for (const Line& line : section.lines)
      *out += Opened("p", line.tone, line.indent > 0 ? "in" : "") +
              Html(line.text) + "</p>\n";
    AppendHtmlTable(section.table, out);
  }
  if (!view.note.empty())
    *out += Opened("p", Tone::kDim) + Html(view.note) + "</p>\n";
}

// A note replaces a part that is unavailable, since the rest of the report is
// still useful.
View NoteView(std::string note) {
  View view;
  view.note = std::move(note);
  return view;
}

View ListedView(Admin& admin, std::string_view plural, absl::Time now) {
  const Kind& kind = *FindKind(plural);
  const absl::StatusOr<std::string> answer = admin.Get(plural);
  if (!answer.ok()) return NoteView(std::string(Message(answer.status())));
  absl::StatusOr<Json> json = ParseObject(*answer, kind.plural);
  if (!json.ok()) return NoteView(std::string(Message(json.status())));
  return ListingView(kind, *std::move(json), now);
}

View EventsPart(Admin& admin) {
  Json events = Json::array();
  const absl::Status status = admin.WatchEvents({}, [&](std::string_view text) {
    const absl::StatusOr<Json> answer = ParseObject(text, "events");
    if (!answer.ok()) return false;
    for (const Json& event : Items(*answer, "events")) events.push_back(event);
    return true;
  });
  if (!status.ok()) return NoteView(std::string(Message(status)));
  const size_t all = events.size();
  if (all > kMaxEvents)
    events.erase(events.begin(),
                 events.begin() + static_cast<ptrdiff_t>(all - kMaxEvents));
  View view = EventsView(events, Format::kWide);
  if (all > kMaxEvents)
    view.note = fmt::format("The newest {} of {} events.", kMaxEvents, all);
  if (all == 0) view.note = "no event is remembered";
  return view;
}

// Shows the verdicts on jobs with pulling consumers.
View BottlenecksPart(Admin& admin, const Json& status) {
  View all;
  size_t judged = 0, running = 0;
  for (const Json& job : Items(status, "jobs")) {
    if (Whole(job, "consumers") == 0 || running++ >= kMaxBottlenecks) continue;
    const std::string name = Text(job, "job.spec.name");
    const absl::StatusOr<std::string> text =
        admin.GetBottleneck(name, absl::Minutes(5));
    if (!text.ok()) continue;
    absl::StatusOr<Json> answer = ParseObject(*text, "bottleneck");
    if (!answer.ok()) continue;
    ++judged;
    View one = BottleneckView(*std::move(answer));
    for (Section& section : one.sections)
      all.sections.push_back(std::move(section));
  }
  if (judged < running)
    all.note =
        fmt::format("{} of {} running jobs were judged", judged, running);
  if (running == 0) all.note = "no consumer pulls batches now";
  return all;
}

absl::StatusOr<std::vector<ReportPart>> Gather(Session& session) {
  const absl::Time now = session.environment().now();
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  Admin& admin = connection->admin();
  ASSIGN_OR_RETURN(const std::string text, admin.Get("status"));
  ASSIGN_OR_RETURN(const Json status, ParseObject(text, "status"));
  View overview = StatusView(status, now);
  overview.sections.resize(1);  // workers and jobs have parts of their own
  overview.sections.front().facts.emplace_back("This program",
                                               session.environment().version);
  std::vector<ReportPart> parts;
  parts.push_back({"Status", std::move(overview)});
  parts.push_back({"Limits of the jobs", BottlenecksPart(admin, status)});
  parts.push_back({"Jobs", ListedView(admin, "jobs", now)});
  parts.push_back({"Workers", ListedView(admin, "workers", now)});
  parts.push_back({"Consumers", ListedView(admin, "consumers", now)});
  parts.push_back({"Datasets", ListedView(admin, "datasets", now)});
  parts.push_back({"Events", EventsPart(admin)});
  parts.push_back(
      {"This machine", DiagnosesView(DiagnoseLocal(GatherLocal()))});
  return parts;
}

}  // namespace

std::string ReportHtml(std::string_view heading,
                       const std::vector<ReportPart>& parts) {
  std::string out(kHead);
  out += "<h1>Leat report</h1>\n<p>" + Html(heading) + "</p>\n";
  for (const ReportPart& part : parts) {
    out += "<h2>" + Html(part.title) + "</h2>\n";
    AppendView(part.view, &out);
  }
  return out + "</body>\n</html>\n";
}

absl::StatusOr<int> RunReport(Session& session) {
  const std::string& path = session.options().report;
  ASSIGN_OR_RETURN(const std::vector<ReportPart> parts, Gather(session));
  const std::string html = ReportHtml(
      fmt::format("made at {}", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                                                 session.environment().now(),
                                                 absl::UTCTimeZone())),
      parts);
  if (path == "-") {
    *session.environment().out << html << std::flush;
    return kGood;
  }
  RETURN_IF_ERROR(WriteFile(path, html));
  session.Say(fmt::format(
      "{}: {}; it names hosts, jobs and paths of files, and holds no tokens",
      path, Size(html.size())));
  return kGood;
}

}  // namespace leat::cli
