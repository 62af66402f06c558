// SPDX-License-Identifier: Apache-2.0
#include "core/observe/bottleneck.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/format.h"

namespace leat {
namespace {

// If the trainer waits for less of its time, the trainer is the limit.
constexpr double kWaits = 0.05;
// Threads or GPUs that are busy for more than this are the limit.
constexpr double kBusyShare = 0.7;
// A wait for more than this explains why threads are not busy.
constexpr double kHeldUp = 0.3;
constexpr double kSends = 0.3;
// A larger window does not speed up answers that are queued for more than this.
constexpr double kQueued = 0.4;
// Storage refuses requests if more of them than this are repeated.
constexpr double kRepeated = 0.1;
// A straggler, or the script's source, causes more than this fraction of the
// waits; and a straggler so many times more than its fraction of the delivered
// rows.
constexpr double kMostWaits = 0.5;
constexpr double kOverItsShare = 1.6;
// Workers that made more of a job's rows than this limit it.
constexpr double kMostRows = 0.5;
// A quota of processors that is used up in more of its periods than this is
// what busy threads lack.
constexpr double kQuotaUsedUp = 0.5;
// If threads work for other jobs for more than this, a job's own figures count.
constexpr double kForOthers = 0.15;
// Without the straggler, the other workers must be occupied for less than this.
constexpr double kCouldDoAll = 0.9;

constexpr std::string_view kSendLess =
    "send less: epilogue=\"device\" leaves uint8 on the wire; or bring workers "
    "nearer";
constexpr std::string_view kOfItsTime = "% of its time";
constexpr std::string_view kOfTheirTime = "% of their time";

Figure Share(std::string what, double share, std::string_view unit) {
  return {std::move(what), 100 * share, std::string(unit)};
}

// Returns the share of time in which `others` could not have done more: their
// threads work or wait for records, their GPUs are busy, or they have rows to
// send while the worker that is waited for has some, too (`its_sending`), or
// their rows are queued on the network.
// Storage that is slow for all workers, or a network that they share, is rarely
// fair to them: the one that gets the least is waited for, and the others have
// no time. Rows of one side alone may also wait for a busy processor.
double OccupiedShare(const WorkerStatistics& others, double its_sending,
                     double queued) {
  return std::max({BusyShare(others) + others.for_input, others.device,
                   std::min(others.sending, its_sending), queued});
}

// Factors that multiply the thresholds.
struct Thresholds {
  double waits = 1, straggler = 1, busy = 1, held_up = 1, sends = 1, queued = 1;
};

class Judge {
 public:
  Judge(const std::vector<WorkerStatistics>& workers,
        const ConsumerStatistics& consumer,
        const WorkerStatistics* own = nullptr, const Thresholds& by = {})
      : workers_(workers),
        consumer_(consumer),
        own_(own),
        by_(by),
        mean_(MeanOf(workers)) {}

  // Names the source of a mixture that most of the reading is for.
  Bottleneck Verdict() const {
    Bottleneck found = Stage();
    if (found.limit != Limit::kStorage || own_ == nullptr ||
        own_->slow_source.empty())
      return found;
    found.subject = own_->slow_source;
    found.summary +=
        fmt::format("; {:.0f} % of the reading is of source \"{}\"",
                    100 * own_->slow_source_share, own_->slow_source);
    return found;
  }
  Bottleneck NoWorkers() const {
    return Make(Limit::kWorkers, "no worker serves",
                {"workers that serve", 0, ""},
                {"rows come", consumer_.rows_per_s, "rows/s"},
                "start leat-worker, or undrain one: leat undrain NAME; a "
                "private service starts its own again");
  }

 private:
  Bottleneck Stage() const {
    if (consumer_.waiting < by_.waits * kWaits) return Trainer();
    if (workers_.empty()) return NoWorkers();
    if (consumer_.for_source >= by_.straggler * kMostWaits) return Source();
    if (IsStraggler()) return Straggler();
    const double busy = by_.busy * kBusyShare, held_up = by_.held_up * kHeldUp,
                 sends = by_.sends * kSends;
    if (GpusLimit(busy)) return DecodeGpu();
    if (own_ != nullptr &&
        BusyShare(mean_) - BusyShare(*own_) > by_.busy * kForOthers)
      if (auto limit = OfItsOwnRows(held_up, sends)) return *std::move(limit);
    if (BusyShare(mean_) >= busy)
      return mean_.reading > mean_.decoding ? LocalStorage() : DecodeCpu();
    // If a network delays rows, the threads are idle. If the threads work for
    // longer than streams send, sending waits for processors.
    const bool sends_most =
        mean_.sending >= sends && mean_.sending >= by_.sends * BusyShare(mean_);
    // The downstream stage is checked first: a thread that waits for room does
    // not fetch.
    if (sends_most && mean_.for_output >= mean_.for_input) return Network();
    if (mean_.for_input >= held_up) return Storage();
    if (sends_most) return Network();
    // No figure exceeds its threshold: the largest one has to explain the
    // waits.
    if (GpusLimit(held_up)) return DecodeGpu();
    if (BusyShare(mean_) >= held_up)
      return mean_.reading > mean_.decoding ? LocalStorage() : DecodeCpu();
    if (mean_.rows_per_s <= 0) return NothingIsAsked();
    return IsQueued() ? FullLink() : Window();
  }
  // A GPU that is busy with a few of the job's rows does not limit it while
  // threads are busy with the others; threads are not the limit while most rows
  // come from workers whose GPUs are busier.
  bool GpusLimit(double least) const {
    if (mean_.device < least) return false;
    if (own_ != nullptr && own_->rows_per_s > 0) {
      if (own_->of_gpus >= by_.busy * kMostRows) return true;
      if (BusyShare(mean_) >= least) return false;
    }
    return mean_.device >= BusyShare(mean_);
  }
  bool IsQueued() const { return consumer_.queued >= by_.queued * kQueued; }
  // Judges by the waits of the job's next row. nullopt: it mostly waits for
  // nothing.
  std::optional<Bottleneck> OfItsOwnRows(double held_up, double sends) const {
    const WorkerStatistics& own = *own_;
    if (own.sending >= sends &&
        own.for_output >= std::max(own.for_input, own.for_thread))
      return Network();
    if (own.for_input >= held_up && own.for_input >= own.for_thread)
      return Storage();
    if (own.for_thread < held_up)
      return IsQueued() ? std::optional(FullLink()) : std::nullopt;
    return own.reading > own.decoding ? LocalStorage() : DecodeCpu();
  }
  Bottleneck Make(Limit limit, std::string summary, Figure second, Figure third,
                  std::string advice, std::string subject = "") const {
    return {limit,
            std::move(subject),
            std::move(summary),
            {Waits(), std::move(second), std::move(third)},
            std::move(advice)};
  }
  Figure Waits() const {
    return Share("the trainer waits for batches", consumer_.waiting,
                 kOfItsTime);
  }
  Figure Threads() const {
    return Share("decode threads work", BusyShare(mean_), kOfTheirTime);
  }

  // Among equal workers, one that is last by a little also causes nearly all of
  // the waits. A straggler is a worker without which the others would deliver
  // as much, so that the advice, to drain it, helps.
  bool IsStraggler() const {
    const double waited = consumer_.waited_for_share / by_.straggler;
    if (consumer_.waited_for.empty() || waited < kMostWaits) return false;
    // The fraction of all rows that come from it.
    const double share =
        mean_.rows_per_s > 0 ? WaitedFor().rows_per_s / mean_.rows_per_s : 0;
    if (waited < kOverItsShare * share) return false;
    const WorkerStatistics others = MeanOf(workers_, consumer_.waited_for);
    const double occupied =
        OccupiedShare(others, WaitedFor().sending, consumer_.others_queued) *
        by_.straggler;
    return others.threads > 0 && occupied < kBusyShare &&
           occupied < kCouldDoAll * (1 - share);
  }
  // Returns one that does nothing if that worker no longer serves.
  WorkerStatistics WaitedFor() const {
    for (const WorkerStatistics& worker : workers_)
      if (worker.name == consumer_.waited_for) return worker;
    return {};
  }

  Bottleneck Trainer() const {
    const bool stands = consumer_.rows_per_s <= 0;
    return Make(
        Limit::kTrainer,
        stands ? "the trainer takes no batches at all, and has them there"
               : "the trainer takes batches as fast as it can use them",
        Share("steps of its window are ready", consumer_.ready, "%"), Threads(),
        stands ? "nothing here: look at what the training script does instead, "
                 "for example py-spy dump"
               : "nothing here: the service keeps up; make the training step "
                 "faster",
        consumer_.name);
  }
  Bottleneck Straggler() const {
    const WorkerStatistics others = MeanOf(workers_, consumer_.waited_for);
    return Make(
        Limit::kStraggler,
        fmt::format("worker {} is waited for, and the others have time",
                    consumer_.waited_for),
        Share(fmt::format("{} caused", consumer_.waited_for),
              consumer_.waited_for_share, "% of the waits"),
        Share("the others' decode threads work", BusyShare(others),
              kOfTheirTime),
        fmt::format("look at the host of {0}, or take its shards away: leat "
                    "drain {0}",
                    consumer_.waited_for),
        consumer_.waited_for);
  }
  Bottleneck DecodeGpu() const {
    return Make(Limit::kDecodeGpu, "the GPUs of the workers are busy",
                Share("GPUs have work", mean_.device, kOfTheirTime), Threads(),
                "add GPU workers, or GPUs of a private service: leat.connect("
                "devices=); or decode less: a smaller image, or a part of it");
  }
  Bottleneck DecodeCpu() const {
    if (own_ != nullptr && own_->quota_used_up >= kQuotaUsedUp)
      return UsedUpQuota();
    return Make(
        Limit::kDecodeCpu,
        "the decode threads are busy, and their records are there",
        Share("decode threads decode and augment", mean_.decoding,
              kOfTheirTime),
        Share("decode threads wait for records", mean_.for_input, kOfTheirTime),
        "add workers, or threads if processors are free: leat-worker "
        "--threads, or leat.connect(threads=) of a private service; or decode "
        "less: fn.decode(reduce=\"auto\"), a smaller part");
  }
  Bottleneck UsedUpQuota() const {
    return Make(
        Limit::kDecodeCpu,
        "the decode threads are busy, and use up their quota of processors",
        Share("decode threads decode and augment", mean_.decoding,
              kOfTheirTime),
        Share("the quota is used up", own_->quota_used_up, "% of its periods"),
        "raise the quota: limits.cpu of the pod, --cpus of the container, "
        "CPUQuota= of the unit; more threads do not help; or decode less: "
        "fn.decode(reduce=\"auto\"), a smaller part");
  }
  bool ForOthers() const {
    return own_ != nullptr && BusyShare(mean_) - BusyShare(*own_) > kForOthers;
  }
  // The limit is reads that decode threads make themselves: local files.
  Bottleneck LocalStorage() const {
    return Make(
        Limit::kStorage, "the decode threads spend their time in reading",
        Share("decode threads read", mean_.reading, kOfTheirTime),
        Share("decode threads decode and augment", mean_.decoding,
              kOfTheirTime),
        "let the cache hold more: leat-worker --cache, or leat.connect(cache=) "
        "of a private service; or read ahead: leat-worker --read-ahead-of all");
  }
  Bottleneck Storage() const {
    const bool of_own = ForOthers();
    if (mean_.repeated > kRepeated) return RefusedReads();
    return Make(
        Limit::kStorage,
        of_own ? "its next rows wait for records, and the threads work for "
                 "other jobs"
               : "the decode threads wait for records",
        of_own ? Share("its next rows wait for records", own_->for_input,
                       "% of the time")
               : Share("decode threads wait for records", mean_.for_input,
                       kOfTheirTime),
        {"reads are under way", of_own ? own_->fetching : mean_.fetching,
         "threads, on average"},
        "keep what was read: leat-worker --disk-cache, or leat.connect("
        "disk_cache=) of a private service; or ask for more at a time: "
        "leat-worker --read-threads");
  }
  Bottleneck RefusedReads() const {
    return Make(
        Limit::kStorage,
        "the storage refuses requests, which are repeated after a pause",
        Share("decode threads wait for records", mean_.for_input, kOfTheirTime),
        Share("they repeat a failed one", mean_.repeated, "% of the requests"),
        "see what it answers: leat describe worker NAME; if it throttles, "
        "request less at a time: fewer --read-threads, or keep what was read: "
        "--disk-cache");
  }
  Bottleneck Network() const {
    return Make(
        Limit::kNetwork, "finished rows wait to be sent",
        Share("streams have rows to send", mean_.sending, kOfTheirTime),
        Share("decode threads wait for room", mean_.for_output, kOfTheirTime),
        std::string(kSendLess));
  }
  // All rows of the window fit into the buffers of a slow link.
  Bottleneck FullLink() const {
    return Make(Limit::kNetwork, "rows wait for each other on the network",
                Share("rows are queued there", consumer_.queued,
                      "% of the time until they arrive"),
                Threads(), std::string(kSendLess));
  }
  Bottleneck Window() const {
    return Make(Limit::kWindow,
                "workers are idle: rows are requested too late to arrive in "
                "time on this network",
                Threads(),
                Share("steps of its window are ready", consumer_.ready, "%"),
                "request more steps ahead: give the iterator a larger window; "
                "if rows come no faster then, the network is the limit",
                consumer_.name);
  }

  Bottleneck Source() const {
    return Make(
        Limit::kSource, "the script's own source supplies too few samples",
        Share("of these it waits for that source", consumer_.for_source, "%"),
        Threads(),
        "make the source faster, or let the workers read the data: "
        "leat.fn.readers",
        consumer_.name);
  }

  static Bottleneck NothingIsAsked() {
    return {.limit = Limit::kUnknown,
            .summary =
                "the trainer waits, and the workers make no row: what "
                "it asks for does not reach them",
            .advice =
                "look whether the trainer's host reaches the workers: "
                "leat doctor there"};
  }

  const std::vector<WorkerStatistics>& workers_;
  const ConsumerStatistics& consumer_;
  const WorkerStatistics* const own_;
  const Thresholds by_;
  const WorkerStatistics mean_;
};

}  // namespace

// Consumers of one training wait for each other, so only the one that waits
// most for batches is judged.
//
// The previous verdict stays if it would be reached with one of the thresholds
// a little nearer or farther.
Bottleneck FindBottleneck(const std::vector<WorkerStatistics>& workers,
                          const std::vector<ConsumerStatistics>& consumers,
                          const WorkerStatistics* own, Limit before) {
  if (consumers.empty())
    return {.limit = Limit::kUnknown,
            .summary = "no consumer has pulled batches of it",
            .advice = "ask again while it trains"};
  const ConsumerStatistics& slowest = *std::max_element(
      consumers.begin(), consumers.end(),
      [](const auto& a, const auto& b) { return a.waiting < b.waiting; });
  Bottleneck found = Judge(workers, slowest, own).Verdict();
  if (found.limit == before || before == Limit::kUnknown) return found;
  for (double Thresholds::*const one :
       {&Thresholds::waits, &Thresholds::straggler, &Thresholds::busy,
        &Thresholds::held_up, &Thresholds::sends, &Thresholds::queued}) {
    for (const double factor : {1 - kVerdictMargin, 1 + kVerdictMargin}) {
      Thresholds by;
      by.*one = factor;
      Bottleneck again = Judge(workers, slowest, own, by).Verdict();
      if (again.limit == before) return again;
    }
  }
  return found;
}

Bottleneck NoWorkers(const ConsumerStatistics& consumer) {
  return Judge({}, consumer).NoWorkers();
}

}  // namespace leat
