// SPDX-License-Identifier: Apache-2.0
#include "server/observe/statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/observe/counts.h"

namespace leat::server {
namespace {

// A process whose last report is older has ended.
constexpr Duration kForgetReports = std::chrono::minutes(5);
constexpr size_t kMaxReports = 65'536;

// Indices of a sample's shares: each says how a worker spends its time.
enum WorkerShare : size_t {
  kReading,
  kDecoding,
  kForInput,
  kForOutput,
  kFetching,  // of kMostFetching threads
  kSending,
  kDeviceBusy,
  kRepeated,  // of the requests to remote storage
};
enum ConsumerShare : size_t {
  kWaitingShare,
  kReadyShare,
  kWaitedForShare,  // of the sample's `other`; of the script's source if none
  kWaitP50,         // as ShareOfMs
  kWaitP95,
  kStepsTaken,  // of kMostSteps
  kQueued,      // of the time from requests to answers
  kOthersQueued,
};
constexpr double kMostFetching = 200;  // so 0.005 is one thread
constexpr double kMostSteps = 200;     // so 0.005 is one step
// Fewer steps in the judged period may have few waits, too.
constexpr uint64_t kManySteps = 10;
// A trainer that waits for more of its time is judged also without steps.
constexpr double kWaitsOnly = 0.5;
// A time as a share, by its logarithm: 0.01 ms is 0, and 100 s is 1.
constexpr double kLeastMs = 0.01, kDecades = 7;
double ShareOfMs(double ms) {
  return ms <= kLeastMs ? 0 : std::log10(ms / kLeastMs) / kDecades;
}
double MsOfShare(double share) {
  return share <= 0 ? 0 : kLeastMs * std::pow(10, kDecades * share);
}

std::string WorkerSeries(std::string_view name) {
  return std::string("w ").append(name);
}
std::string ConsumerSeries(std::string_view name) {
  return std::string("c ").append(name);
}

double PartOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0
                    : static_cast<double>(part) / static_cast<double>(whole);
}

// Returns `ns` as a share of `places` × `seconds`.
double ShareOf(uint64_t ns, double places, double seconds) {
  return places <= 0 ? 0 : static_cast<double>(ns) / 1e9 / places / seconds;
}

}  // namespace

void Statistics::BeginWorker(std::string_view name) {
  jobs_.BeginWorker(name);
  MutexLock lock(&mu_);
  last_.erase(WorkerSeries(name));
}

void Statistics::BeginConsumer(std::string_view name) {
  MutexLock lock(&mu_);
  last_.erase(ConsumerSeries(name));
}

std::optional<Statistics::Totals> Statistics::Before(const std::string& series,
                                                     Totals now, bool begins) {
  ForgetBefore(now.at);
  const auto found = last_.find(series);
  const bool known = found != last_.end();
  // Its process has restarted since then.
  const bool anew = !known || now.rows < found->second.rows;
  const bool first = begins && (anew || !found->second.begin);
  if (first) {
    now.begin = now.at;
    now.steps_at_begin = now.steps();
  } else if (!anew) {
    now.begin = found->second.begin;
    now.steps_at_begin = found->second.steps_at_begin;
  }
  if (!known) {
    if (last_.size() < kMaxReports) last_.emplace(series, std::move(now));
    return std::nullopt;
  }
  const bool early = now.at < found->second.at + History::kSlot;
  if (early && !first && !anew) return std::nullopt;
  Totals before = std::exchange(found->second, std::move(now));
  if (early || anew) return std::nullopt;
  return before;
}

void Statistics::ForgetBefore(MonotonicTime now) {
  if (now < swept_at_ + kForgetReports) return;
  swept_at_ = now;
  absl::erase_if(last_, [now](const auto& each) {
    return each.second.at + kForgetReports < now;
  });
}

void Statistics::NoteWorker(const std::string& name,
                            const v1::WorkerStats& stats, MonotonicTime now) {
  if (stats.stages().empty()) return;  // a release that does not report them
  jobs_.Note(name, stats, now);
  const v1::StageStats& open = StageOf(stats.stages(), v1::STAGE_OPEN);
  const v1::StageStats& read = StageOf(stats.stages(), v1::STAGE_READ);
  const v1::StageStats& decode = StageOf(stats.stages(), v1::STAGE_DECODE);
  const v1::StageStats& augment = StageOf(stats.stages(), v1::STAGE_AUGMENT);
  const v1::StageStats& device = StageOf(stats.stages(), v1::STAGE_DEVICE);
  const v1::StageStats& send = StageOf(stats.stages(), v1::STAGE_SEND);
  const uint64_t reads = open.busy_ns_total() + read.busy_ns_total();
  Totals totals;
  totals.at = now;
  totals.rows = stats.rows_total();
  totals.requests = stats.storage_requests_total();
  totals.retries = stats.storage_retries_total();
  totals.ns[ReadsAhead(read, decode) ? kFetching : kReading] = reads;
  totals.ns[kDecoding] = decode.busy_ns_total() + augment.busy_ns_total();
  totals.ns[kForInput] = decode.input_ns_total();
  totals.ns[kForOutput] = decode.output_ns_total();
  totals.ns[kSending] = send.busy_ns_total();
  totals.ns[kDeviceBusy] = device.busy_ns_total();
  totals.stages = CountsOf(stats.stages());
  const std::string series = WorkerSeries(name);
  MutexLock lock(&mu_);
  const std::optional<Totals> before = Before(series, totals, true);
  if (!before) return;
  AddStages(*before, totals, stats.stages())
      .queues.at(v1::STAGE_GROUP)
      .Add(stats.buffers_in_use(), stats.buffers_total());
  const double seconds = SecondsOf(now - before->at);
  const auto share = [&](size_t index, double places) {
    return ShareOf(Grown(before->ns[index], totals.ns[index]), places, seconds);
  };
  History::Sample sample;
  sample.rows_per_s = static_cast<float>(
      static_cast<double>(totals.rows - before->rows) / seconds);
  for (const size_t index : {kReading, kDecoding, kForInput, kForOutput})
    sample.Set(index, share(index, decode.places()));
  sample.Set(kFetching, share(kFetching, kMostFetching));
  // While no group has been sent at all, the groups do not show how long
  // sending takes.
  const bool stuck =
      send.queue_depth() > 0 && totals.ns[kSending] == before->ns[kSending];
  sample.Set(kSending, stuck ? 1 : share(kSending, send.places()));
  sample.Set(kDeviceBusy, share(kDeviceBusy, device.places()));
  sample.Set(kRepeated, PartOf(Grown(before->retries, totals.retries),
                               Grown(before->requests, totals.requests)));
  // For a worker, `other` holds its threads, and whether it has a GPU.
  sample.other = std::min(decode.places(), kMostThreads) << 1 |
                 (device.places() > 0 ? 1u : 0u);
  history_.Add(series, sample, now - History::kSlot);
}

void Statistics::NoteConsumer(const std::string& name,
                              const v1::ConsumerStats& stats,
                              MonotonicTime now) {
  if (stats.stages().empty()) return;
  const v1::StageStats& train = StageOf(stats.stages(), v1::STAGE_TRAIN);
  Totals totals;
  totals.at = now;
  totals.rows = stats.rows_total();
  totals.ns[kWaitingShare] = train.input_ns_total();
  for (const v1::WaitedFor& each : stats.waited_for())
    totals.of_worker[each.worker()] = {
        each.waited_ns_total(), each.answer_ns_total(), each.queued_ns_total()};
  totals.answers = stats.answer_ns_total();
  totals.queued = stats.queued_ns_total();
  totals.for_source = stats.source_ns_total();
  totals.streams = StageOf(stats.stages(), v1::STAGE_RECEIVE).places();
  totals.stages = CountsOf(stats.stages());
  totals.window = train.queue_capacity();
  const std::string series = ConsumerSeries(name);
  MutexLock lock(&mu_);
  // Rows may arrive while the first step is still awaited.
  const std::optional<Totals> before =
      Before(series, totals, totals.steps() > 0);
  if (!before) return;
  AddStages(*before, totals, stats.stages());
  const double seconds = SecondsOf(now - before->at);
  History::Sample sample;
  sample.rows_per_s = static_cast<float>(
      static_cast<double>(totals.rows - before->rows) / seconds);
  sample.Set(kWaitingShare,
             ShareOf(Grown(before->ns[kWaitingShare], totals.ns[kWaitingShare]),
                     1, seconds));
  sample.Set(kReadyShare, PartOf(train.queue_depth(), train.queue_capacity()));
  SetWaits(*before, totals, &sample);
  sample.Set(kWaitP50, ShareOfMs(stats.wait().p50_ms()));
  sample.Set(kWaitP95, ShareOfMs(stats.wait().p95_ms()));
  const uint64_t steps = Grown(before->steps(), totals.steps());
  sample.Set(kStepsTaken, static_cast<double>(steps) / kMostSteps);
  history_.Add(series, sample, now - History::kSlot);
}

void Statistics::SetWaits(const Totals& before, const Totals& now,
                          History::Sample* sample) const {
  OfWorker most;
  for (const auto& [worker, totals] : now.of_worker) {
    const auto found = before.of_worker.find(worker);
    const OfWorker earlier =
        found == before.of_worker.end() ? OfWorker() : found->second;
    const OfWorker grown = {Grown(earlier.waited, totals.waited),
                            Grown(earlier.answers, totals.answers),
                            Grown(earlier.queued, totals.queued)};
    if (grown.waited <= most.waited) continue;
    most = grown;
    sample->other = history_.NumberOf(WorkerSeries(worker));
  }
  uint64_t shown = sample->other == 0 ? 0 : most.waited;
  if (const uint64_t grown = Grown(before.for_source, now.for_source);
      grown > most.waited) {
    shown = grown;
    sample->other = 0;
  }
  sample->Set(kWaitedForShare, PartOf(shown, Grown(before.ns[kWaitingShare],
                                                   now.ns[kWaitingShare])));
  const uint64_t queued = Grown(before.queued, now.queued);
  sample->Set(kQueued, PartOf(queued, Grown(before.answers, now.answers)));
  // Answers that are queued at the same time count once.
  const double others = std::max(now.streams, 2.0) - 1;
  sample->Set(kOthersQueued, ShareOf(Grown(most.queued, queued), others,
                                     SecondsOf(now.at - before.at)));
}

void Statistics::ForEachOfConsumer(
    const std::string& name, MonotonicTime since,
    const std::function<void(const ConsumerMoment&)>& visit) const {
  MutexLock lock(&mu_);
  history_.ForEach(ConsumerSeries(name), since,
                   [&](int64_t slot, const History::Sample& sample) {
                     visit({.slot = slot,
                            .rows_per_s = sample.rows_per_s,
                            .waiting = sample.Get(kWaitingShare),
                            .wait_p50_ms = MsOfShare(sample.Get(kWaitP50)),
                            .wait_p95_ms = MsOfShare(sample.Get(kWaitP95))});
                   });
}

std::optional<ConsumerStatistics> Statistics::OfConsumer(
    const std::string& name, MonotonicTime since) const {
  MutexLock lock(&mu_);
  std::optional<ConsumerPast> past = ConsumerSince(name, since);
  if (!past) return std::nullopt;
  return std::move(past->mean);
}

std::optional<ConsumerPast> Statistics::PastOf(const std::string& name,
                                               MonotonicTime since) const {
  MutexLock lock(&mu_);
  const auto last = last_.find(ConsumerSeries(name));
  if (last == last_.end() || !last->second.begin) return std::nullopt;
  const Totals& now = last->second;
  ConsumerPast past = JudgedPast(name, since, *now.begin);
  const uint64_t steps = Grown(now.steps_at_begin, now.steps());
  // A step that the trainer waits for need not arrive.
  const bool shows = steps >= kFewSteps || past.mean.waiting >= kWaitsOnly;
  past.enough = !past.waits.empty() &&
                ((now.at >= *now.begin + kEnoughTime && shows) ||
                 (past.waits.size() >= kEnoughSamples &&
                  steps >= kEnoughSteps + std::min(now.window, steps)));
  return past;
}

ConsumerPast Statistics::JudgedPast(const std::string& name,
                                    MonotonicTime since,
                                    MonotonicTime begin) const {
  const auto past_since = [&](MonotonicTime from) {
    mu_.AssertHeld();
    from = std::max(from, begin);
    ConsumerPast past = ConsumerSince(name, from)
                            .value_or(ConsumerPast{.mean = {.name = name}});
    past.begin = from;
    return past;
  };
  ConsumerPast past = past_since(since);
  if (past.waits.empty()) return past;
  uint64_t steps = 0;
  for (const auto& [slot, taken] : past.steps) steps += taken;
  // Few look back so far, which costs ten times as much.
  if (past.MayBeOver() || steps < kManySteps) {
    const MonotonicTime newest = History::BeginOf(past.waits.rbegin()->first);
    const ConsumerPast all = past_since(std::min(since, newest - kLookBack));
    if (const auto slot = all.ComeAgainSince()) {
      past = past_since(std::min(past.begin, History::BeginOf(*slot)));
      past.come_again = true;
      return past;
    }
  }
  if (const auto slot = past.StoppedIn(kEnoughTime, kFewSteps))
    past = past_since(History::BeginOf(*slot));
  return past;
}

std::optional<ConsumerPast> Statistics::ConsumerSince(
    const std::string& name, MonotonicTime since) const {
  ConsumerPast past;
  ConsumerStatistics& sum = past.mean;
  sum.name = name;
  double samples = 0, most = 0;
  absl::flat_hash_map<uint32_t, double> waits;  // by the worker waited for
  history_.ForEach(ConsumerSeries(name), since,
                   [&](int64_t slot, const History::Sample& sample) {
                     ++samples;
                     const double waiting = sample.Get(kWaitingShare);
                     past.waits[slot] = waiting;
                     past.steps[slot] = static_cast<uint64_t>(
                         std::lround(kMostSteps * sample.Get(kStepsTaken)));
                     sum.rows_per_s += sample.rows_per_s;
                     sum.waiting += waiting;
                     sum.ready += sample.Get(kReadyShare);
                     waits[sample.other] +=
                         waiting * sample.Get(kWaitedForShare);
                     sum.queued += waiting * sample.Get(kQueued);
                     sum.others_queued += waiting * sample.Get(kOthersQueued);
                   });
  if (samples == 0) return std::nullopt;
  for (const auto& [worker, wait] : waits) {
    const std::string_view series = history_.NameOf(worker);
    if (wait <= most || series.empty()) continue;
    most = wait;
    sum.waited_for = series.substr(WorkerSeries("").size());
  }
  if (sum.waiting > 0) {
    sum.for_source = std::min(1.0, waits[0] / sum.waiting);
    sum.waited_for_share = std::min(1.0, most / sum.waiting);
    sum.queued /= sum.waiting;
    sum.others_queued /= sum.waiting;
  }
  for (double* each : {&sum.rows_per_s, &sum.waiting, &sum.ready})
    *each /= samples;
  return past;
}

void Statistics::AddWorker(const std::string& name, MonotonicTime since,
                           WorkerSlots* to) const {
  bool begun = false;
  MutexLock lock(&mu_);
  const auto last = last_.find(WorkerSeries(name));
  if (last == last_.end() || !last->second.begin) return;
  history_.ForEach(WorkerSeries(name), std::max(since, *last->second.begin),
                   [&](int64_t slot, const History::Sample& sample) {
                     begun |= sample.rows_per_s > 0 ||
                              sample.shares != History::Sample().shares;
                     if (!begun) return;
                     WorkerStatistics did;
                     did.threads = sample.other >> 1;
                     did.rows_per_s = sample.rows_per_s;
                     did.reading = sample.Get(kReading);
                     did.decoding = sample.Get(kDecoding);
                     did.for_input = sample.Get(kForInput);
                     did.for_output = sample.Get(kForOutput);
                     did.fetching = kMostFetching * sample.Get(kFetching);
                     did.sending = sample.Get(kSending);
                     did.repeated = sample.Get(kRepeated);
                     if ((sample.other & 1) != 0)
                       did.device = sample.Get(kDeviceBusy);
                     to->Add(slot, did);
                   });
  if (begun) to->AddName(name);
}

Bottleneck Statistics::Judge(const JudgedJob& job, const ConsumerPast& slowest,
                             const WorkerSlots& workers) const {
  const std::string& name = slowest.mean.waited_for;
  WorkerSlots own;
  if (workers.Has(name)) AddWorker(name, slowest.begin, &own);
  std::vector<WorkerStatistics> both;
  if (auto of = own.Mean(slowest.waits, {})) {
    of->name = name;
    both.push_back(*std::move(of));
  }
  if (auto rest = workers.Mean(slowest.waits, own)) both.push_back(*rest);
  const auto for_it = jobs_.Mean(job.name, slowest.waits, job.name_source);
  Bottleneck found = FindBottleneck(both, {slowest.mean},
                                    for_it ? &*for_it : nullptr, job.before);
  // A checkpoint, a pause or a hiccup: the cause of the wait may be over.
  if (found.limit != Limit::kTrainer && slowest.MayBeOver())
    found = {.limit = Limit::kUnknown,
             .summary = "it has waited in one stretch only, which may be over",
             .advice = "ask again while it trains"};
  return found;
}

size_t Statistics::bytes() const {
  MutexLock lock(&mu_);
  return history_.bytes();
}

}  // namespace leat::server
