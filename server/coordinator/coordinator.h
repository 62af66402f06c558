// SPDX-License-Identifier: Apache-2.0
//
// Coordinator: all decisions. Who is a member, who owns what, who lists which
// dataset, which job exists.
//
// Sans-I/O but for the Store: it reads no clock (every decision takes `now`),
// starts no thread and knows no network. What should happen outside is either
// pulled by a session (NextForWorker, NextForConsumer, after its `wake` was
// called) or done by the owner's loops: RunWrite, RunTables and RunWakes when
// `wake` of the constructor asks for it, Tick at NextDeadline.
//
// Durable changes are made one after the other by RunWrite: decide on the state
// as it is, append to the store, apply, and only then answer. A refused or
// failed write changes nothing.
//
// Losing the coordinator, or its view of the workers, must not stop consumers,
// which obey its tables. So no empty table takes the place of one with owners;
// many silent workers are not believed lost at once
// (server/membership/membership.h); and after a start with jobs in the store no
// table of theirs is published before no worker has registered for
// `lost_after`: until then consumers keep what they have.
//
// Thread safety: thread-safe. Under its lock it neither logs, nor asks the
// store, nor computes or encodes tables. Callbacks (`done`, `wake`) run outside
// the lock; they must not block, and may call the coordinator. `done`, and the
// wake of one session, run on the thread whose call caused them; the wakes of
// many sessions at once by RunWakes.
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
#include "core/mutex.h"
#include "server/coordinator/parts/config.h"
#include "server/coordinator/parts/effects.h"
#include "server/coordinator/pool_decisions.h"
#include "server/jobs/job_creation.h"
#include "server/membership/kept_shares.h"
#include "server/observe/cluster_events.h"
#include "server/observe/figures.h"
#include "server/state/types.h"
#include "server/store/store.h"

namespace leat::server {

struct Parts;

class Coordinator {
 public:
  using Done = std::function<void(absl::Status)>;
  using JobDone = JobCreation::Done;
  using Wake = std::function<void()>;

  // `store` outlives it. `instance`: random, new at each start. `wake`: there
  // is a write to run or an earlier deadline.
  Coordinator(const CoordinatorConfig& config, Store* store, uint64_t instance,
              Wake wake);
  ~Coordinator();

  // Loads the store. First call.
  absl::Status Recover();

  // --- Jobs and datasets

  // Returns a number for CancelWait; `done` runs exactly once, at the latest at
  // `deadline`, unless the wait is cancelled. Errors: see CreateJob in
  // coordinator.proto.
  uint64_t CreateJob(const JobSpec& spec, MonotonicTime deadline, Now now,
                     JobDone done, const JobCreator& by = {},
                     Relist relist = Relist::kAuto);
  void CancelWait(uint64_t wait);
  absl::StatusOr<std::shared_ptr<const JobInfo>> GetJob(
      std::string_view name) const;
  absl::StatusOr<std::shared_ptr<const JobInfo>> GetJob(
      const Digest& plan_hash) const;
  // Those that the plan began with; nullopt: it has not.
  std::optional<Decoders> DecodersOf(const Digest& plan_hash) const;
  void DeleteJob(const std::string& name, Done done);
  // By id, prefix or name. Also forgets a failed listing.
  void DeleteDataset(const std::string& key, Done done);
  // Lists a dataset again. `done` runs when that is done.
  void RefreshDataset(const std::string& key, Now now, Done done);

  // --- Indexes

  // kNotFound: no such dataset.
  absl::StatusOr<IndexBlocks> BlocksOf(std::string_view dataset_id) const;
  // Bytes from `offset` on; none: its end. kDataLoss, kNotFound: it is damaged,
  // or missing; its dataset is listed again.
  absl::StatusOr<std::string> ReadBlock(const Digest& name, uint64_t offset,
                                        Now now);
  // Compares it with its name again. `text`: why a worker cannot use it.
  absl::Status DoubtBlock(const Digest& name, std::string_view text, Now now);
  // Whether a block of the listing would be taken; it then has as much time as
  // at its beginning. kNotFound: it is not the current attempt.
  // kInvalidArgument: empty. kResourceExhausted: too large.
  absl::Status CheckBlock(const std::string& dataset_id, uint64_t request_id,
                          const IndexBlock& block, Now now);
  // Whether it is there; then it stays for a while. May wait for a disk.
  bool FindBlock(const IndexBlock& block, Now now);
  // Durable on return. kDataLoss: other bytes. Others: as BlockStore::Put.
  absl::Status PutBlock(const IndexBlock& block, std::string_view bytes,
                        Now now);
  // `done`: the listing is durable. A header that does not fit, and blocks that
  // are not there, are refused, as by RefuseUpload.
  void FinishUpload(const IndexHeader& header, Now now, const Done& done);
  absl::Status FailIndex(const std::string& dataset_id, uint64_t request_id,
                         const absl::Status& why, Now now);
  // The dataset need not be listed. kNotFound: it is not the current attempt.
  absl::Status NoteLooked(const DatasetLooked& looked, Now now);
  // The coordinator does not take the upload of this attempt. Who waits for the
  // dataset is told; after kDataLoss it is listed again first. An attempt that
  // is not the current one is nobody's.
  void RefuseUpload(const std::string& dataset_id, uint64_t request_id,
                    const absl::Status& why, Now now);

  // --- Workers

  // kInvalidArgument: a name or address that will not do. kAlreadyExists: of
  // another identity. kResourceExhausted.
  absl::StatusOr<SessionId> RegisterWorker(
      const WorkerRegistration& registration, Now now, Wake wake);
  // kAborted: the session was replaced. kNotFound: unknown.
  absl::Status Heartbeat(SessionId session, WorkerReport report,
                         const BadSampleReport& bad_samples, Now now,
                         StorageFailures failures = {});
  // The next message for it; nullopt: none now. kAborted: replaced.
  absl::StatusOr<std::optional<WorkerMessage>> NextForWorker(SessionId session);
  // `left`: the worker ended its session in good order.
  void CloseWorker(SessionId session, bool left, Now now);
  void DrainWorker(const std::string& name, bool drain, Now now, Done done);

  // --- Pools (core/cluster/pool_policy.h)

  // Max 0 forgets the bounds. kInvalidArgument: the name, or the bounds.
  // kResourceExhausted: too many pools.
  void SetPool(const std::string& name, const PoolBounds& bounds, Done done);
  // Those that have bounds, or workers that are not lost; by name.
  std::vector<PoolView> Pools(MonotonicTime now) const;
  // Returns what was decided for a pool. kInvalidArgument: the name.
  // kFailedPrecondition: it has no bounds. kUnavailable: nothing yet.
  absl::StatusOr<PoolView> DecidedPool(const std::string& name) const;
  // A number for the next two. `wake`: there may be something new to send.
  // kInvalidArgument: the name. kResourceExhausted. kUnavailable.
  absl::StatusOr<uint64_t> WatchPool(const std::string& name, Wake wake);
  // What the watcher has not been sent; nullopt: nothing now. kUnavailable.
  absl::StatusOr<std::optional<PoolView>> NextForWatcher(uint64_t watcher);
  void CloseWatcher(uint64_t watcher);

  // When the certificate that this daemon shows expires; nullopt: it has none.
  void SetCertificateExpiry(std::optional<WallTime> at);
  std::optional<WallTime> CertificateExpiry() const;

  // --- Access tokens

  // Called with every new list of those that are valid, from the call that
  // makes it; two may come in the wrong order, and their versions tell. Set
  // before Recover.
  using OnAccess = std::function<void(std::shared_ptr<const AccessTokens>)>;
  void set_on_access(OnAccess on_access);
  // kInvalidArgument: the name, or it has expired. kAlreadyExists: its id.
  // kResourceExhausted: there are kMaxAccessTokens.
  void CreateAccess(const AccessToken& token, Now now, Done done);
  // By id or by name. kNotFound; kInvalidArgument: several have the name.
  void RevokeAccess(const std::string& key, Now now, Done done);
  // Expired ones included; by id.
  std::vector<AccessToken> Access() const;
  absl::Status SetWorkerLogLevel(std::string_view name, std::string_view level);

  // --- Consumers

  absl::StatusOr<SessionId> OpenConsumer(const ConsumerOpening& opening,
                                         Now now, Wake wake);
  absl::Status ReportConsumer(SessionId session, ConsumerReport report,
                              Now now);
  // The newest assignment, if it was not taken yet; nullptr: none.
  absl::StatusOr<std::shared_ptr<const Assignment>> NextForConsumer(
      SessionId session);
  // Why its job is given up, told once; nullopt: it is not, or was told.
  std::optional<absl::Status> FailureForConsumer(SessionId session);
  void CloseConsumer(SessionId session, Now now);

  // --- Time and writes

  // Does what is due: lost workers, late waits, unused jobs, new assignments.
  void Tick(Now now);
  // When Tick has something to do, at the earliest; max(): never.
  MonotonicTime NextDeadline() const;
  // Makes one durable change. False: none waits, or another thread is at it.
  bool RunWrite(Now now);
  // Why the store has failed for good; OK: it has not. Changes are refused by
  // kUnavailable from then on: the process should end.
  absl::Status StoreFailure() const;
  // Computes and publishes the tables that are due, which may take seconds; no
  // other call waits for it. False: none is due.
  bool RunTables();
  // Wakes some sessions. False: none is to be woken.
  bool RunWakes();
  // Fails all waits and ends all sessions, and later ones, with kUnavailable.
  void Shutdown();

  // --- Events and findings

  // Returns the ring of what happened, which is thread-safe by itself.
  ClusterEvents& events() { return events_; }
  // Notes which findings came and went. To be called every few seconds: some
  // come with nothing but time.
  void CompareFindings(Now now);
  // `lifetime` nullopt: until it is unmuted. kInvalidArgument: no such code.
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
  size_t num_datasets() const;  // failed and unfinished listings included
  std::vector<ConsumerView> Consumers(const Page& page = {}) const;
  absl::StatusOr<std::vector<ShardView>> Shards(std::string_view dataset) const;
  // What READY workers did since then: those that told it.
  WorkerSlots WorkersSince(MonotonicTime since) const;
  // What limits the job, by what was done since then. May make `workers` one of
  // a longer time. kNotFound.
  absl::StatusOr<BottleneckView> BottleneckOf(const std::string& job,
                                              WorkerSlots* workers,
                                              MonotonicTime since,
                                              Now now) const;
  // In up to kMaxHistorySteps equal steps; `since`: up to an hour. kNotFound.
  absl::StatusOr<JobHistory> HistoryOf(const std::string& job, Duration since,
                                       Now now) const;
  const Figures& figures() const { return figures_; }
  const Store& store() const { return *store_; }
  const std::string& cluster() const { return config_.cluster; }
  // For tests: the published table of a dataset; nullptr: none.
  std::shared_ptr<const Assignment> AssignmentOf(
      const std::string& dataset_id, DecoderClass decoder_class,
      const Digest& decoders = {}) const;
  // For tests of what calls cost: members looked at under the lock so far.
  uint64_t member_visits() const;

 private:
  void NoteBlock(const Digest& name, const absl::Status& why, bool lists,
                 Now now) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckArrived(const IndexHeader& header, Now now)
      ABSL_LOCKS_EXCLUDED(mu_);
  void CollectBlocks(Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DecidePools(Now now) ABSL_LOCKS_EXCLUDED(mu_, pools_mu_);
  // Tells owners what others keep of their shards. False: nothing changed.
  bool TellShares() ABSL_LOCKS_EXCLUDED(mu_);

  // Constant after construction, or synchronise themselves.
  const CoordinatorConfig config_;
  Store* const store_;
  const uint64_t instance_;
  const Wake wake_;
  Figures figures_;
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
