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
  Group unused;
  const Later later = Find(dataset, reader, &unused);
  ASSIGN_OR_RETURN(const SourcePtr source, later->Opened());
  return SourcePtr(later, source.get());
}

std::vector<std::shared_ptr<const LaterSource>> SourceTable::OpenLater(
    std::span<const Wanted> wanted) {
  std::vector<Later> later;
  Group group;
  for (const auto& [dataset, reader] : wanted) {
    later.push_back(Find(*dataset, *reader, &group));
    if (group.sources.size() == kSourcesOfGroup)
      OpenAhead(std::exchange(group, {}));
  }
  if (!group.sources.empty()) OpenAhead(std::move(group));
  return later;
}

void SourceTable::OpenAhead(Group group) {
  if (ahead_.TryPush(std::move(group))) StartThread();
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
                                     const Node& reader, Group* group) {
  Key key(dataset.fingerprint, CanonicalText(reader));
  MutexLock lock(&mu_);
  const auto known = known_.find(key);
  if (known != known_.end())
    if (Later later = known->second.lock()) return later;
  if (known_.size() > options_.max_known)
    std::erase_if(known_,
                  [](const auto& each) { return each.second.expired(); });
  const auto its = std::make_shared<const DatasetInfo>(dataset);
  auto later = std::make_shared<const LaterSource>(
      LaterSource::Known{.name = dataset.name,
                         .fingerprint = dataset.fingerprint,
                         .root = RootOf(reader),
                         .samples = dataset.shards.num_samples(),
                         .records = NumRecords(dataset, reader)},
      options_.later, [table = shared_from_this(), its, reader] {
        return table->OpenIndex(*its, reader);
      });
  known_[std::move(key)] = later;
  group->sources.push_back(later);
  if (its->base != nullptr) group->datasets.push_back(its->base);
  group->datasets.push_back(its);
  return later;
}

absl::StatusOr<SourceTable::SourcePtr> SourceTable::OpenIndex(
    const DatasetInfo& dataset, const Node& reader) {
  SourcePtr base;
  if (dataset.base != nullptr) {
    ASSIGN_OR_RETURN(base, Open(*dataset.base, reader));
  }
  std::optional<FetchedBlocks> index;
  {
    MutexLock lock(&mu_);
    if (auto fetched = fetched_.extract(dataset.id))
      index = std::move(fetched.mapped());
  }
  const IndexOpener opener({.fetcher = fetcher_,
                            .cache = index_cache_,
                            .limits = options_.limits,
                            .block_timeout = options_.block_timeout},
                           [this](Duration d) { return stop_.Pause(d); });
  return opener.Open(dataset, reader, std::move(base), std::move(index));
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
  while (const auto group = ahead_.Pop(MonotonicTime::max())) {
    Fetch(*group);
    for (const auto& source : group->sources) {
      const Later later = source.lock();
      // The rows that need the source tell the error.
      if (later != nullptr && !stop_.stopped()) later->Opened().IgnoreError();
    }
    MutexLock lock(&mu_);
    for (const auto& dataset : group->datasets) fetched_.erase(dataset->id);
  }
}

// Openings fetch the indexes that do not come here, and tell errors.
void SourceTable::Fetch(const Group& group) {
  std::vector<const DatasetInfo*> datasets;
  for (const auto& dataset : group.datasets) datasets.push_back(dataset.get());
  std::span<const DatasetInfo* const> rest = datasets;
  while (!rest.empty() && !stop_.stopped()) {
    auto indexes = fetcher_->FetchBlocks(rest);
    if (indexes.size() == 1 && !indexes.front().ok()) return;
    MutexLock lock(&mu_);
    for (size_t i = 0; i < indexes.size(); ++i)
      if (indexes[i].ok()) fetched_[rest[i]->id] = *std::move(indexes[i]);
    rest = rest.subspan(indexes.size());
  }
}

}  // namespace leat::worker
