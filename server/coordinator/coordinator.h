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
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "server/coordinator/config.h"
#include "server/jobs/bad_sample_ledger.h"
#include "server/jobs/damaged_indexes.h"
#include "server/jobs/dataset_looks.h"
#include "server/jobs/indexing.h"
#include "server/jobs/job_creations.h"
#include "server/membership/assignments.h"
#include "server/membership/consumer_table.h"
#include "server/membership/kept_shares.h"
#include "server/membership/membership.h"
#include "server/membership/unreached.h"
#include "server/observe/cluster_events.h"
#include "server/observe/figures.h"
#include "server/observe/finding_watch.h"
#include "server/observe/reports.h"
#include "server/state/state.h"
#include "server/state/types.h"
#include "server/store/store.h"

namespace leat::server {

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
  // What CheckUpload refuses, and blocks that are not there, are refused, as by
  // RefuseUpload.
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
                         std::vector<StorageTrouble> troubles = {});
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
  void set_on_access(OnAccess on_access) { on_access_ = std::move(on_access); }
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
  class Effects;  // callbacks to run when the lock is gone
  struct WorkerSession;
  struct Write;
  struct PoolSeen;
  struct PoolsSeen;

  // --- Life cycle (coordinator.cc)
  void Enqueue(Write write, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteStart(Now now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ProlongHold(Now now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireMembers(Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MembersChanged(Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeLater(SessionId id, WokenSession* session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Announce(const TableKey& key, const std::vector<std::string>& workers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellOwned(const std::string& dataset,
                 const std::vector<std::string>& workers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // --- Events (events.cc)
  void Seen(Now now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { latest_ = now.wall; }
  // An event at the latest moment that is known. Whoever watches is woken when
  // the lock is gone.
  void Happened(std::string type, std::string severity,
                std::vector<std::string> subjects, std::string message,
                Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TablesHappened(const std::set<std::string>& datasets, size_t workers,
                      Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string DatasetName(const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EnqueueMute(Event event, std::string what, Done done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // --- Decoders (decoders.cc)
  TableKey KeyOf(const JobInfo& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SettleSoon(Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Digest> ToSettle(DecoderClass decoder_class) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<Decoders> MostThreads(DecoderClass decoder_class) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SettleDecoders(Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MoveTables(const Digest& plan_hash, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SnapDecoders(Snapshot* to) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UseTable(const JobInfo& job, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReleaseTable(const TableKey& key, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  MonotonicTime DeadlineLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Jobs and indexes (jobs.cc, indexes.cc)
  void BeginJob(uint64_t creation, Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteListed(const IndexHeader& header, const std::string& before, Now now,
                  Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WriteJob(uint64_t creation, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void JobWritten(uint64_t creation, const std::string& name, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Answer(uint64_t creation, JobCreation::Answer answer, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `key`: as it was while the job was there.
  void JobGone(const JobInfo& job, const TableKey& key, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishIndexing(const std::string& reader_id, const absl::Status& status,
                      Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AskToRefresh(const std::string& reader_id, const Node& reader,
                    const std::string& reader_text, Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveUp(const std::vector<Indexing::GivenUp>& given_up, Now now,
              Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AssignListings(Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropUnwanted(const std::string& reader_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerLate(Now now, Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Blocks (blocks.cc)
  // Whether the header is one of the current attempt, and its index fits.
  absl::Status CheckUpload(const IndexHeader& header) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteBlock(const Digest& name, const absl::Status& why, bool lists,
                 Now now) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckArrived(const IndexHeader& header, Now now)
      ABSL_LOCKS_EXCLUDED(mu_);
  void CollectBlocks(Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- What nobody uses any more (expiry.cc)
  bool InUse(const JobInfo& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Maintain(Now now, Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MaintainJobs(Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MaintainDatasets(Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireJob(const std::string& name, MonotonicTime used, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireDataset(const std::string& id, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteUsed(std::vector<std::string> jobs, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Access tokens (access.cc)
  absl::StatusOr<std::string> FindAccess(const std::string& key) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EnqueueAccess(
      std::function<absl::StatusOr<std::optional<Event>>()> decide,
      std::string what, Now now, Done done) ABSL_LOCKS_EXCLUDED(mu_);
  void PublishAccess(Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Pools (pools.cc)
  void DecidePools(Now now) ABSL_LOCKS_EXCLUDED(mu_, pools_mu_);
  PoolsSeen SeePools(const std::vector<PoolView>& others) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<PoolView> PoolsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<std::vector<PoolJob>> PoolJobs(const PoolsSeen& seen,
                                               const PoolSeen& pool,
                                               MonotonicTime since,
                                               MonotonicTime now) const
      ABSL_LOCKS_EXCLUDED(mu_);
  void PublishPools(const PoolsSeen& seen, Now now, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeWatchers(const std::string& pool, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  PoolView ViewOfPool(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- What workers keep (shares.cc)
  void NoteKept(const std::string& worker, const v1::WorkerStats& stats,
                Now now, Effects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TellShares() ABSL_LOCKS_EXCLUDED(mu_);

  // --- Sessions and views (sessions.cc, views.cc)
  void NoteBeat(const Membership::Worker& worker, bool was_lost,
                bool was_troubled, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteBadSamples(const BadSampleReport& report, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountBadSamples(const CountedBadSamples& counted, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // By job, JobView::shared_fraction. Borrows the workers' reports.
  using SharedParts = std::map<std::string_view, double>;
  SharedParts SharedPartsOfJobs() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  JobView ViewOf(const JobRecord& job, const SharedParts& shared) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WorkersMayCome(MonotonicTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SnapWorkers(Now, Snapshot* to) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SnapJobs(Now now, Snapshot* to) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SnapChanged(Snapshot* to) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SnapStore(Snapshot* to) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const CoordinatorConfig config_;
  Store* const store_;  // synchronises itself
  const uint64_t instance_;
  const Wake wake_;
  OnAccess on_access_;

  // Noted without mu_.
  Figures figures_;
  ClusterEvents events_;  // synchronises itself; noted in the order of mu_
  // Synchronises itself. Shared with the messages that are encoded from it.
  const std::shared_ptr<KeptShares> kept_ = std::make_shared<KeptShares>();

  // Held while tables are computed. Taken before mu_.
  Mutex tables_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  uint64_t table_version_ ABSL_GUARDED_BY(tables_mu_) = 0;

  // Held while pools are decided on. Taken before mu_.
  Mutex pools_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  std::map<std::string, PoolPolicy> policies_ ABSL_GUARDED_BY(pools_mu_);

  mutable Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_);
  Membership membership_ ABSL_GUARDED_BY(mu_);
  Indexing indexing_ ABSL_GUARDED_BY(mu_);
  Assignments assignments_ ABSL_GUARDED_BY(mu_);
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;  // sessions and waits
  std::map<SessionId, WorkerSession> worker_sessions_ ABSL_GUARDED_BY(mu_);
  ConsumerTable consumers_ ABSL_GUARDED_BY(mu_);
  UnreachedTable unreached_ ABSL_GUARDED_BY(mu_);
  std::deque<SessionId> to_wake_ ABSL_GUARDED_BY(mu_);  // each once

  JobCreations creations_ ABSL_GUARDED_BY(mu_);
  LastLooks looks_ ABSL_GUARDED_BY(mu_);
  DamagedIndexes damaged_ ABSL_GUARDED_BY(mu_);
  RefreshWaits refreshes_ ABSL_GUARDED_BY(mu_);
  std::deque<Write> writes_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status last_write_ ABSL_GUARDED_BY(mu_);  // of the store
  BadSampleLedger bad_samples_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const AccessTokens> access_
      ABSL_GUARDED_BY(mu_);  // version 0: before Recover
  // When one of them expires; max(): none does.
  MonotonicTime access_due_ ABSL_GUARDED_BY(mu_) = MonotonicTime::max();
  std::optional<WallTime> certificate_expiry_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, PublishedPool> pools_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, PoolWatcher> pool_watchers_ ABSL_GUARDED_BY(mu_);
  uint64_t pool_version_ ABSL_GUARDED_BY(mu_) = 0;
  // When pools are decided on; max(): there are none.
  MonotonicTime pools_at_ ABSL_GUARDED_BY(mu_) = MonotonicTime::max();
  MonotonicTime pools_held_until_ ABSL_GUARDED_BY(mu_) = MonotonicTime::min();
  bool workers_came_ ABSL_GUARDED_BY(mu_) = false;  // one of them has
  FindingWatch finding_watch_ ABSL_GUARDED_BY(mu_);
  WallTime latest_ ABSL_GUARDED_BY(mu_){};  // what events are stamped with
  std::optional<MonotonicTime> started_at_ ABSL_GUARDED_BY(mu_);
  std::optional<MonotonicTime> update_at_ ABSL_GUARDED_BY(mu_);
  bool all_tables_due_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<MonotonicTime> settle_at_ ABSL_GUARDED_BY(mu_);
  // Were loaded and have not begun: they wait as long as tables do.
  std::set<Digest> loaded_unsettled_ ABSL_GUARDED_BY(mu_);
  // After a start: until then no table of before is published; max(): no worker
  // has come yet.
  bool recovered_jobs_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<MonotonicTime> tables_held_until_ ABSL_GUARDED_BY(mu_);
  MonotonicTime first_worker_at_ ABSL_GUARDED_BY(mu_);  // in the hold
  MonotonicTime maintain_at_ ABSL_GUARDED_BY(mu_);
  MonotonicTime collect_at_ ABSL_GUARDED_BY(mu_) = MonotonicTime::min();
  // When jobs were last in use, and since when datasets have no jobs.
  std::map<std::string, MonotonicTime> used_at_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, MonotonicTime> unused_since_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::server
