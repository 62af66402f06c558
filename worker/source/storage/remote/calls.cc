// SPDX-License-Identifier: Apache-2.0
//
// The caller's thread is the loop: it begins the tasks that may begin, waits
// for an answer or for the next point in time, and judges answers. Callbacks of
// the transport only store answers.
#include "worker/source/storage/remote/calls.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "core/cluster/fault.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::worker {
namespace {

using Kind = Verdict::Kind;

struct Answer {
  uint64_t flight = 0;
  HttpResponse response;
};

// Receives the transport's answers.
class Answers {
 public:
  void Put(Answer answer) {
    const MutexLock lock(&mu_);
    waiting_.push_back(std::move(answer));
    came_.NotifyOne();
  }
  std::vector<Answer> Take(StorageClock* clock, MonotonicTime deadline) {
    const MutexLock lock(&mu_);
    if (waiting_.empty() && !interrupted_) {
      clock->WaitUntil(&mu_, &came_, deadline);
    }
    return std::exchange(waiting_, {});
  }
  // Ends the present wait, and later ones.
  void Interrupt() {
    const MutexLock lock(&mu_);
    interrupted_ = true;
    came_.NotifyOne();
  }

 private:
  Mutex mu_;
  CondVar came_;
  std::vector<Answer> waiting_ ABSL_GUARDED_BY(mu_);
  bool interrupted_ ABSL_GUARDED_BY(mu_) = false;
};

struct Flight {
  HttpTransport::Id id = 0;
  size_t task = 0;
  MonotonicTime began;
  bool is_hedge = false;
  std::vector<std::byte> other;  // a hedge's
  // HttpRequest::heard, its value at the last check, and the time since when it
  // has that value.
  std::unique_ptr<std::atomic<uint64_t>> heard =
      std::make_unique<std::atomic<uint64_t>>(0);
  uint64_t heard_before = 0;
  MonotonicTime quiet_since;
};

struct TaskState {
  int tries = 0;
  int flights = 0;
  bool hedged = false;  // in this try
  bool refreshed = false;
  MonotonicTime not_before;
};

class Run {
 public:
  Run(const CallContext& context,
      std::span<const std::unique_ptr<HttpTask>> tasks)
      : context_(context),
        tasks_(tasks),
        states_(tasks.size()),
        began_(context.clock.Now()),
        deadline_(began_ + context.config.deadline),
        wake_(
            context.stop.Add([answers = answers_] { answers->Interrupt(); })) {}

  ~Run() {
    context_.stop.Remove(wake_);
    if (told_of_) context_.waits.Ended(this);
    while (!flights_.empty()) End(flights_.begin()->first);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Verdict Go() {
    while (done_ < tasks_.size()) {
      if (context_.stop.stopped()) {
        return {Kind::kFailed, WithFault(Cancelled("{}: the worker stops",
                                                   tasks_[0]->Describe()),
                                         Fault::kTransient)};
      }
      MonotonicTime wake = deadline_;
      BeginSome(&wake);
      HedgeSome(&wake);
      TellOfSilence(&wake);
      for (Answer& answer : answers_->Take(&context_.clock, wake)) {
        const Verdict verdict = Judge(answer);
        if (verdict.kind == Kind::kFailed) return verdict;
      }
      if (done_ < tasks_.size() && context_.clock.Now() >= deadline_) {
        return GiveUp(last_failure_.ok()
                          ? WithFault(DeadlineExceeded("{}: no answer came",
                                                       tasks_[0]->Describe()),
                                      Fault::kTransient)
                          : last_failure_,
                      "the deadline");
      }
    }
    return {};
  }

 private:
  // Begins waiting tasks whose time has come, then new ones.
  void BeginSome(MonotonicTime* wake) {
    const MonotonicTime now = context_.clock.Now();
    std::vector<size_t> later;
    for (const size_t task : again_) {
      if (states_[task].not_before <= now && HasRoom()) {
        Begin(task);
      } else {
        // Without room, an answer wakes the loop anyway.
        if (states_[task].not_before > now) {
          *wake = std::min(*wake, states_[task].not_before);
        }
        later.push_back(task);
      }
    }
    again_ = std::move(later);
    while (next_ < tasks_.size() && HasRoom()) Begin(next_++);
  }

  bool HasRoom() const {
    return running_ < static_cast<size_t>(context_.config.parallel_ranges);
  }

  void Begin(size_t task) {
    ++states_[task].tries;
    ++running_;
    states_[task].hedged = false;
    context_.late.CountRequest();
    if (states_[task].tries > 1) ++context_.retries;
    Launch(task, {.task = task});
  }

  void Launch(size_t task, Flight flight) {
    ++context_.requests;
    ++states_[task].flights;
    flight.began = flight.quiet_since = context_.clock.Now();
    const uint64_t number = ++last_flight_;
    Flight& kept = flights_[number] = std::move(flight);
    HttpRequest request = tasks_[task]->Next(kept.other);
    request.heard = kept.heard.get();
    kept.id = context_.transport.Begin(
        std::move(request), [this, number](HttpResponse response) {
          answers_->Put({number, std::move(response)});
        });
  }

  // Makes a second request for late ranges.
  void HedgeSome(MonotonicTime* wake) {
    const std::optional<Duration> late = context_.late.LateAfter();
    if (!late.has_value()) return;
    const bool saturated = context_.transport.Saturated();
    const MonotonicTime now = context_.clock.Now();
    std::vector<size_t> hedged;
    for (const auto& [number, flight] : flights_) {
      if (flight.is_hedge || states_[flight.task].hedged ||
          tasks_[flight.task]->hedge_bytes() == 0) {
        continue;
      }
      if (flight.began + *late > now) {
        *wake = std::min(*wake, flight.began + *late);
      } else if (!saturated && context_.late.BeginHedge()) {
        hedged.push_back(flight.task);
      } else {
        *wake = std::min(*wake, now + *late);  // there may be room then
      }
    }
    for (const size_t task : hedged) {
      states_[task].hedged = true;
      ++context_.hedges;
      Launch(task,
             {.task = task,
              .is_hedge = true,
              .other = std::vector<std::byte>(tasks_[task]->hedge_bytes())});
    }
  }

  // Reports what is waited for while nothing comes. A try that waits for a
  // connection is not the server's silence.
  void TellOfSilence(MonotonicTime* wake) {
    const MonotonicTime now = context_.clock.Now();
    const Duration silence = context_.config.silence;
    for (auto& [number, flight] : flights_) {
      const uint64_t heard = *flight.heard;
      if (heard == 0 || heard != flight.heard_before) {
        flight.heard_before = heard;
        flight.quiet_since = now;
        if (told_silent_ == number) ForgetFailure();
      }
      *wake = std::min(*wake, now + silence);
      if (now - flight.quiet_since < silence) {
        *wake = std::min(*wake, flight.quiet_since + silence);
      } else if (!told_silent_) {
        told_silent_ = number;
        Tell(flight.task,
             fmt::format(
                 "{}: nothing of use has come for {} ms",
                 tasks_[flight.task]->Describe(),
                 std::chrono::duration_cast<StorageMs>(silence).count()));
      }
    }
  }

  // Reports the call's last failure to people, until the task is done.
  void Tell(size_t task, std::string_view why) {
    told_of_ = task;
    context_.waits.Failed(this, why, states_[task].tries);
  }
  void ForgetFailure() {
    told_silent_.reset();
    told_of_.reset();
    context_.waits.Ended(this);
  }

  // Cancels a flight, if it is still under way, and forgets it.
  void End(uint64_t number) {
    const auto flight = flights_.find(number);
    context_.transport.Cancel(flight->second.id);
    if (flight->second.is_hedge) context_.late.EndHedge();
    --states_[flight->second.task].flights;
    if (told_silent_ == number) told_silent_.reset();
    flights_.erase(flight);
  }

  void EndAllOf(size_t task) {
    for (auto it = flights_.begin(); it != flights_.end();) {
      const auto each = it++;
      if (each->second.task == task) End(each->first);
    }
  }

  // kFailed ends the run.
  Verdict Judge(const Answer& answer) {
    const auto found = flights_.find(answer.flight);
    if (found == flights_.end()) return {};  // the other one was faster
    const size_t task = found->second.task;
    TaskState& state = states_[task];
    // Its bytes go where the first request still writes: that one ends now.
    const int status = answer.response.status;
    if (found->second.is_hedge && (status == 200 || status == 206) &&
        answer.response.failure == HttpResponse::Failure::kNone) {
      EndOthers(task, answer.flight);
    }
    const Verdict verdict =
        tasks_[task]->Take(answer.response, found->second.other);
    const Duration took = context_.clock.Now() - found->second.began;
    if (verdict.kind == Kind::kDone) {
      context_.late.CountAnswer(took);
      EndAllOf(task);
      if (told_of_ == task) ForgetFailure();
      --running_;
      ++done_;
      return {};
    }
    End(answer.flight);
    if (verdict.kind == Kind::kFailed) return FailOrRefresh(task, verdict);
    last_failure_ = verdict.status;
    // Its second request may still succeed.
    if (state.flights > 0) return {};
    --running_;
    return TryAgain(task, verdict);
  }

  void EndOthers(size_t task, uint64_t kept) {
    for (auto it = flights_.begin(); it != flights_.end();) {
      const auto each = it++;
      if (each->second.task == task && each->first != kept) End(each->first);
    }
  }

  Verdict FailOrRefresh(size_t task, const Verdict& verdict) {
    TaskState& state = states_[task];
    if (!verdict.stale_credentials || state.refreshed ||
        !tasks_[task]->Refresh()) {
      return verdict;
    }
    state.refreshed = true;
    EndAllOf(task);
    --running_;
    state.not_before = context_.clock.Now();
    again_.push_back(task);
    return {};
  }

  Verdict TryAgain(size_t task, const Verdict& verdict) {
    const StorageConfig& config = context_.config;
    TaskState& state = states_[task];
    if (state.tries >= config.max_tries) {
      return GiveUp(verdict.status, "the last of max_tries");
    }
    const StorageMs step = std::min(
        config.max_backoff, StorageMs(config.first_backoff.count()
                                      << std::min(state.tries - 1, 20)));
    Duration wait(static_cast<int64_t>(
        context_.random() %
        (static_cast<uint64_t>(Duration(step).count()) + 1)));
    if (verdict.wait.has_value()) {
      wait = std::max<Duration>(
          wait, std::min(*verdict.wait, config.max_retry_after));
    }
    const MonotonicTime now = context_.clock.Now();
    if (now + wait >= deadline_) return GiveUp(verdict.status, "the deadline");
    LOG_DEBUG("storage.retry try={} wait_ms={} why=\"{}\"", state.tries,
              std::chrono::duration_cast<StorageMs>(wait).count(),
              Message(verdict.status));
    Tell(task, Message(verdict.status));
    state.not_before = now + wait;
    again_.push_back(task);
    return {};
  }

  Verdict GiveUp(const absl::Status& why, std::string_view bound) const {
    int tries = 0;
    for (const TaskState& state : states_) tries = std::max(tries, state.tries);
    const auto took =
        std::chrono::duration_cast<StorageMs>(context_.clock.Now() - began_);
    return {Kind::kFailed,
            WithFault(MakeStatus(why.code(),
                                 "{} (gave up at {}, after {} tries in {} ms)",
                                 Message(why), bound, tries, took.count()),
                      FaultOf(why).value_or(Fault::kTransient))};
  }

  const CallContext& context_;
  std::optional<size_t> told_of_;        // the task whose failure is reported
  std::optional<uint64_t> told_silent_;  // the flight, if silence is reported
  const std::span<const std::unique_ptr<HttpTask>> tasks_;
  std::vector<TaskState> states_;
  const std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
  const MonotonicTime began_;
  const MonotonicTime deadline_;
  const uint64_t wake_;  // the stop's
  absl::Status last_failure_;
  size_t next_ = 0;     // the first task that never began
  size_t running_ = 0;  // tasks with a flight
  size_t done_ = 0;
  std::vector<size_t> again_;  // tasks that wait for another try
  uint64_t last_flight_ = 0;
  std::map<uint64_t, Flight> flights_;
};

}  // namespace

void CallStop::Stop() {
  std::map<uint64_t, std::function<void()>> wakes;
  {
    const MutexLock lock(&mu_);
    stopped_ = true;
    wakes = wakes_;
  }
  for (const auto& [id, wake] : wakes) wake();
}

bool CallStop::stopped() const {
  const MutexLock lock(&mu_);
  return stopped_;
}

uint64_t CallStop::Add(std::function<void()> wake) {
  const MutexLock lock(&mu_);
  wakes_.emplace(++last_id_, std::move(wake));
  return last_id_;
}

void CallStop::Remove(uint64_t id) {
  const MutexLock lock(&mu_);
  wakes_.erase(id);
}

Verdict RunTasks(const CallContext& context,
                 std::span<const std::unique_ptr<HttpTask>> tasks) {
  return Run(context, tasks).Go();
}

}  // namespace leat::worker
