// SPDX-License-Identifier: Apache-2.0
#include "worker/job/job_table.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "core/cluster/fault.h"
#include "core/log.h"
#include "core/pipeline/graph.h"
#include "core/plan/checked_job.h"
#include "core/status.h"
#include "core/thread.h"
#include "worker/job/index_opener.h"

namespace leat::worker {
namespace {

// Applies to requests to the coordinator. Storage has made its own tries.
bool IsWorthAnotherTry(const absl::Status& status) {
  return !FaultOf(status).has_value() &&
         (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status));
}

// Runs `body` on so many threads at a time, this one among them, or on fewer if
// the system has no more.
void WithThreads(size_t count, const std::function<void()>& body) {
  std::vector<std::thread> others;
  while (others.size() + 1 < count) {
    std::thread thread;
    if (!StartThread("opens", body, &thread).ok()) break;
    others.push_back(std::move(thread));
  }
  body();
  for (std::thread& thread : others) thread.join();
}

}  // namespace

JobTable::JobTable(JobTableOptions options, JobFetcher* fetcher,
                   const RuntimeContext* context)
    : options_(std::move(options)),
      fetcher_(fetcher),
      index_cache_(std::make_shared<IndexCache>(options_.index_cache, fetcher)),
      context_(context),
      queue_(options_.max_waiting) {
  for (int i = 0; i < options_.threads && started_.ok(); ++i) {
    std::thread thread;
    started_ = StartThread(
        "jobs", [this] { Work(); }, &thread);
    if (started_.ok()) threads_.push_back(std::move(thread));
  }
}

JobTable::~JobTable() {
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    stopping_changed_.NotifyAll();
  }
  index_cache_->Stop();
  queue_.Close();
  for (std::thread& thread : threads_) thread.join();
}

void JobTable::Get(const std::string& plan_hash, Epilogue epilogue,
                   Callback done) {
  const Key key(plan_hash, epilogue);
  Runtime known;
  absl::Status refused;
  {
    MutexLock lock(&mu_);
    const auto it =
        std::find_if(jobs_.begin(), jobs_.end(),
                     [&](const auto& job) { return job.first == key; });
    if (it != jobs_.end()) {
      jobs_.splice(jobs_.begin(), jobs_, it);
      known = it->second;
    } else if (stopping_) {
      refused = Cancelled("the worker stops");
    } else if (num_waiting_ >= options_.max_waiting) {
      refused = ResourceExhausted("{} consumers wait for their jobs: the limit",
                                  num_waiting_);
    } else {
      std::vector<Callback>& waiting = waiting_[key];
      waiting.push_back(std::move(done));
      ++num_waiting_;
      // The queue has room for as many keys as callbacks may wait.
      if (waiting.size() == 1) queue_.TryPush(Key(key));
      return;
    }
  }
  if (known != nullptr) return done(std::move(known));
  done(refused);
}

JobTable::SourcePtr JobTable::FindReading(const Digest& dataset) {
  MutexLock lock(&mu_);
  for (const auto& [key, runtime] : jobs_)
    for (const auto& source : runtime->sources())
      if (source->records().dataset_key() == dataset)
        return {runtime, source.get()};
  return nullptr;
}

std::vector<JobTable::SourcePtr> JobTable::ReadingOf(
    const std::string& dataset_id) {
  std::map<Digest, SourcePtr> sources;
  MutexLock lock(&mu_);
  for (const auto& [key, runtime] : jobs_)
    for (const auto& source : runtime->sources())
      if (source->dataset().id == dataset_id)
        sources.emplace(source->records().dataset_key(),
                        SourcePtr(runtime, source.get()));
  std::vector<SourcePtr> found;
  for (auto& [key, source] : sources) found.push_back(std::move(source));
  return found;
}

void JobTable::Work() {
  while (true) {
    std::optional<Key> key = queue_.Pop(MonotonicTime::max());
    if (!key) return;
    const absl::StatusOr<Runtime> runtime = Load(*key);
    std::vector<Callback> waiting;
    {
      MutexLock lock(&mu_);
      waiting = std::move(waiting_[*key]);
      waiting_.erase(*key);
      num_waiting_ -= waiting.size();
      if (runtime.ok()) {
        jobs_.emplace_front(*key, *runtime);
        if (jobs_.size() > options_.max_jobs) jobs_.pop_back();
      }
    }
    for (const Callback& done : waiting) done(runtime);
  }
}

bool JobTable::Pause(Duration duration) {
  const MonotonicTime until = Clock::Real().Now() + duration;
  MutexLock lock(&mu_);
  while (!stopping_ && stopping_changed_.WaitUntil(&mu_, until)) {
  }
  return !stopping_;
}

absl::StatusOr<JobTable::Runtime> JobTable::Load(const Key& key) {
  const MonotonicTime deadline = Clock::Real().Now() + options_.load_timeout;
  Duration backoff = options_.first_backoff;
  while (true) {
    absl::StatusOr<Runtime> runtime = LoadOnce(key);
    if (runtime.ok()) {
      LOG_INFO("job.loaded job={} samples={} epilogue={}",
               (*runtime)->job().spec.name, (*runtime)->plan().num_samples(),
               Name(key.second));
      return runtime;
    }
    if (!IsWorthAnotherTry(runtime.status()) ||
        Clock::Real().Now() + backoff > deadline) {
      LOG_WARN("job.not_loaded error=\"{}\"", Message(runtime.status()));
      return runtime;
    }
    if (!Pause(backoff)) return Cancelled("the worker stops");
    backoff = std::min(backoff * 2, options_.max_backoff);
  }
}

absl::StatusOr<JobTable::Runtime> JobTable::LoadOnce(const Key& key) {
  const auto& [plan_hash, epilogue] = key;
  ASSIGN_OR_RETURN(JobInfo job, fetcher_->FetchJob(plan_hash));
  if (!std::equal(job.plan_hash.begin(), job.plan_hash.end(), plan_hash.begin(),
                  plan_hash.end(), [](uint8_t a, char b) {
                    return a == static_cast<uint8_t>(b);
                  }))
    return Internal("the coordinator answered with job {} of another plan hash",
                    job.spec.name);
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckJob(job.spec, job.datasets));
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<const Source>> sources,
                   OpenAll(job, checked));
  return JobRuntime::Create(std::move(job), std::move(sources), context_,
                            epilogue);
}

// Most of the time goes to waits for the coordinator, a few for each source.
// Sources that read the same are opened once.
absl::StatusOr<std::vector<std::shared_ptr<const Source>>> JobTable::OpenAll(
    const JobInfo& job, const CheckedJob& checked) {
  const size_t count = job.datasets.size();
  std::map<SourceKey, size_t> firsts;  // of those that read the same
  std::vector<size_t> first_of(count), to_open;
  for (size_t i = 0; i < count; ++i) {
    const CheckedGraph& graph = checked.sources[i];
    const auto [first, is_new] =
        firsts.try_emplace({job.datasets[i].fingerprint,
                            CanonicalText(graph.graph.nodes[graph.reader])},
                           i);
    first_of[i] = first->second;
    if (is_new) to_open.push_back(i);
  }
  std::vector<std::shared_ptr<const Source>> sources(count);
  std::vector<absl::Status> errors(count);
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto open = [&] {
    for (size_t i = next++; i < to_open.size() && !failed; i = next++) {
      const size_t number = to_open[i];
      const CheckedGraph& graph = checked.sources[number];
      auto source =
          OpenIndex(job.datasets[number], graph.graph.nodes[graph.reader]);
      if (source.ok()) {
        sources[number] = *std::move(source);
        continue;
      }
      errors[number] = source.status();
      failed = true;
    }
  };
  WithThreads(std::min(to_open.size(), options_.opens), open);
  for (size_t i = 0; i < count; ++i) {
    if (!errors[i].ok())
      return IsMixture(job.spec)
                 ? Annotate(errors[i], fmt::format("source \"{}\"",
                                                   job.spec.sources[i].name))
                 : errors[i];
    sources[i] = sources[first_of[i]];
  }
  return sources;
}

absl::StatusOr<std::shared_ptr<const Source>> JobTable::OpenIndex(
    const DatasetInfo& dataset, const Node& reader) {
  SourceKey key(dataset.fingerprint, CanonicalText(reader));
  {
    MutexLock lock(&mu_);
    const auto it = indexes_.find(key);
    if (it != indexes_.end())
      if (std::shared_ptr<const Source> source = it->second.lock())
        return source;
  }
  std::shared_ptr<const Source> base;
  if (dataset.base != nullptr) {
    ASSIGN_OR_RETURN(base, OpenIndex(*dataset.base, reader));
  }
  const IndexOpener opener({.fetcher = fetcher_,
                            .cache = index_cache_,
                            .limits = options_.source_limits,
                            .block_timeout = options_.block_timeout},
                           [this](Duration d) { return Pause(d); });
  ASSIGN_OR_RETURN(std::shared_ptr<const Source> source,
                   opener.Open(dataset, reader, std::move(base)));
  MutexLock lock(&mu_);
  if (indexes_.size() > 16 * options_.max_jobs)
    std::erase_if(indexes_,
                  [](const auto& each) { return each.second.expired(); });
  indexes_[std::move(key)] = source;
  return source;
}

}  // namespace leat::worker
