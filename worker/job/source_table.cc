// SPDX-License-Identifier: Apache-2.0
#include "worker/job/source_table.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "core/log.h"
#include "core/pipeline/graph.h"
#include "core/plan/arrangement.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::worker {
namespace {

// Returns Source::num_records of a dataset that is not open.
uint64_t NumRecords(const DatasetInfo& dataset, const Node& reader) {
  const bool has_its_own =
      dataset.base == nullptr || PacksRows(dataset.arrangement);
  if (!has_its_own) return NumRecords(*dataset.base, reader);
  const auto repeat = reader.args.find("repeat");
  const auto* const times = repeat == reader.args.end()
                                ? nullptr
                                : std::get_if<int64_t>(&repeat->second);
  return dataset.shards.num_samples() /
         static_cast<uint64_t>(times == nullptr || *times < 1 ? 1 : *times);
}

}  // namespace

absl::StatusOr<SourceTable::SourcePtr> SourceTable::Open(
    const DatasetInfo& dataset, const Node& reader) {
  bool is_new = false;
  const Later later = Find(dataset, reader, &is_new);
  ASSIGN_OR_RETURN(const SourcePtr source, later->Opened());
  return SourcePtr(later, source.get());
}

std::shared_ptr<const LaterSource> SourceTable::OpenLater(
    const DatasetInfo& dataset, const Node& reader) {
  bool is_new = false;
  Later later = Find(dataset, reader, &is_new);
  // One that finds no place is opened by its rows.
  if (is_new && ahead_.TryPush(std::weak_ptr(later))) StartThread();
  return later;
}

void SourceTable::AwaitAttempts(
    std::span<const std::shared_ptr<const LaterSource>> sources) const {
  const MonotonicTime deadline = Clock::Real().Now() + options_.patience;
  for (const auto& source : sources) source->AwaitAttempt(deadline);
}

void SourceTable::Stop() {
  stop_.Stop();
  ahead_.Close();
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mu_);
    stopped_ = true;
    threads = std::exchange(threads_, {});
  }
  for (std::thread& thread : threads) thread.join();
}

SourceTable::Later SourceTable::Find(const DatasetInfo& dataset,
                                     const Node& reader, bool* is_new) {
  Key key(dataset.fingerprint, CanonicalText(reader));
  MutexLock lock(&mu_);
  const auto known = known_.find(key);
  if (known != known_.end())
    if (Later later = known->second.lock()) return later;
  if (known_.size() > options_.max_known)
    std::erase_if(known_,
                  [](const auto& each) { return each.second.expired(); });
  auto later = std::make_shared<const LaterSource>(
      LaterSource::Known{.name = dataset.name,
                         .fingerprint = dataset.fingerprint,
                         .root = RootOf(reader),
                         .samples = dataset.shards.num_samples(),
                         .records = NumRecords(dataset, reader)},
      options_.later, [table = shared_from_this(), dataset, reader] {
        return table->OpenIndex(dataset, reader);
      });
  known_[std::move(key)] = later;
  *is_new = true;
  return later;
}

absl::StatusOr<SourceTable::SourcePtr> SourceTable::OpenIndex(
    const DatasetInfo& dataset, const Node& reader) {
  SourcePtr base;
  if (dataset.base != nullptr) {
    ASSIGN_OR_RETURN(base, Open(*dataset.base, reader));
  }
  const IndexOpener opener({.fetcher = fetcher_,
                            .cache = index_cache_,
                            .limits = options_.limits,
                            .block_timeout = options_.block_timeout},
                           [this](Duration d) { return stop_.Pause(d); });
  return opener.Open(dataset, reader, std::move(base));
}

void SourceTable::StartThread() {
  MutexLock lock(&mu_);
  if (stopped_ || threads_.size() >= options_.opens) return;
  std::thread thread;
  const absl::Status started = leat::StartThread(
      "opens", [this] { Work(); }, &thread);
  if (started.ok())
    threads_.push_back(std::move(thread));
  else if (threads_.empty())  // rows open their sources
    LOG_WARN("source.not_ahead error=\"{}\"", Message(started));
}

void SourceTable::Work() {
  while (const auto next = ahead_.Pop(MonotonicTime::max())) {
    const Later later = next->lock();
    if (later == nullptr) continue;
    // The rows that need the source tell the error.
    if (!stop_.stopped()) later->Opened().IgnoreError();
  }
}

}  // namespace leat::worker
