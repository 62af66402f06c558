// SPDX-License-Identifier: Apache-2.0
//
// Which decoders a plan begins with (server/state/decoders.h).
//
//   job written, workers changed ─► settle_at_ ─► Tick: SettleDecoders
//     ─► a durable event: these plans began with the digest of the READY
//        workers that have the most threads in all
//     ─► MoveTables: their jobs and consumers leave the table of plans that
//        have not begun for the one of the digest
//
// Until then a plan's table names none of the workers that tell a digest: two
// of different ones could both serve it.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/internal.h"

namespace leat::server {
namespace {

// After an event that could not be written.
constexpr Duration kSettleAgain = std::chrono::seconds(5);

}  // namespace

TableKey Coordinator::KeyOf(const JobInfo& job) const {
  const std::optional<Decoders> decoders = state_.DecodersOf(job.plan_hash);
  return {job.dataset.id, job.spec.decoder_class,
          decoders ? decoders->digest : Digest{}};
}

void Coordinator::SettleSoon(Effects* effects) {
  settle_at_ = MonotonicTime::min();
  effects->Add(wake_);
}

std::vector<Digest> Coordinator::ToSettle(DecoderClass decoder_class) const {
  std::vector<Digest> plans;
  for (const Digest& plan : state_.Unsettled(decoder_class))
    if (!loaded_unsettled_.contains(plan)) plans.push_back(plan);
  return plans;
}

// A digest of the READY workers of the class, with what its libraries are.
std::optional<Decoders> Coordinator::MostThreads(
    DecoderClass decoder_class) const {
  Digest most{};
  size_t threads = 0;
  for (const auto& [key, sum] : membership_.decoder_threads())
    if (key.first == decoder_class && key.second != Digest{} && sum > threads) {
      most = key.second;
      threads = sum;
    }
  if (threads == 0) return std::nullopt;
  for (const auto& [name, worker] : membership_.workers()) {
    const Decoders* const own = worker.registration->DecodersOf(decoder_class);
    if (worker.state() == WorkerState::kReady && own != nullptr &&
        own->digest == most)
      return *own;
  }
  return std::nullopt;
}

void Coordinator::SettleDecoders(Now now, Effects* effects) {
  settle_at_.reset();
  for (const DecoderClass decoder_class :
       {DecoderClass::kExact, DecoderClass::kNvjpeg}) {
    if (ToSettle(decoder_class).empty() || !MostThreads(decoder_class))
      continue;
    const auto settled = std::make_shared<DecodersSettled>();
    Write write;
    write.decide = [this, decoder_class,
                    settled](Effects*) -> absl::StatusOr<std::optional<Event>> {
      mu_.AssertHeld();
      std::vector<Digest> plans = ToSettle(decoder_class);
      const std::optional<Decoders> decoders = MostThreads(decoder_class);
      if (plans.empty() || !decoders) return std::nullopt;
      *settled = {std::move(plans), decoders->digest, decoders->libraries};
      return Event{{}, *settled, {}};
    };
    write.finish = [this, decoder_class, settled, now](
                       const absl::Status& status, Effects* inner) {
      mu_.AssertHeld();
      if (!status.ok()) {
        settle_at_ = now.mono + kSettleAgain;
        inner->Add(wake_);
        return;
      }
      if (settled->plans.empty()) return;
      inner->Add([decoder_class, settled] {
        LOG_INFO(
            "decoders.settled decoder={} digest={} libraries=\"{}\" plans={}",
            Name(decoder_class), ShortHex(settled->digest), settled->libraries,
            settled->plans.size());
      });
      for (const Digest& plan : settled->plans) MoveTables(plan, inner);
    };
    Enqueue(std::move(write), effects);
  }
}

// The plan was settled: its jobs and consumers were users of the table of those
// that are not.
void Coordinator::MoveTables(const Digest& plan_hash, Effects* effects) {
  const JobRecord* const job = state_.FindJob(plan_hash);
  if (job == nullptr) return;
  const TableKey to = KeyOf(*job->info);
  const TableKey from{to.dataset_id, to.decoder_class, {}};
  // All users first: a table is gone with its last one.
  const std::set<SessionId> consumers = consumers_.OfPlan(plan_hash);
  const size_t users = state_.JobsWith(plan_hash).size() + consumers.size();
  for (size_t i = 0; i < users; ++i) UseTable(*job->info, effects);
  for (const SessionId id : consumers) {
    consumers_.Move(id, to);
    Consumer* const consumer = consumers_.Find(id);
    consumer->pending = true;
    WakeLater(id, consumer);  // the table may be there for another plan
  }
  effects->Add(wake_);
  for (size_t i = 0; i < users; ++i) ReleaseTable(from, effects);
}

std::optional<Decoders> Coordinator::DecodersOf(const Digest& plan_hash) const {
  MutexLock lock(&mu_);
  return state_.DecodersOf(plan_hash);
}

// Workers that decode unlike some jobs, and jobs that nobody decodes alike.
void Coordinator::SnapDecoders(Snapshot* to) const {
  to->decoder_groups = state_.DecoderGroups();
  const auto& threads = membership_.decoder_threads();
  std::set<std::pair<DecoderClass, Digest>> without;
  bool any_unlike = false;
  for (const DecoderGroup& group : to->decoder_groups) {
    const std::pair key(group.decoders.decoder_class, group.decoders.digest);
    if (membership_.num_ready(key.first) == 0) continue;
    if (!threads.contains(key) && !threads.contains({key.first, Digest{}}))
      without.insert(key);
    for (const auto& [has, sum] : threads)
      any_unlike |= has.first == key.first && has.second != key.second &&
                    has.second != Digest{};
  }
  if (any_unlike)
    for (const auto& [name, worker] : membership_.workers()) {
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
  for (const auto& [name, job] : state_.jobs()) {
    const std::optional<Decoders> decoders =
        state_.DecodersOf(job.info->plan_hash);
    if (!decoders ||
        !without.contains({decoders->decoder_class, decoders->digest}))
      continue;
    Snapshot::Undecoded& jobs =
        to->undecoded[{decoders->decoder_class, decoders->digest}];
    jobs.decoders = *decoders;
    if (jobs.jobs.total++ < kMaxAlike) jobs.jobs.first.push_back(name);
  }
}

}  // namespace leat::server
