// SPDX-License-Identifier: Apache-2.0
//
// Coordinator makes all decisions: which workers are members, which worker owns
// which shard, which worker lists which dataset, which jobs exist.
//
// Sans-I/O except for the Store: it reads no clock (every decision takes
// `now`), starts no thread and knows no network. Actions outside it are either
// pulled by a session (NextForWorker, NextForConsumer, after its `wake` was
// called) or done by the owner's loops: RunTransaction, RunTables and RunWakes
// when the constructor's `wake` asks for it, Tick at NextDeadline.
//
// RunTransaction makes durable changes one after the other: it decides on the
// state as it is, appends to the store, applies, and only then answers. A
// refused or failed transaction changes nothing.
//
// Losing the coordinator, or its view of the workers, must not stop consumers,
// which obey its tables. Therefore an empty table never replaces one with
// owners; many silent workers are not declared lost at once
// (server/membership/membership.h); and after a start with jobs in the store,
// their tables are published only once no worker has registered for
// `lost_after`: until then consumers keep the tables that they have.
//
// Thread-safe. Under its lock it does not log, call the store, or compute or
// encode tables. Callbacks (`done`, `wake`) run outside the lock; they must not
// block, and may call the coordinator. `done`, and the wake of one session, run
// on the thread whose call caused them; RunWakes runs the wakes of many
// sessions at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cluster/certificate_term.h"
#include "core/mutex.h"
#include "server/coordinator/parts/config.h"
#include "server/coordinator/parts/deferred_actions.h"
#include "server/coordinator/pool_decisions.h"
#include "server/jobs/job_creation.h"
#include "server/membership/kept_shares.h"
#include "server/observe/cluster_events.h"
#include "server/observe/statistics.h"
#include "server/state/types.h"
#include "server/store/store.h"

namespace leat::server {

struct Parts;

class Coordinator {
 public:
  using Done = std::function<void(absl::Status)>;
  using JobDone = JobCreation::Done;
  using Wake = std::function<void()>;

  // `store` outlives it. `instance`: random, new at each start. `wake` is
  // called when there is a transaction to run or an earlier deadline.
  Coordinator(const CoordinatorConfig& config, Store* store, uint64_t instance,
              Wake wake);
  ~Coordinator();

  // Loads the store. Must be called first.
  absl::Status Recover();

  // --- Jobs and datasets

  // Returns a number for CancelWait; `done` runs exactly once, at the latest at
  // `deadline`, unless the wait is cancelled. `tell` runs before it, any number
  // of times, and gets what the call waits for. Errors: see CreateJob in
  // coordinator.proto.
  uint64_t CreateJob(const JobSpec& spec, MonotonicTime deadline, Now now,
                     JobDone done, const JobCreator& by = {},
                     Relist relist = Relist::kAuto,
                     JobCreation::Tell tell = {});
  void CancelWait(uint64_t wait);
  absl::StatusOr<std::shared_ptr<const JobInfo>> GetJob(
      std::string_view name) const;
  absl::StatusOr<std::shared_ptr<const JobInfo>> GetJob(
      const Digest& plan_hash) const;
  // Returns the decoders that the plan began with; nullopt: it has not begun.
  std::optional<Decoders> DecodersOf(const Digest& plan_hash) const;
  void DeleteJob(const std::string& name, Done done);
  // By ID, prefix or name. Also forgets a failed listing.
  void DeleteDataset(const std::string& key, Done done);
  // Lists a dataset again, and then calls `done`.
  void RefreshDataset(const std::string& key, Now now, Done done);

  // --- Indexes

  // kNotFound: no such dataset.
  absl::StatusOr<IndexBlocks> BlocksOf(std::string_view dataset_id) const;
  // Returns bytes from `offset` on; none at the end. kDataLoss, kNotFound: the
  // block is damaged, or missing; its dataset is listed again.
  absl::StatusOr<std::string> ReadBlock(const Digest& name, uint64_t offset,
                                        Now now);
  // Compares the block with its name again. `text`: why a worker cannot use it.
  absl::Status DoubtBlock(const Digest& name, std::string_view text, Now now);
  // Checks that a block of the listing would be accepted; if so, the listing's
  // timeout starts anew. kNotFound: not the current attempt. kInvalidArgument:
  // empty. kResourceExhausted: too large.
  absl::Status CheckBlock(const std::string& dataset_id, uint64_t request_id,
                          const IndexBlock& block, Now now);
  // Returns whether the block is there; then it stays for a while. May wait for
  // a disk.
  bool FindBlock(const IndexBlock& block, Now now);
  // Durable on return. kDataLoss: other bytes. Others: as BlockStore::Put.
  absl::Status PutBlock(const IndexBlock& block, std::string_view bytes,
                        Now now);
  // Calls `done` when the listing is durable. A header that does not fit, and
  // missing blocks, are refused as by RefuseUpload.
  void FinishUpload(const IndexHeader& header, Now now, const Done& done);
  absl::Status FailIndex(const std::string& dataset_id, uint64_t request_id,
                         const absl::Status& why, Now now);
  // Reports that the dataset need not be listed. kNotFound: not the current
  // attempt.
  absl::Status NoteLooked(const DatasetLooked& looked, Now now);
  // Reports how far a listing is. kNotFound: not the current attempt.
  // kInvalidArgument: a part of its trail that is not there, or has no place.
  absl::Status NoteProgress(const IndexProgress& progress, Now now);
  // Refuses the upload of this attempt. The callers that wait for the dataset
  // get the error; after kDataLoss it is listed again first. Ignored if the
  // attempt is not the current one.
  void RefuseUpload(const std::string& dataset_id, uint64_t request_id,
                    const absl::Status& why, Now now);

  // --- Workers

  // kInvalidArgument: an invalid name or address. kAlreadyExists: the name
  // belongs to another identity. kResourceExhausted.
  absl::StatusOr<SessionId> RegisterWorker(
      const WorkerRegistration& registration, Now now, Wake wake);
  // kAborted: the session was replaced. kNotFound: unknown.
  absl::Status Heartbeat(SessionId session, WorkerReport report,
                         const BadSampleReport& bad_samples, Now now,
                         StorageFailures failures = {});
  // Returns its next message; nullopt: none now. kAborted: replaced.
  absl::StatusOr<std::optional<WorkerMessage>> NextForWorker(SessionId session);
  // `left`: the worker ended its session in good order.
  void CloseWorker(SessionId session, bool left, Now now);
  void DrainWorker(const std::string& name, bool drain, Now now, Done done);

  // --- Pools (core/cluster/pool_policy.h)

  // Max 0 removes the bounds. kInvalidArgument: the name, or the bounds.
  // kResourceExhausted: too many pools.
  void SetPool(const std::string& name, const PoolBounds& bounds, Done done);
  // Returns the pools with bounds, or with workers that are not lost; by name.
  std::vector<PoolView> Pools(MonotonicTime now) const;
  // Returns the decision for a pool. kInvalidArgument: the name.
  // kFailedPrecondition: it has no bounds. kUnavailable: no decision yet.
  absl::StatusOr<PoolView> DecidedPool(const std::string& name) const;
  // Returns a number for the next two calls. `wake`: there may be something new
  // to send. kInvalidArgument: the name. kResourceExhausted. kUnavailable.
  absl::StatusOr<uint64_t> WatchPool(const std::string& name, Wake wake);
  // Returns what the watcher has not been sent; nullopt: nothing now.
  // kUnavailable.
  absl::StatusOr<std::optional<PoolView>> NextForWatcher(uint64_t watcher);
  void CloseWatcher(uint64_t watcher);

  // The term of this daemon's certificate; nullopt: it has none.
  void SetCertificate(std::optional<CertificateTerm> term);
  std::optional<CertificateTerm> certificate() const;
  // Whether this daemon uses its files with certificates and the token as they
  // are now; otherwise a finding says why not.
  void SetReloaded(const absl::Status& status);

  // --- Access tokens

  // Called with each new list of valid tokens, by the call that changes it; two
  // lists may arrive in the wrong order, which their versions show. Set before
  // Recover.
  using OnAccess = std::function<void(std::shared_ptr<const AccessTokens>)>;
  void set_on_access(OnAccess on_access);
  // kInvalidArgument: the name, or it has expired. kAlreadyExists: its ID.
  // kResourceExhausted: there are kMaxAccessTokens.
  void CreateAccess(const AccessToken& token, Now now, Done done);
  // By ID or by name. kNotFound; kInvalidArgument: several have the name.
  void RevokeAccess(const std::string& key, Now now, Done done);
  // Includes expired tokens; sorted by ID.
  std::vector<AccessToken> Access() const;
  absl::Status SetWorkerLogLevel(std::string_view name, std::string_view level);

  // --- Consumers

  absl::StatusOr<SessionId> OpenConsumer(const ConsumerOpening& opening,
                                         Now now, Wake wake);
  absl::Status ReportConsumer(SessionId session, ConsumerReport report,
                              Now now);
  // Returns the newest assignment if it was not taken yet; otherwise nullptr.
  absl::StatusOr<std::shared_ptr<const Assignment>> NextForConsumer(
      SessionId session);
  // Informs the consumer when all workers have reported the bad samples that
  // they have met by now. A session is informed once.
  void SettleConsumer(SessionId session);
  // The news of its job that a consumer has not received yet.
  struct JobNews {
    std::optional<absl::Status> failure;  // why it was given up
    bool settled = false;                 // after the failure, if there is one
  };
  JobNews NewsForConsumer(SessionId session);
  void CloseConsumer(SessionId session, Now now);

  // --- Time and transactions

  // Does due work: lost workers, late waits, unused jobs, new assignments.
  void Tick(Now now);
  // Returns the earliest time at which Tick has work; max(): never.
  MonotonicTime NextDeadline() const;
  // Makes one durable change. Returns false if none waits, or another thread is
  // writing.
  bool RunTransaction(Now now);
  // Returns why the store has failed permanently; OK: it has not. After a
  // failure, changes are refused with kUnavailable: the process should end.
  absl::Status StoreFailure() const;
  // Computes and publishes the tables that are due, which may take seconds; no
  // other call waits for it. Returns false if none is due.
  bool RunTables();
  // Wakes some sessions. Returns false if none is to be woken.
  bool RunWakes();
  // Fails all waits and ends all sessions, and later ones, with kUnavailable.
  void Shutdown();

  // --- Events and findings

  // Returns the ring of recent events, which synchronises itself.
  ClusterEvents& events() { return events_; }
  // Records which findings appeared and disappeared. Call it every few seconds:
  // some appear only because time passes.
  void CompareFindings(Now now);
  // `lifetime` nullopt: until unmuted. kInvalidArgument: no such code.
  void MuteFinding(const std::string& code, std::optional<Duration> lifetime,
                   Now now, Done done);
  void UnmuteFinding(const std::string& code, Done done);
  std::vector<Finding> Findings(Now now) const;

  // --- Views; sorted by name

  // A page's `after` is the name of the last worker or job, or a view's `key`.
  std::vector<WorkerView> Workers(const Page& page = {}) const;
  std::vector<JobView> Jobs(const Page& page = {}) const;
  UsedJobs JobsInUse(size_t most) const;
  std::vector<DatasetView> Datasets(const Page& page = {}) const;
  size_t num_datasets() const;  // includes failed and unfinished listings
  std::vector<ConsumerView> Consumers(const Page& page = {}) const;
  absl::StatusOr<std::vector<ShardView>> Shards(std::string_view dataset) const;
  // Returns the statistics of READY workers since then, from those that report
  // them.
  WorkerSlots WorkersSince(MonotonicTime since) const;
  // Returns what limits the job, from the statistics since then. May replace
  // `workers` by statistics of a longer time. kNotFound.
  absl::StatusOr<BottleneckView> BottleneckOf(const std::string& job,
                                              WorkerSlots* workers,
                                              MonotonicTime since,
                                              Now now) const;
  // In up to kMaxHistorySteps equal steps; `since`: up to an hour. kNotFound.
  absl::StatusOr<JobHistory> HistoryOf(const std::string& job, Duration since,
                                       Now now) const;
  const Statistics& statistics() const { return statistics_; }
  const Store& store() const { return *store_; }
  const std::string& cluster() const { return config_.cluster; }
  // For tests: the published table of a dataset; nullptr: none.
  std::shared_ptr<const Assignment> AssignmentOf(
      const std::string& dataset_id, DecoderClass decoder_class,
      const Digest& decoders = {}) const;
  // For tests of the cost of calls: members visited under the lock so far.
  uint64_t member_visits() const;

 private:
  void NoteBlock(const Digest& name, const absl::Status& why, bool lists,
                 Now now) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckArrived(const IndexHeader& header, Now now)
      ABSL_LOCKS_EXCLUDED(mu_);
  void CollectBlocks(Now now, DeferredActions* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DecidePools(Now now) ABSL_LOCKS_EXCLUDED(mu_, pools_mu_);
  // Sends owners the cached fractions of their peers. Returns false if nothing
  // changed.
  bool TellShares() ABSL_LOCKS_EXCLUDED(mu_);

  // These are constant after construction, or synchronise themselves.
  const CoordinatorConfig config_;
  Store* const store_;
  const uint64_t instance_;
  const Wake wake_;
  Statistics statistics_;
  ClusterEvents events_;                    // noted in the order of mu_
  const std::shared_ptr<KeptShares> kept_;  // shared with messages

  // Held while tables are computed. Taken before mu_.
  Mutex tables_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  uint64_t table_version_ ABSL_GUARDED_BY(tables_mu_) = 0;

  // Held while pools are decided on. Taken before mu_.
  Mutex pools_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  PoolDecisions pool_decisions_ ABSL_GUARDED_BY(pools_mu_);

  mutable Mutex mu_;
  const std::unique_ptr<Parts> parts_ ABSL_PT_GUARDED_BY(mu_);
};

}  // namespace leat::server
