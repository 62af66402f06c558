// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/idle_forms.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::worker {
namespace {

// Gives the calling thread a table of descriptors of its own, with the standard
// streams alone. A process that is killed ends with its last thread, and one of
// this priority may wait for half a minute for a processor. Its sockets and
// locks of files would stay open for as long, and its peers would not notice.
// Fails on kernels before 5.9, where they do.
void CloseDescriptors() {
  close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_UNSHARE);
}

}  // namespace

void IdlePace::Made(MonotonicTime now, Duration ran, bool crowded) {
  if (crowded) {
    ++crowded_;
    ran_crowded_ += ran;
  }
  if (++forms_ < kForms) return;
  const Duration in_the_way = std::exchange(ran_crowded_, Duration(0));
  forms_ = 0;
  if (std::exchange(crowded_, 0) > 1)
    rests_until_ = now + std::min(kRestTimes * in_the_way, kLongestRest);
}

IdleForms::IdleForms(IdleFormsOptions options, SampleCache* cache,
                     IdleWork* work, const Clock& clock,
                     const Clock& thread_clock)
    : options_(std::move(options)),
      cache_(*cache),
      work_(*work),
      clock_(clock),
      thread_clock_(thread_clock) {
  for (size_t i = 0; i < options_.makers && started_.ok(); ++i) {
    auto maker = std::make_unique<Maker>();
    started_ = StartThread(
        fmt::format("idle-{}", i), [this, at = maker.get()] { MakerLoop(at); },
        &maker->thread);
    if (started_.ok()) makers_.push_back(std::move(maker));
  }
  if (!makers_.empty() && started_.ok())
    started_ = StartThread(
        "idle-clerk", [this] { ClerkLoop(); }, &clerk_);
}

IdleForms::~IdleForms() { Stop(); }

void IdleForms::Stop() {
  work_.Shut();
  stopping_ = true;
  stopped_.Notify();
  work_.opened().Notify();
  if (clerk_.joinable()) clerk_.join();
  for (const auto& maker : makers_) maker->ordered.NotifyAll();
  for (const auto& maker : makers_)
    if (maker->thread.joinable()) maker->thread.join();
}

// Returns the next form that is still wanted, and may be made.
std::optional<IdleForms::Order> IdleForms::NextOrder() {
  while (work_.closed() == 0) {
    std::optional<LackingForm> form = work_.Take();
    if (!form) return std::nullopt;
    const FormHorizon& horizon = *SampleCache::HorizonOf(form->dataset);
    if (horizon.UsesLeft() <= 0 ||
        horizon.UsesAfter(form->job, form->epoch) <= 0)
      continue;
    uint64_t max_bytes = 0;
    std::optional<StoredSample> sample = cache_.forms().FindLacking(
        form->dataset, form->record, form->kind, form->file,
        form->pixel_halvings > 0 ? DecodeClass::kReduced : DecodeClass::kFull,
        &max_bytes);
    if (!sample) continue;
    const FormOrder what = {.file = form->file,
                            .kind = form->kind,
                            .gray = form->gray,
                            .pixel_halvings = form->pixel_halvings,
                            .max_bytes = max_bytes};
    return Order{*std::move(form), *std::move(sample), what};
  }
  return std::nullopt;
}

void IdleForms::Make(FormMaker* maker, Maker* at) {
  const MonotonicTime began = thread_clock_.Now();
  at->made = maker->Make(at->order->what, work_.closed());
  at->ran = thread_clock_.Now() - began;
}

void IdleForms::Collect(Maker* maker) {
  Order order = *std::exchange(maker->order, std::nullopt);
  absl::StatusOr<KeptForm> made =
      std::exchange(maker->made, absl::UnknownError("not made"));
  took_ns_ += maker->ran.count();
  if (absl::IsCancelled(made.status())) {
    ++given_up_;
    work_.GiveBack(std::move(order.form));
    return;
  }
  // The clerk runs, and makers that have an order run or want to run.
  const auto at_work = std::ranges::count_if(
      makers_, [](const auto& each) { return each->phase == Maker::kOrdered; });
  pace_.Made(
      clock_.Now(), maker->ran,
      options_.crowded && options_.crowded(1 + static_cast<size_t>(at_work)));
  if (TimesThrottled() != throttled_) pace_.Throttled(clock_.Now());
  const LackingForm& form = order.form;
  if (made.ok() && cache_.forms().KeepForm(form.dataset, form.record, form.file,
                                           *std::move(made))) {
    ++made_;
    return;
  }
  // Prevents another attempt in vain.
  ++failed_;
  cache_.forms().RefuseForms(form.dataset, form.record, form.file,
                             FormKinds::Only(form.kind));
}

bool IdleForms::MakeOne(FormMaker* maker) {
  if (clock_.Now() < pace_.rests_until()) return false;
  Maker at;
  at.order = NextOrder();
  if (!at.order) return false;
  throttled_ = TimesThrottled();
  Make(maker, &at);
  Collect(&at);
  return true;
}

void IdleForms::CollectAll() {
  for (const auto& maker : makers_) {
    if (maker->phase != Maker::kDone) continue;
    Collect(maker.get());
    maker->phase = Maker::kFree;
  }
}

MonotonicTime IdleForms::GiveOrders() {
  if (clock_.Now() < pace_.rests_until()) return pace_.rests_until();
  // Quota that rows have used up before does not count.
  if (std::ranges::none_of(makers_, [](const auto& each) {
        return each->phase == Maker::kOrdered;
      }))
    throttled_ = TimesThrottled();
  for (const auto& maker : makers_) {
    if (maker->phase != Maker::kFree) continue;
    maker->order = NextOrder();
    if (!maker->order) break;
    maker->phase = Maker::kOrdered;
    maker->ordered.Notify();
  }
  return MonotonicTime::max();
}

void IdleForms::ClerkLoop() {
  while (!stopping_) {
    const uint32_t seen = work_.opened().Prepare();
    const uint32_t not_stopped = stopped_.Prepare();
    CollectAll();
    MonotonicTime again = MonotonicTime::max();
    if (work_.closed() == 0 && work_.size() > 0) {
      const uint64_t closings = work_.closings();
      if (closings != lingered_for_) {
        if (!stopping_) stopped_.Wait(not_stopped, clock_.Now() + kLinger);
        // If no row was requested meanwhile, makers may begin.
        if (work_.closed() == 0 && work_.closings() == closings)
          lingered_for_ = closings;
        continue;
      }
      again = GiveOrders();
    }
    if (!stopping_) work_.opened().Wait(seen, again);
  }
  // Makers at work give up.
}

void IdleForms::MakerLoop(Maker* maker) {
  const sched_param none = {};
  if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) {
    const int error = errno;
    if (!refused_.exchange(true))
      LOG_WARN("idle_forms.off reason=\"SCHED_IDLE: {}\"", strerror(error));
    return;
  }
  CloseDescriptors();
  const std::unique_ptr<FormMaker> makes = options_.make_maker();
  maker->phase = Maker::kFree;
  work_.opened().Notify();
  while (!stopping_) {
    const uint32_t seen = maker->ordered.Prepare();
    if (maker->phase == Maker::kOrdered) {
      Make(makes.get(), maker);
      maker->phase = Maker::kDone;
      work_.opened().Notify();
    } else if (!stopping_) {
      maker->ordered.Wait(seen);
    }
  }
}

IdleForms::Stats IdleForms::stats() const {
  return {.made = made_,
          .given_up = given_up_,
          .failed = failed_,
          .took = Duration(took_ns_),
          .waiting = work_.size()};
}

}  // namespace leat::worker
