// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/decoder_choice.h"

#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace leat::server {
namespace {

// Retry time after an event that could not be written.
constexpr Duration kPinAgain = std::chrono::seconds(5);

}  // namespace

class DecoderChoice::PinTransaction final : public Transaction {
 public:
  // Pins the plans that need these abilities, to decoders of workers that have
  // them.
  PinTransaction(DecoderChoice* choice, DecoderClass decoder_class,
                 Abilities needed, Now now)
      : choice_(choice),
        class_(decoder_class),
        needed_(std::move(needed)),
        now_(now) {}

  absl::StatusOr<std::optional<Event>> Decide(DeferredActions*) override {
    std::vector<Digest> plans = std::move(choice_->ToPin(class_)[needed_]);
    const std::optional<Decoders> decoders =
        choice_->MostThreads(class_, needed_);
    if (plans.empty() || !decoders) return std::nullopt;
    pinned_ = {std::move(plans), decoders->digest, decoders->libraries};
    return Event{{}, pinned_, {}};
  }
  void Applied(DeferredActions* deferred) override {
    if (pinned_.plans.empty()) return;
    deferred->Add([decoder_class = class_, pinned = pinned_] {
      LOG_INFO("decoders.pinned decoder={} digest={} libraries=\"{}\" plans={}",
               Name(decoder_class), ShortHex(pinned.digest), pinned.libraries,
               pinned.plans.size());
    });
    for (const Digest& plan : pinned_.plans)
      choice_->MoveTables(plan, deferred);
  }
  void Failed(const absl::Status&, DeferredActions* deferred) override {
    choice_->pin_at_ = now_.mono + kPinAgain;
    deferred->Add(choice_->wake_);
  }

 private:
  DecoderChoice* const choice_;
  const DecoderClass class_;
  const Abilities needed_;
  const Now now_;
  DecodersPinned pinned_;
};

void DecoderChoice::Recover() {
  for (const auto& [name, job] : state_->jobs())
    if (!state_->DecodersOf(job.info->plan_hash))
      loaded_.insert(job.info->plan_hash);
}

void DecoderChoice::Soon(DeferredActions* deferred) {
  pin_at_ = MonotonicTime::min();
  deferred->Add(wake_);
}

DecoderChoice::PlansToPin DecoderChoice::ToPin(
    DecoderClass decoder_class) const {
  PlansToPin plans;
  for (const Digest& plan : state_->Unpinned(decoder_class)) {
    const JobRecord* const job = state_->FindJob(plan);
    if (job != nullptr && !loaded_.contains(plan))
      plans[job->abilities].push_back(plan);
  }
  return plans;
}

// Returns the digest with the most threads among READY workers that have the
// class and the abilities, and the text of its libraries.
std::optional<Decoders> DecoderChoice::MostThreads(
    DecoderClass decoder_class, const Abilities& needed) const {
  std::map<Digest, size_t> threads;
  if (needed.empty()) {
    for (const auto& [key, sum] : membership_->decoder_threads())
      if (key.first == decoder_class) threads[key.second] = sum;
  } else {
    for (const auto& [name, worker] : membership_->workers())
      if (const Decoders* own = worker.registration->DecodersOf(decoder_class);
          own != nullptr && worker.state() == WorkerState::kReady &&
          HasAll(worker.registration->abilities, needed))
        threads[own->digest] += worker.registration->threads;
  }
  Digest most{};
  size_t most_threads = 0;
  for (const auto& [digest, sum] : threads)
    if (digest != Digest{} && sum > most_threads) {
      most = digest;
      most_threads = sum;
    }
  if (most_threads == 0) return std::nullopt;
  for (const auto& [name, worker] : membership_->workers()) {
    const Decoders* const own = worker.registration->DecodersOf(decoder_class);
    if (worker.state() == WorkerState::kReady && own != nullptr &&
        own->digest == most)
      return *own;
  }
  return std::nullopt;
}

void DecoderChoice::Tick(bool changed, Now now, DeferredActions* deferred) {
  if (!tables_->publish_delayed()) loaded_.clear();
  if (changed) pin_at_ = MonotonicTime::min();
  if (!pin_at_ || now.mono < *pin_at_) return;
  pin_at_.reset();
  for (const DecoderClass decoder_class :
       {DecoderClass::kExact, DecoderClass::kNvjpeg,
        DecoderClass::kNvjpegShared})
    for (const auto& [needed, plans] : ToPin(decoder_class))
      if (MostThreads(decoder_class, needed))
        transactions_->Enqueue(
            std::make_unique<PinTransaction>(this, decoder_class, needed, now),
            deferred);
}

MonotonicTime DecoderChoice::NextDeadline() const {
  return pin_at_.value_or(MonotonicTime::max());
}

// The plan was pinned: moves its jobs and consumers from the table of plans
// that are not.
void DecoderChoice::MoveTables(const Digest& plan_hash,
                               DeferredActions* deferred) {
  const JobRecord* const job = state_->FindJob(plan_hash);
  if (job == nullptr) return;
  const std::vector<TableKey> to = KeysOf(*state_, *job->info);
  std::vector<TableKey> from = to;
  for (TableKey& key : from) key.decoders = {};
  ConsumerTable& all = sessions_->consumers();
  const std::set<SessionId> consumers = all.OfPlan(plan_hash);
  const size_t jobs = state_->JobsWith(plan_hash).size();
  std::vector<TableKey> left;
  for (size_t i = 0; i < jobs; ++i)
    left.insert(left.end(), from.begin(), from.end());
  // A consumer that has outlived a job of the plan has the table of that job's
  // decoders.
  for (const SessionId id : consumers) {
    const std::vector<TableKey>& keys = all.Find(id)->keys;
    left.insert(left.end(), keys.begin(), keys.end());
  }
  // All users move first: a table is removed with its last user.
  for (size_t i = 0; i < jobs + consumers.size(); ++i)
    tables_->Use(*job->info, deferred);
  for (const SessionId id : consumers) {
    all.Move(id, to);
    sessions_->WakeLater(id);  // its table may already exist for another plan
  }
  deferred->Add(wake_);
  tables_->Release(left, deferred);
}

}  // namespace leat::server
