// SPDX-License-Identifier: Apache-2.0
#include "worker/job/job_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/cluster/fault.h"
#include "core/log.h"
#include "core/pipeline/graph.h"
#include "core/plan/checked_job.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::worker {
namespace {

// Applies to requests to the coordinator. Storage has made its own tries.
bool IsWorthAnotherTry(const absl::Status& status) {
  return !FaultOf(status).has_value() &&
         (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status));
}

}  // namespace

JobTable::JobTable(JobTableOptions options, JobFetcher* fetcher,
                   const RuntimeContext* context)
    : options_(std::move(options)),
      fetcher_(fetcher),
      index_cache_(std::make_shared<IndexCache>(options_.index_cache, fetcher)),
      sources_(std::make_shared<SourceTable>(
          SourceTable::Options{.max_known = 16 * options_.max_jobs,
                               .opens = options_.opens,
                               .block_timeout = options_.block_timeout,
                               .later = {.first_pause = options_.first_backoff,
                                         .max_pause = options_.max_backoff,
                                         .failures = context->failures},
                               .limits = options_.source_limits},
          fetcher, index_cache_)),
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
  sources_->Stop();
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

std::map<std::string, std::vector<uint64_t>, std::less<>>
JobTable::StorageTimes() {
  std::vector<Runtime> mixtures;
  {
    MutexLock lock(&mu_);
    for (const auto& [key, runtime] : jobs_)
      if (runtime->sources().size() > 1) mixtures.push_back(runtime);
  }
  std::map<std::string, std::vector<uint64_t>, std::less<>> times;
  for (const Runtime& job : mixtures) {
    std::vector<uint64_t>& of = times[job->job_key()];
    of.resize(std::max(of.size(), job->sources().size()));
    for (size_t i = 0; i < job->sources().size(); ++i)
      of[i] += job->sources()[i]->records().storage_ns();
  }
  return times;
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
                   SourcesOf(job, checked));
  return JobRuntime::Create(std::move(job), std::move(sources), context_,
                            epilogue);
}

absl::StatusOr<std::vector<std::shared_ptr<const Source>>> JobTable::SourcesOf(
    const JobInfo& job, const CheckedJob& checked) {
  std::vector<SourceTable::Wanted> wanted;
  for (size_t i = 0; i < job.datasets.size(); ++i) {
    const CheckedGraph& graph = checked.sources[i];
    wanted.push_back({&job.datasets[i], &graph.graph.nodes[graph.reader]});
  }
  if (!IsMixture(job.spec)) {
    ASSIGN_OR_RETURN(std::shared_ptr<const Source> source,
                     sources_->Open(job.datasets[0], *wanted[0].reader));
    return std::vector{std::move(source)};
  }
  const auto later = sources_->OpenLater(wanted);
  sources_->AwaitAttempts(later);
  return std::vector<std::shared_ptr<const Source>>(later.begin(), later.end());
}

}  // namespace leat::worker
