// SPDX-License-Identifier: Apache-2.0
#include "worker/job/storage_failures.h"

#include <algorithm>
#include <utility>

#include "core/cluster/fault.h"
#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"
#include "core/utf8.h"
#include "worker/source/faults/fault_rules.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxErrorBytes = 512;

double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string Shown(const Digest& fingerprint) {
  return ToHex(fingerprint).substr(0, 12);
}

// Returns a sample far from the last one: bad samples on a disk are close
// together.
uint64_t Another(uint64_t sample, uint64_t num_samples) {
  const uint64_t step = num_samples / 16 + 1;
  return (sample % num_samples + step) % num_samples;
}

}  // namespace

StorageFailures::~StorageFailures() {
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status StorageFailures::Start() {
  return StartThread(
      "probe", [this] { Run(); }, &thread_);
}

absl::Status StorageFailures::Admit(const Dataset& dataset) {
  if (failing_.load() == 0) return absl::OkStatus();
  const MonotonicTime now = clock_.Now();
  MutexLock lock(&mu_);
  const auto it = entries_.find(dataset);
  if (it == entries_.end() || !Failing(it->second)) return absl::OkStatus();
  Entry& entry = it->second;
  if (now >= entry.next_read) {
    entry.next_read = now + kInterval;
    return absl::OkStatus();
  }
  return WithFault(
      Unavailable("{}: this worker cannot read it for {:.1f} s: {}",
                  dataset.root, Seconds(now - entry.first), entry.error),
      Fault::kWorker);
}

void StorageFailures::Ended(const Dataset& dataset, const absl::Status& status,
                            const std::shared_ptr<const Source>& source,
                            uint64_t sample) {
  const Fault fault = FaultOf(status).value_or(Fault::kSample);
  if (fault == Fault::kTransient || dataset.root.empty()) return;
  if (fault == Fault::kWorker) return Fail(dataset, status, source, sample);
  if (failing_.load() == 0) return;
  Entry ended;
  {
    MutexLock lock(&mu_);
    const auto it = entries_.find(dataset);
    if (it == entries_.end()) return;
    ended = std::move(it->second);
    entries_.erase(it);
    failing_ = entries_.size();
  }
  if (Failing(ended))
    LOG_INFO("storage.works root={} dataset={} after_s={:.1f}", dataset.root,
             Shown(dataset.fingerprint), Seconds(clock_.Now() - ended.first));
}

void StorageFailures::Fail(const Dataset& dataset, const absl::Status& status,
                           const std::shared_ptr<const Source>& source,
                           uint64_t sample) {
  const MonotonicTime now = clock_.Now();
  // It may quote what a server has answered.
  const std::string error = ToUtf8(Message(status), kMaxErrorBytes);
  bool begins = false;
  {
    MutexLock lock(&mu_);
    auto it = entries_.find(dataset);
    if (it == entries_.end()) {
      if (entries_.size() >= kMaxDatasets) return;
      it = entries_.emplace(dataset, Entry()).first;
      it->second.first = it->second.last = now;
      it->second.next_read = it->second.next_probe = now + kInterval;
      failing_ = entries_.size();
      changed_.NotifyAll();
    }
    Entry& entry = it->second;
    const bool before = Failing(entry);
    entry.last = now;
    entry.error = error;
    entry.source = source;
    entry.sample = sample;
    begins = !before && Failing(entry);
  }
  if (begins)
    LOG_WARN("storage.failure root={} dataset={} error=\"{}\"", dataset.root,
             Shown(dataset.fingerprint), error);
}

std::vector<StorageFailures::Failure> StorageFailures::Lasting() const {
  const MonotonicTime now = clock_.Now();
  std::vector<Failure> failures;
  MutexLock lock(&mu_);
  for (const auto& [dataset, entry] : entries_) {  // by root
    if (!Failing(entry)) continue;
    if (failures.empty() || failures.back().root != dataset.root)
      failures.push_back({.root = dataset.root});
    Failure& failure = failures.back();
    failure.fingerprints.push_back(dataset.fingerprint);
    if (failure.fingerprints.size() > 1 && now - entry.first <= failure.lasting)
      continue;
    failure.error = entry.error;
    failure.lasting = now - entry.first;
  }
  return failures;
}

void StorageFailures::Run() {
  while (true) {
    const MonotonicTime next = Probe();
    MutexLock lock(&mu_);
    if (stopping_) return;
    if (next != MonotonicTime::max())
      changed_.WaitUntil(&mu_, next);
    else if (entries_.empty())
      changed_.Wait(&mu_);
  }
}

MonotonicTime StorageFailures::Probe() {
  struct Due {
    Dataset dataset;
    std::shared_ptr<const Source> source;
    uint64_t sample;
  };
  std::vector<Due> due;
  MonotonicTime next = MonotonicTime::max();
  {
    const MonotonicTime now = clock_.Now();
    MutexLock lock(&mu_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      Entry& entry = it->second;
      if (now >= entry.next_probe) {
        entry.next_probe = now + kInterval;
        std::shared_ptr<const Source> source = entry.source.lock();
        if (source == nullptr) {  // it is not read any more
          it = entries_.erase(it);
          failing_ = entries_.size();
          continue;
        }
        due.push_back({it->first, std::move(source), entry.sample});
      }
      next = std::min(next, entry.next_probe);
      ++it;
    }
  }
  for (const Due& each : due) {
    const uint64_t sample = Another(each.sample, each.source->num_samples());
    Ended(each.dataset, Judged(each.source->Read(sample).status()), each.source,
          sample);
  }
  return next;
}

}  // namespace leat::worker
