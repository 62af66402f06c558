// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/snapshots.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/cluster/certificate_term.h"
#include "core/status.h"
#include "server/membership/ability_gap.h"

namespace leat::server {
namespace {

// A failed listing is a finding for this long.
constexpr Duration kFailureIsNew = std::chrono::minutes(10);

// Adds what a worker that is not lost reports about who can reach it.
void SnapOpen(const Membership::Worker& worker, WallTime now, Snapshot* to) {
  const auto& [name, host] =
      std::tie(worker.registration->name, worker.registration->host);
  if (const std::string& why = worker.registration->not_confined; !why.empty())
    to->unconfined.Add(name, host, why);
  if (const std::string& address = worker.registration->insecure_listener;
      !address.empty())
    to->insecure.Add(name, host, address);
  if (const std::string& why = worker.report.not_reloaded; !why.empty())
    to->not_reloaded.Add(name, host, why);
  const std::optional<CertificateTerm>& term = worker.report.certificate;
  if (!term || now <= term->warn_at()) return;
  Snapshot::AlikeWorkers& alike =
      now > term->error_at() ? to->expiring_soon : to->expiring;
  alike.Add(name, host, TextOfExpiry(term->end - now));
}

// Adds workers that decode unlike some jobs, and jobs without a worker that
// decodes alike.
void SnapDecoders(const Parts& parts, Snapshot* to) {
  to->decoder_groups = parts.state.DecoderGroups();
  const auto& threads = parts.membership.decoder_threads();
  std::set<std::pair<DecoderClass, Digest>> without;
  bool any_unlike = false;
  for (const DecoderGroup& group : to->decoder_groups) {
    const std::pair key(group.decoders.decoder_class, group.decoders.digest);
    if (parts.membership.num_ready(key.first) == 0) continue;
    if (!threads.contains(key) && !threads.contains({key.first, Digest{}}))
      without.insert(key);
    for (const auto& [has, sum] : threads)
      any_unlike |= has.first == key.first && has.second != key.second &&
                    has.second != Digest{};
  }
  if (any_unlike)
    for (const auto& [name, worker] : parts.membership.workers()) {
      if (worker.state() != WorkerState::kReady) continue;
      const WorkerRegistration& own = *worker.registration;
      const bool unlike = std::ranges::any_of(
          to->decoder_groups, [&](const DecoderGroup& group) {
            const Decoders& of = group.decoders;
            return own.Has(of.decoder_class) &&
                   !DecodesAs(own, of.decoder_class, of.digest);
          });
      if (unlike && to->unlike++ < kMaxAlike)
        to->first_unlike.push_back(worker.registration);
    }
  if (without.empty()) return;
  for (const auto& [name, job] : parts.state.jobs()) {
    const std::optional<Decoders> decoders =
        parts.state.DecodersOf(job.info->plan_hash);
    if (!decoders ||
        !without.contains({decoders->decoder_class, decoders->digest}))
      continue;
    Snapshot::Undecoded& jobs =
        to->undecoded[{decoders->decoder_class, decoders->digest}];
    jobs.decoders = *decoders;
    if (jobs.jobs.total++ < kMaxAlike) jobs.jobs.first.push_back(name);
  }
}

// Adds jobs that no READY worker is able to compute.
void SnapAbilities(const Parts& parts, Snapshot* to) {
  // The place in `unable` of what a job needs; nullopt: some worker has it.
  using Needed = std::tuple<DecoderClass, std::optional<Digest>, Abilities>;
  std::map<Needed, std::optional<size_t>> known;
  const auto& threads = parts.membership.decoder_threads();
  for (const auto& [name, job] : parts.state.jobs()) {
    if (job.abilities.empty()) continue;
    const DecoderClass decoder_class = job.info->spec.decoder_class;
    if (parts.membership.num_ready(decoder_class) == 0) continue;
    std::optional<Digest> digest;
    if (const auto own = parts.state.DecodersOf(job.info->plan_hash)) {
      digest = own->digest;
      // NO_DECODER says so if no worker decodes like that.
      if (!threads.contains({decoder_class, *digest}) &&
          !threads.contains({decoder_class, Digest{}}))
        continue;
    }
    const auto [at, added] = known.try_emplace(
        Needed(decoder_class, digest, job.abilities), std::nullopt);
    if (added)
      if (const std::optional<AbilityGap> gap =
              GapOf(parts.membership, decoder_class, job.abilities, digest)) {
        at->second = to->unable.size();
        to->unable.push_back(
            {gap->Names(), gap->why, gap->Remedy(),
             !GapOf(parts.membership, decoder_class, job.abilities)});
      }
    if (!at->second) continue;
    Snapshot::Jobs& jobs = to->unable[*at->second].jobs;
    if (jobs.total++ < kMaxAlike) jobs.first.push_back(name);
  }
}

void SnapWorkers(const Parts& parts, Now at, Snapshot* to) {
  const WallTime now = at.wall;
  const auto& workers = parts.membership.workers();
  to->workers = workers.size();
  to->ready = parts.membership.num_ready();
  to->may_come = WorkersMayCome(parts, at.mono);
  to->lost = parts.membership.num_lost();
  to->failing = parts.membership.num_failing();
  to->held = parts.membership.held_until().has_value();
  const bool expiring = parts.membership.first_expiry_warning() < now;
  if (to->lost > 0 || to->failing > 0 || parts.membership.num_open() > 0 ||
      expiring)
    for (const auto& [name, worker] : workers) {
      const std::string& host = worker.registration->host;
      if (!worker.lost) SnapOpen(worker, now, to);
      if (worker.lost && to->first_lost.size() < kMaxAlike)
        to->first_lost.push_back({name, host});
      if (!worker.lost && !worker.failures.empty() &&
          to->first_failing.size() < kMaxAlike) {
        const v1::StorageFailure& first = worker.failures.front();
        to->first_failing.push_back(
            {name, host, first.root(), first.error(), worker.failures.size()});
      }
    }
  if (to->ready == 0) return;
  for (const auto& [name, job] : parts.state.jobs()) {
    const DecoderClass wanted = job.info->spec.decoder_class;
    if (parts.membership.num_ready(wanted) > 0) continue;
    Snapshot::Jobs& jobs = to->without_decoder[wanted];
    if (jobs.total++ < kMaxAlike) jobs.first.push_back(name);
  }
}

// Adds datasets that have changed since a listing that is still in use.
void SnapChanged(const Parts& parts, Snapshot* to) {
  for (const auto& [id, dataset] : parts.state.datasets()) {
    const std::string changes = ChangedText(parts.state, parts.looks, dataset);
    if (changes.empty()) continue;
    for (const std::string& job : parts.state.JobsOf(id)) {
      if (to->changed.size() == kMaxAlike) return;
      if (!parts.sessions.consumers().OfJob(job).empty())
        to->changed.push_back({job, dataset.info->name, changes});
    }
  }
}

void SnapJobs(const Parts& parts, Now now, Snapshot* to) {
  for (const auto& [id, damage] : parts.damaged.all()) {
    if (to->damaged.size() == kMaxAlike) break;
    if (now.mono - damage.noted_at < DamagedIndexes::kForgotten)
      to->damaged.push_back(
          {parts.state.NameOf(id), damage.what, damage.mending});
  }
  for (const auto& [id, consumer] : parts.sessions.consumers().all()) {
    if (to->stalled.size() == kMaxAlike) break;
    if (consumer.stalled_since && parts.sessions.consumers().IsNewest(id) &&
        now.mono >= *consumer.stalled_since + parts.config.stall_after)
      to->stalled.push_back({consumer.opening.consumer, consumer.job,
                             consumer.report.stall_fraction});
  }
  for (const auto& [name, said] : parts.unreached.all())
    if (now.mono - said.said_at <= UnreachedTable::kKept)
      for (const UnreachedWorker& each : said.workers)
        if (to->unreached.size() < kMaxAlike)
          to->unreached.push_back(
              {name, said.job, said.host, each.worker, each.why});
  for (const auto& [name, bad] : parts.bad_samples.jobs()) {
    if (bad.first.empty()) continue;
    const JobRecord* job = parts.state.FindJob(name);
    const v1::BadSample& first = bad.first.begin()->second;
    to->bad_jobs.push_back(
        {name, bad.total,
         first.source().empty() ? first.reason() : TextOf(first),
         job == nullptr ? absl::OkStatus()
                        : parts.bad_samples.Verdict(*job->info)});
  }
  for (const Indexing::Failure& failure : parts.datasets.indexing().failures())
    if (now.wall - failure.at < kFailureIsNew)
      to->failed_listings.push_back({ShownReader(failure.reader_text),
                                     failure.message,
                                     failure.dataset_id.substr(0, 12)});
  for (const auto& [id, request] : parts.datasets.indexing().requests())
    if (const std::string wait = StorageWaitOf(parts.membership, request.worker,
                                               request.reader_text);
        !wait.empty() && to->waiting_listings.size() < kMaxAlike)
      to->waiting_listings.push_back({ShownReader(request.reader_text), wait,
                                      id.substr(0, 12), request.worker});
  SnapChanged(parts, to);
}

void SnapStore(const Parts& parts, Snapshot* to) {
  to->insecure_listener = parts.config.insecure_listener;
  to->not_confined = parts.config.not_confined;
  to->own_not_reloaded = parts.not_reloaded;
  to->last_write = parts.transactions.last();
  to->losses = parts.store->losses();
  to->set_aside = parts.state.set_aside().size();
  for (size_t i = 0; i < std::min(to->set_aside, kMaxAlike); ++i) {
    to->first_set_aside.push_back(
        std::get<SetAside>(parts.state.set_aside()[i].kind));
    to->first_set_aside.back().record.clear();
  }
  if (!parts.store->durable()) return;
  const uint64_t sequence = parts.store->sequence();
  for (const auto& [name, worker] : parts.membership.workers()) {
    const uint64_t seen = worker.registration->highest_sequence_seen;
    if (worker.lost || seen <= sequence) continue;
    to->regressed = {name, seen, sequence};
    return;
  }
}

}  // namespace

bool WorkersMayCome(const Parts& parts, MonotonicTime now) {
  return !parts.workers_came &&
         now < parts.started_at.value_or(now) + parts.config.no_workers_after;
}

Snapshot SnapshotOf(const Parts& parts, Now now) {
  Snapshot snapshot;
  SnapWorkers(parts, now, &snapshot);
  SnapDecoders(parts, &snapshot);
  SnapAbilities(parts, &snapshot);
  SnapJobs(parts, now, &snapshot);
  SnapStore(parts, &snapshot);
  if (const auto& own = parts.certificate; own && now.wall > own->warn_at())
    snapshot.expiry = {.left = own->end - now.wall,
                       .soon = now.wall > own->error_at()};
  return snapshot;
}

}  // namespace leat::server
