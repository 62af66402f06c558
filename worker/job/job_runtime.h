// SPDX-License-Identifier: Apache-2.0
//
// JobRuntime: a job made ready to compute: its plan, source and kernel, and
// what happens to samples that cannot be computed.
//
// A sample is bad if its bytes are: corrupt, no image, over a limit. One that
// is not there, or is another one by now, as far as this worker sees, is bad if
// the row's ask says that others do not see it either (RowOf::absent). Whatever
// else goes wrong is tried again, then fails the row under every policy, so
// that the consumer asks another worker. Errors of rows say whose trouble they
// are (core/cluster/blame.h), and of which sample. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/finish.h"
#include "core/plan/job.h"
#include "core/plan/plan.h"
#include "worker/cache/disk_forms.h"
#include "worker/cache/sample_cache.h"
#include "worker/cache/seek_file.h"
#include "worker/compute/row_kernel.h"
#include "worker/compute/row_work.h"
#include "worker/job/bad_samples.h"
#include "worker/job/ownership.h"
#include "worker/job/peer_records.h"
#include "worker/job/stop_signal.h"
#include "worker/job/storage_troubles.h"
#include "worker/source/source.h"

namespace leat::worker {

// Which datasets are read ahead of the decode threads.
enum class ReadAheadOf {
  kRemote,  // those whose reads may wait for a network
  kAll,
};

class IdleWork;

// What all jobs of a worker share. Outlives the runtimes.
struct RuntimeContext {
  RowKernelFactory kernels;
  SampleCache* cache = nullptr;
  BadSamples* bad_samples = nullptr;
  const Ownership* ownership = nullptr;
  int read_attempts = 3;
  StopSignal* stop = nullptr;  // ends the pauses between them; null: nothing
  StorageTroubles* troubles = nullptr;  // null: none are kept
  ReadAheadOf read_ahead_of = ReadAheadOf::kRemote;
  NearbyLimits nearby;  // of records that are read ahead by one request
  const DiskForms* disk = nullptr;  // null: nothing is kept by record on a disk
  // Reads the seek indexes beside datasets; without functions, none is read.
  FormCodec seek_indexes = {};
  const AllowedReads* allowed = nullptr;  // for seek files; null: everything
  RecordAsker* asker = nullptr;  // null: no other worker is asked for records
  FormCodec forms = {};          // that are taken from others
  IdleWork* idle = nullptr;      // null: only rows make forms
};

// What caches know a dataset by: its records, and what its reader takes of
// them.
Digest DatasetKeyOf(const Digest& fingerprint, const Node& reader);

// Whether the error makes a sample bad, where these are known to be absent.
bool IsBad(const absl::Status& status, std::span<const uint64_t> absent);

class RowPartner;
class SampleForms;

class JobRuntime final : public RowWork,
                         public std::enable_shared_from_this<JobRuntime> {
 public:
  // Checks the job again, as if nobody had. `finish`: what the rows are: the
  // fields, or their heads.
  // kFailedPrecondition: the job does not fit the source. kUnimplemented: not
  // with this worker's hardware.
  static absl::StatusOr<std::shared_ptr<const JobRuntime>> Create(
      JobInfo job, std::shared_ptr<const Source> source,
      const RuntimeContext* context, Finish finish = Finish::kWorker);

  const JobInfo& job() const { return job_; }
  const Plan& plan() const { return plan_; }
  const Source& source() const { return *source_; }
  // The job is being read while what is returned lives: caches keep its dataset
  // (worker/source/disk_cache/dataset_uses.h).
  std::shared_ptr<const void> BeginUse() const;
  // An iterator that says this reads the job while what is returned lives.
  std::unique_ptr<FormHorizon::Reading> BeginReading(
      const IteratorEnd& end) const;
  // A sample as rows have it: from cache or storage. Errors: as of rows.
  absl::StatusOr<StoredSample> ReadSample(uint64_t sample) const {
    return Read(sample, nullptr);
  }

  // What caches, and other workers, know its dataset by.
  const Digest& dataset_key() const { return dataset_key_; }
  // A record as this worker keeps it, with its form; storage is not read.
  // nullopt: it is not kept.
  std::optional<StoredSample> FindKept(uint64_t record) const;
  // Takes a sample's record from a peer, and keeps it with its form. False:
  // there is nothing to be taken there, or no room for it.
  bool TakeFrom(const Peer& peer, uint64_t sample) const;

  const std::string& job_key() const override { return job_.spec.name; }
  std::span<const size_t> field_bytes() const override { return field_bytes_; }
  uint64_t steps_per_epoch() const override { return plan_.steps_per_epoch(); }
  absl::Status Compute(
      const RowOf& row, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const override;
  const Digest* sharing_key() const override {
    return brought_ ? nullptr : &sharing_key_;
  }
  RowKey KeyOf(const RowOf& row) const override;
  bool reads_ahead() const override { return reads_ahead_; }
  RowRecords ReadAhead(const RowOf& row) const override;
  std::vector<RowRecords> ReadTogether(
      std::span<const RowOf> rows) const override;
  size_t CountTogether(std::span<const uint64_t> samples) const override;
  bool staged(bool on_device) const override {
    return kernel_->staged(on_device);
  }
  size_t most_rows() const override { return kernel_->most_rows(); }
  bool CanBegin(int device) const override { return kernel_->CanBegin(device); }
  std::unique_ptr<GroupStage> BeginGroup(
      const GroupOutputs& outputs) const override;

  // That samples are brought if the job's reader wants that, that those which
  // are absent are the job's, and that each row of a step holds the sample that
  // the plan puts there. A lone row may hold any sample: it is how single
  // samples are looked at. kInvalidArgument: names the first row that does not.
  absl::Status CheckAsk(const RowAsk& ask) const;

 private:
  friend class RowPartner;
  friend class StagedRows;
  JobRuntime(JobInfo job, const Digest& key, Finish finish,
             std::shared_ptr<const Source> source, SampleCache::DatasetPtr kept,
             DiskForms::DatasetPtr on_disk,
             std::shared_ptr<const SeekFile> seek_file,
             std::unique_ptr<PeerRecords> peers, std::string root,
             const RuntimeContext* context, const BatchSchema& rows,
             std::vector<ValueType> types, bool brought,
             std::unique_ptr<RowKernel> kernel, bool reads_ahead);
  // Returns the sample as it was brought, or from storage if that is null.
  absl::StatusOr<StoredSample> Stored(uint64_t sample,
                                      const StoredSample* brought,
                                      const RowRecords* records) const;
  // What was brought of a row's record together with others.
  struct AtHand {
    // nullopt: caches keep it, or nothing came.
    std::optional<absl::StatusOr<StoredSample>> stored;
    bool of_peer = false;  // and not of storage
    bool asked = false;    // peers were, so that they are not once more
    bool good() const { return stored.has_value() && stored->ok(); }
    bool bad() const { return stored.has_value() && !stored->ok(); }
  };
  // From `records` if it is there, which may be null; else from cache or
  // storage. `at_hand`: is taken if it is good; may be null.
  absl::StatusOr<StoredSample> Read(uint64_t sample, const RowRecords* records,
                                    AtHand* at_hand = nullptr) const;
  // Of rows whose records one request brings: of what caches lack what peers
  // give, and what that request brings of the rest. By row.
  std::vector<AtHand> Bring(std::span<const RowOf> rows) const;
  // Those at the indices `missing`. Returns what storage is to bring of them:
  // what peers did not give, and what lies between if that makes it one
  // request.
  std::vector<size_t> BringOfPeers(std::span<const RowOf> rows,
                                   std::span<const size_t> missing,
                                   PeerBatch* batch,
                                   std::vector<AtHand>* at_hand) const;
  // Whether Read finds it without storage.
  bool IsKept(uint64_t record) const;
  // Puts a form that a disk has of the record into the sample, if any.
  void ReadFormOf(uint64_t record, StoredSample* sample) const;
  // What is at hand, if it is good; else from the disk cache, from another
  // worker, or from storage.
  absl::StatusOr<StoredSample> ReadMissing(uint64_t sample,
                                           AtHand* at_hand) const;
  // For a row of the epoch that decodes the sample, which was read so.
  SampleForms FormsOf(uint64_t sample, uint64_t epoch,
                      const StoredSample& stored) const;
  // With tries, unless the dataset is known to be in trouble.
  absl::StatusOr<StoredSample> ReadStored(uint64_t sample) const;
  absl::Status Admit() const;
  void Ended(const absl::Status& status, uint64_t sample) const;
  bool Pause(Duration duration) const;
  // Returns the kernel's error with the record's name and its blame.
  absl::Status OfRecord(uint64_t sample, const absl::Status& status) const;
  // The row that is this one's partner.
  RowOf PartnerOf(RowOf row) const;
  // The epoch of a row's random draws.
  uint64_t PassOf(const RowOf& row) const {
    return plan_.PassOf(row.epoch, row.step, row.row);
  }
  bool IsPadding(const RowOf& row) const {
    return plan_.IsPadding(row.epoch, row.step, row.row);
  }
  absl::Status Try(const RowOf& row, RowPartner* partner, ThreadState* state,
                   std::span<const std::span<std::byte>> outputs) const;
  absl::Status Replace(RowOf row, const absl::Status& reason,
                       RowPartner* partner, ThreadState* state,
                       std::span<const std::span<std::byte>> outputs) const;
  static absl::Status Exhausted(uint64_t sample, const absl::Status& reason);
  // A row's error for good: every worker would say so.
  static absl::Status Final(const absl::Status& status);
  void Report(uint64_t sample, const absl::Status& reason) const;

  const JobInfo job_;
  const Digest dataset_key_;
  const std::shared_ptr<const Source> source_;
  const SampleCache::DatasetPtr kept_;
  const DiskForms::DatasetPtr on_disk_;              // null: nothing of it is
  const std::shared_ptr<const SeekFile> seek_file_;  // null: there is none
  const std::unique_ptr<PeerRecords> peers_;         // null: none are asked
  const StorageTroubles::Dataset dataset_;           // as troubles know it
  const RuntimeContext* const context_;
  const std::unique_ptr<RowKernel> kernel_;
  const Plan plan_;
  const bool has_valid_field_;
  const bool has_partners_;
  const bool depends_on_step_;  // rows, beside their samples
  const Digest sharing_key_;
  const bool reads_ahead_;
  const std::vector<ValueType> types_;  // of a record's fields
  const bool brought_;  // by consumers; otherwise they are stored
  std::vector<size_t> field_bytes_;
};

}  // namespace leat::worker
