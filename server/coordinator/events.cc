// SPDX-License-Identifier: Apache-2.0
//
// Events and findings: what people are told happened, and what stands.
//
// An event is noted where the log has its line, under the lock, so that events
// have the order of the changes; whoever watches is woken without it. Viewers
// read them: nothing that only operators may see is among them.
#include <chrono>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

// Datasets whose new tables are told one by one.
constexpr size_t kMaxTables = 4;
// Longer than anybody plans for.
constexpr Duration kMaxMute = std::chrono::hours(24 * 366);

std::string Lasted(Duration duration) {
  const auto s =
      std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  return s < 120 ? fmt::format("{} s", s) : fmt::format("{} min", s / 60);
}

}  // namespace

void Coordinator::Happened(std::string type, std::string severity,
                           std::vector<std::string> subjects,
                           std::string message, Effects* effects) {
  events_.Note({.at = latest_,
                .type = std::move(type),
                .severity = std::move(severity),
                .subjects = std::move(subjects),
                .message = std::move(message)});
  if (effects != nullptr) effects->Add([this] { events_.WakeWatchers(); });
}

std::string Coordinator::DatasetName(const std::string& id) const {
  const DatasetRecord* const dataset = state_.FindDataset(id);
  return dataset == nullptr ? id.substr(0, 12) : dataset->info->name;
}

void Coordinator::TablesHappened(const std::set<std::string>& datasets,
                                 size_t workers, Effects* effects) {
  const std::string to =
      fmt::format("{} worker{}", workers, workers == 1 ? "" : "s");
  if (datasets.size() > kMaxTables)
    return Happened("shards.assigned", "info", {},
                    fmt::format("the shards of {} datasets were given out "
                                "anew, to {}",
                                datasets.size(), to),
                    effects);
  for (const std::string& id : datasets)
    Happened("shards.assigned", "info", {"dataset/" + DatasetName(id)},
             fmt::format("the shards of dataset {} were given out anew, to {}",
                         DatasetName(id), to),
             effects);
}

// What a heartbeat changed, but for weights, which follow every load.
void Coordinator::NoteBeat(const Membership::Worker& worker, bool was_lost,
                           bool was_troubled, Effects* effects) {
  const std::string& name = worker.registration->name;
  if (was_lost)
    Happened("worker.back", "info", {"worker/" + name},
             fmt::format("worker {} is heard of again", name), effects);
  if (was_troubled == !worker.troubles.empty()) return;
  if (was_troubled)
    return Happened("worker.storage_mended", "info", {"worker/" + name},
                    fmt::format("worker {} reads its storage again", name),
                    effects);
  const StorageTrouble& first = worker.troubles.front();
  Happened("worker.storage_fails", "warn", {"worker/" + name},
           fmt::format("worker {} cannot read {}: {}", name, first.root,
                       first.error),
           effects);
}

std::vector<Finding> Coordinator::Findings(Now now) const {
  Snapshot snapshot;
  std::map<std::string, FindingMuted> mutes;
  {
    MutexLock lock(&mu_);
    SnapWorkers(now, &snapshot);
    SnapDecoders(&snapshot);
    SnapJobs(now, &snapshot);
    SnapStore(&snapshot);
    if (certificate_expiry_)
      snapshot.certificate_left = *certificate_expiry_ - now.wall;
    mutes = state_.mutes();
  }
  std::vector<Finding> findings = FindingsOf(snapshot);
  for (Finding& finding : findings) {
    if (finding.code == kNeverMuted) continue;
    const auto mute = mutes.find(finding.code);
    if (mute == mutes.end() || !mute->second.Covers(finding.severity, now.wall))
      continue;
    finding.muted = true;
    finding.muted_until = mute->second.until;
  }
  return findings;
}

void Coordinator::CompareFindings(Now now) {
  const std::vector<Finding> findings = Findings(now);
  Effects effects;
  MutexLock lock(&mu_);
  Seen(now);
  for (FindingWatch::Change& change : finding_watch_.Look(findings, now.mono)) {
    Finding& finding = change.finding;
    std::vector<std::string> subjects = std::move(finding.subjects);
    subjects.push_back("finding/" + finding.code);
    if (change.came)
      Happened("finding.raised", finding.severity, std::move(subjects),
               fmt::format("{}: {}", finding.code, finding.summary), &effects);
    else
      Happened("finding.cleared", "info", std::move(subjects),
               fmt::format("{} is over, after {}: {}", finding.code,
                           Lasted(change.lasted), finding.summary),
               &effects);
  }
}

void Coordinator::EnqueueMute(Event event, std::string what, Done done) {
  Effects effects;
  MutexLock lock(&mu_);
  Write write;
  const std::string code = std::holds_alternative<FindingMuted>(event.kind)
                               ? std::get<FindingMuted>(event.kind).code
                               : std::get<FindingUnmuted>(event.kind).code;
  write.decide = [event](Effects*) -> absl::StatusOr<std::optional<Event>> {
    return event;
  };
  write.finish = [this, what = std::move(what), code, done = std::move(done)](
                     const absl::Status& status, Effects* inner) {
    mu_.AssertHeld();
    if (status.ok()) {
      inner->Add([what, code] { LOG_INFO("finding.{} code={}", what, code); });
      Happened("finding." + what, "info", {"finding/" + code},
               fmt::format("finding {} was {}", code, what), inner);
    }
    inner->Add([done, status] { done(status); });
  };
  Enqueue(std::move(write), &effects);
}

void Coordinator::MuteFinding(const std::string& code,
                              std::optional<Duration> lifetime, Now now,
                              Done done) {
  if (absl::Status known = CheckFindingCode(code); !known.ok())
    return done(known);
  if (code == kNeverMuted)
    return done(InvalidArgument(
        "{} cannot be muted: give TLS and an access token instead of "
        "--insecure",
        code));
  if (lifetime && (*lifetime <= Duration(0) || *lifetime > kMaxMute))
    return done(InvalidArgument("lifetime {} s: want more than 0 and up to {}",
                                *lifetime / std::chrono::seconds(1),
                                kMaxMute / std::chrono::seconds(1)));
  FindingMuted muted{.code = code, .until = {}, .severity = "warn"};
  if (lifetime) muted.until = now.wall + *lifetime;
  for (const Finding& finding : Findings(now))
    if (finding.code == code && finding.severity == "error")
      muted.severity = "error";
  EnqueueMute({{}, std::move(muted), {}}, "muted", std::move(done));
}

void Coordinator::UnmuteFinding(const std::string& code, Done done) {
  if (absl::Status known = CheckFindingCode(code); !known.ok())
    return done(known);
  EnqueueMute({{}, FindingUnmuted{code}, {}}, "unmuted", std::move(done));
}

}  // namespace leat::server
