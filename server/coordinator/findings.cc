// SPDX-License-Identifier: Apache-2.0
//
// Findings: the current ones, their appearance and disappearance, and mutes by
// operators.
#include <chrono>
#include <utility>

#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/parts.h"
#include "server/coordinator/snapshots.h"

namespace leat::server {
namespace {

// A duration beyond any plan.
constexpr Duration kMaxMute = std::chrono::hours(24 * 366);

std::string Lasted(Duration duration) {
  const auto s =
      std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  return s < 120 ? fmt::format("{} s", s) : fmt::format("{} min", s / 60);
}

// Appends the event by which the finding was muted, or unmuted (`what`).
std::unique_ptr<Transaction> Mute(Announcer* announcer, const Event& event,
                                  const std::string& code,
                                  const std::string& what,
                                  AnsweredTransaction::Done done) {
  const auto changed = [=](DeferredActions* deferred) {
    announcer->Tell({"finding." + what,
                     "info",
                     {"finding/" + code},
                     fmt::format("finding {} was {}", code, what)},
                    deferred);
  };
  return std::make_unique<PlainTransaction>([event] { return event; }, changed,
                                            std::move(done));
}

}  // namespace

std::vector<Finding> Coordinator::Findings(Now now) const {
  Snapshot snapshot;
  std::map<std::string, FindingMuted> mutes;
  {
    MutexLock lock(&mu_);
    snapshot = SnapshotOf(*parts_, now);
    mutes = parts_->state.mutes();
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
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->announcer.Seen(now);
  for (FindingWatch::Change& change :
       parts_->finding_watch.Look(findings, now.mono)) {
    Finding& finding = change.finding;
    Announcement what;
    what.subjects = std::move(finding.subjects);
    what.subjects.push_back("finding/" + finding.code);
    if (change.came) {
      what.type = "finding.raised";
      what.severity = finding.severity;
      what.message = fmt::format("{}: {}", finding.code, finding.summary);
    } else {
      what.type = "finding.cleared";
      what.severity = "info";
      what.message = fmt::format("{} is over, after {}: {}", finding.code,
                                 Lasted(change.lasted), finding.summary);
    }
    parts_->announcer.Tell(what, &deferred);
  }
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
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->transactions.Enqueue(
      Mute(&parts_->announcer, Event{{}, std::move(muted), {}}, code, "muted",
           std::move(done)),
      &deferred);
}

void Coordinator::UnmuteFinding(const std::string& code, Done done) {
  if (absl::Status known = CheckFindingCode(code); !known.ok())
    return done(known);
  DeferredActions deferred;
  MutexLock lock(&mu_);
  parts_->transactions.Enqueue(
      Mute(&parts_->announcer, Event{{}, FindingUnmuted{code}, {}}, code,
           "unmuted", std::move(done)),
      &deferred);
}

void Coordinator::SetCertificate(std::optional<CertificateTerm> term) {
  MutexLock lock(&mu_);
  parts_->certificate = term;
}

void Coordinator::SetReloaded(const absl::Status& status) {
  MutexLock lock(&mu_);
  parts_->not_reloaded = Message(status);
}

std::optional<CertificateTerm> Coordinator::certificate() const {
  MutexLock lock(&mu_);
  return parts_->certificate;
}

}  // namespace leat::server
