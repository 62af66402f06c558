// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/health.h"

#include <algorithm>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/listing.h"
#include "core/counted.h"
#include "core/status.h"

namespace leat::cli {
namespace {

bool IsMuted(const Json& finding) { return Text(finding, "muted") == "true"; }

struct Counts {
  size_t errors = 0, warnings = 0, muted = 0;
};

Counts CountFindings(const Json& findings) {
  Counts counts;
  for (const Json& finding : findings) {
    if (IsMuted(finding))
      ++counts.muted;
    else if (Text(finding, "severity") == "error")
      ++counts.errors;
    else
      ++counts.warnings;
  }
  return counts;
}

// Returns text such as "1 error, 2 warnings, 1 muted".
Cell Verdict(const Counts& counts) {
  Cell verdict("healthy", Tone::kGood);
  if (counts.warnings > 0)
    verdict = {Counted(counts.warnings, "warning"), Tone::kWarn};
  if (counts.errors > 0)
    verdict = {Counted(counts.errors, "error") +
                   (counts.warnings > 0 ? ", " + verdict.text : ""),
               Tone::kBad};
  if (counts.muted > 0) verdict.text += fmt::format(", {} muted", counts.muted);
  return verdict;
}

// Returns " (muted)" or " (muted for 59m)", or "" if it is not muted.
std::string MutedText(const Json& finding, absl::Time now) {
  if (!IsMuted(finding)) return "";
  absl::Time until;
  const bool ends = absl::ParseTime(
      absl::RFC3339_full, Text(finding, "muted_until"), &until, nullptr);
  return ends ? fmt::format(" (muted for {})", Age(until - now)) : " (muted)";
}

void AddFindings(const Json& findings, absl::Time now, View* view,
                 Section* section) {
  for (const Json& finding : findings) {
    const bool error = Text(finding, "severity") == "error";
    const bool muted = IsMuted(finding);
    view->names.push_back(Text(finding, "code"));
    section->lines.push_back(
        {fmt::format("{} {}{}: {}", error ? "ERROR" : "WARN",
                     Text(finding, "code"), MutedText(finding, now),
                     Text(finding, "summary")),
         muted   ? Tone::kDim
         : error ? Tone::kBad
                 : Tone::kWarn,
         2});
    if (!muted && !Text(finding, "remedy").empty())
      section->lines.push_back(
          {"what to do: " + Text(finding, "remedy"), Tone::kPlain, 4});
  }
}

}  // namespace

bool Unhealthy(const Json& status) {
  return CountFindings(Items(status, "findings")).errors > 0;
}

View StatusView(Json status, absl::Time now) {
  View view;
  const Json& findings = Items(status, "findings");
  const Json& workers = Items(status, "workers");
  const Json& jobs = Items(status, "jobs");
  Section head;
  head.facts = {{"Coordinator",
                 fmt::format("{}, leat {}, up {}, state {}",
                             Text(status, "address"), Text(status, "version"),
                             AgeSince(Text(status, "started_at"), now),
                             Text(status, "state_store"))},
                {"Health", Verdict(CountFindings(findings))}};
  AddFindings(findings, now, &view, &head);
  Section work;
  work.title = fmt::format("Workers ({})", workers.size());
  work.table = WorkersTable(workers, now);
  if (workers.empty()) work.lines.push_back({"none", Tone::kDim, 2});
  Section run;
  run.title = fmt::format("Jobs ({}) on {} dataset{}", jobs.size(),
                          Whole(status, "datasets"),
                          Whole(status, "datasets") == 1 ? "" : "s");
  run.table = JobsTable(jobs, now);
  if (jobs.empty()) run.lines.push_back({"none", Tone::kDim, 2});
  view.sections = {std::move(head), std::move(work), std::move(run)};
  view.data = std::move(status);
  return view;
}

View HealthView(const Json& status, absl::Time now) {
  View view;
  const Json& findings = Items(status, "findings");
  Section head;
  head.facts = {{"Health", Verdict(CountFindings(findings))}};
  AddFindings(findings, now, &view, &head);
  view.sections.push_back(std::move(head));
  view.data = Json::object();
  view.data["findings"] = findings;
  return view;
}

absl::StatusOr<int> RunHealth(Session& session) {
  const Options& options = session.options();
  ASSIGN_OR_RETURN(const std::vector<std::string> codes, session.Names());
  if (options.kind.empty() || options.kind == "show") {
    if (!codes.empty())
      return InvalidArgument(
          "unexpected \"{}\"; \"leat health mute {}\" mutes "
          "a finding",
          codes[0], codes[0]);
    return session.Show([&]() -> absl::StatusOr<Session::Result> {
      ASSIGN_OR_RETURN(Connection * connection, session.Connect());
      ASSIGN_OR_RETURN(const std::string text,
                       connection->admin().Get("status"));
      ASSIGN_OR_RETURN(const Json status, ParseObject(text, "status"));
      return Session::Result{HealthView(status, session.environment().now()),
                             Unhealthy(status) ? kUnhealthy : kGood};
    });
  }
  if (codes.empty())
    return InvalidArgument(
        "{}: which finding? want a code, as \"leat health\" shows them",
        options.kind);
  absl::Duration lifetime;  // zero: until it is unmuted
  if (session.line().Given("--for")) {
    ASSIGN_OR_RETURN(lifetime, ParseLifetimeFlag("--for", options.expires));
  }
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  Admin& admin = connection->admin();
  const bool mute = options.kind == "mute";
  return session.ForEach(codes, [&](const std::string& code) -> absl::Status {
    RETURN_IF_ERROR(mute ? admin.MuteFinding(code, lifetime)
                         : admin.Do("unmute", code));
    session.Say(
        !mute ? fmt::format("finding {} counts again", code)
        : lifetime > absl::ZeroDuration()
            ? fmt::format("finding {} is muted for {}", code, Age(lifetime))
            : fmt::format("finding {} is muted until \"leat health unmute {}\"",
                          code, code));
    return absl::OkStatus();
  });
}

}  // namespace leat::cli
