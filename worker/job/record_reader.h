// SPDX-License-Identifier: Apache-2.0
//
// RecordReader: the records of a job's dataset, wherever they lie, and the
// forms of their JPEG files.
//
// A record is looked for in a chain of sources, in this order:
//
//   supplied    the client sent the sample with its request
//   read ahead  a thread read it before a decode thread took the row
//   memory      the sample cache; of several threads that miss a record one
//               asks the sources below, and the others wait for it
//     Prefetched  peers, or one request to storage, brought it with others
//     OnDisk      the disk cache
//     AtPeers     another worker keeps it
//     InStorage   where the dataset lies
//
// Those below memory have one signature: a source finds the record; or the
// record is missing there, and the next source is asked; or the source fails,
// which ends the search. Above it every row passes, so what is at hand is
// returned without a move.
//
// Errors of records say where their cause lies (core/cluster/fault.h), and of
// which sample. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/job.h"
#include "worker/cache/disk_forms.h"
#include "worker/cache/sample_cache.h"
#include "worker/cache/sample_forms.h"
#include "worker/cache/seek_file.h"
#include "worker/compute/row_work.h"
#include "worker/job/peer_records.h"
#include "worker/job/runtime_context.h"
#include "worker/job/storage_reader.h"
#include "worker/source/source.h"

namespace leat::worker {

// What caches know a dataset by: its records, and what its reader takes of
// them.
Digest DatasetKeyOf(const Digest& fingerprint, const Node& reader);

// Where the records of a job's dataset may be.
struct RecordPlaces {
  // Opens the caches, the seek file and the peers of the job's dataset.
  // `types`: of a record's fields. `supplied`: clients send the samples.
  static RecordPlaces Of(const JobInfo& job, const Node& reader,
                         std::shared_ptr<const Source> source,
                         std::vector<ValueType> types, bool supplied,
                         const RuntimeContext& context);

  Digest key{};  // DatasetKeyOf
  std::string root;
  std::vector<ValueType> types;
  std::shared_ptr<const Source> source;
  SampleCache::DatasetPtr memory;
  DiskForms::DatasetPtr disk;                 // null: nothing of it is
  std::shared_ptr<const SeekFile> seek_file;  // null: there is none
  std::unique_ptr<PeerRecords> peers;         // null: none are asked
};

class RecordReader {
 public:
  // What was brought of a record together with others.
  struct Prefetch {
    // nullopt: caches keep it, or nothing came.
    std::optional<absl::StatusOr<StoredSample>> stored;
    bool of_peer = false;      // and not of storage
    bool peers_asked = false;  // so that they are not once more
    bool good() const { return stored.has_value() && stored->ok(); }
    bool bad() const { return stored.has_value() && !stored->ok(); }
  };
  // A sample, and what the first sources of the chain look at.
  struct Wanted {
    uint64_t sample = 0;
    const StoredSample* supplied = nullptr;  // null: the client sent none
    const RowRecords* read_ahead = nullptr;  // null: nothing was
    Prefetch* prefetch = nullptr;  // is taken if it is good; null: none
  };

  // `job` and `context` outlive this.
  RecordReader(const JobInfo& job, RecordPlaces places,
               const RuntimeContext* context);

  // The sample as rows have it. Errors: as of rows.
  absl::StatusOr<StoredSample> Read(const Wanted& wanted) const;
  // Reads the samples of rows, whose records one request brings.
  std::vector<RowRecords> ReadTogether(std::span<const RowOf> rows) const;
  // How many of the first of these samples one request brings: 1 and more.
  size_t CountTogether(std::span<const uint64_t> samples) const {
    return source().Nearby(samples, context_->nearby);
  }

  // A record as this worker keeps it, with its form; storage is not read.
  // nullopt: it is not kept.
  std::optional<StoredSample> FindKept(uint64_t record) const;
  // Takes a sample's record from a peer, and keeps it with its form. False:
  // there is nothing to be taken there, or no room for it.
  bool TakeFrom(const Peer& peer, uint64_t sample) const;
  // The forms for a row of the epoch that decodes the sample, which was read
  // so.
  SampleForms FormsOf(uint64_t sample, uint64_t epoch,
                      const StoredSample& stored) const;
  // Returns an error of the sample's with the record's name and its fault.
  absl::Status OfRecord(uint64_t sample, const absl::Status& status) const;

  const Source& source() const { return *places_.source; }
  const SampleCache::DatasetPtr& in_memory() const { return places_.memory; }
  // What caches, and other workers, know the dataset by.
  const Digest& dataset_key() const { return places_.key; }

 private:
  // What a source says of a record.
  enum class Answer {
    kFound,    // it is in `record`
    kMissing,  // the next source is tried; `record` is as it was
    kFailed,   // `record` has the error
  };
  using Record = absl::StatusOr<StoredSample>;
  using LookIn = Answer (RecordReader::*)(const Wanted& wanted,
                                          Record* record) const;
  static const LookIn kBelowMemory[4];

  // REQUIRES: the client sent the sample. Compares it with the reader's types.
  Record Supplied(const Wanted& wanted) const;
  Record InMemory(const Wanted& wanted) const;
  // Asks the sources below memory in their order, until one does not miss the
  // record; the last one never does.
  Record BelowMemory(const Wanted& wanted) const;
  Answer Prefetched(const Wanted& wanted, Record* record) const;
  Answer OnDisk(const Wanted& wanted, Record* record) const;
  Answer AtPeers(const Wanted& wanted, Record* record) const;
  Answer InStorage(const Wanted& wanted, Record* record) const;

  // Brings what caches lack of rows whose records one request brings: what
  // peers give, and what that request brings of the rest. By row.
  std::vector<Prefetch> Bring(std::span<const RowOf> rows) const;
  // Those at the indices `missing`. Returns what storage is to bring of them:
  // what peers did not give, and what lies between if that makes it one
  // request.
  std::vector<size_t> BringOfPeers(std::span<const RowOf> rows,
                                   std::span<const size_t> missing,
                                   PeerBatch* batch,
                                   std::vector<Prefetch>* prefetches) const;
  // Whether Read finds it without peers and storage.
  bool IsKept(uint64_t record) const;
  // Puts a form that a disk has of the record into the sample, if any.
  void ReadFormOf(uint64_t record, StoredSample* sample) const;
  uint32_t ShardOf(uint64_t sample) const {
    return job_.dataset.shards.ShardOf(sample);
  }

  const JobInfo& job_;
  const RuntimeContext* const context_;
  const RecordPlaces places_;
  const StorageReader storage_;
};

}  // namespace leat::worker
