// SPDX-License-Identifier: Apache-2.0
//
// RecordReader: finds the records of one dataset of a job, wherever they are,
// and the forms of their images. Samples have the job's numbers.
//
// A record is looked for in a chain of sources, in this order:
//
//   supplied    the client sent the sample with its request
//   read ahead  a thread read it before a decode thread took the row
//   memory      the sample cache; of several threads that miss a record one
//               asks the sources below, and the others wait for it
//     Prefetched  peers, or one request to storage, sent it with others
//     OnDisk      the disk cache
//     AtPeers     another worker keeps it
//     InStorage   the storage of the dataset
//
// The sources below memory have one signature. A source finds the record; or
// the record is missing there, and the next source is asked; or the source
// fails, which ends the search. Every row passes the sources above, so a record
// found there is returned without a move.
//
// Errors of records say where their cause lies (core/cluster/fault.h), and in
// which sample. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/job.h"
#include "worker/cache/disk_forms.h"
#include "worker/cache/later_seek_file.h"
#include "worker/cache/sample_cache.h"
#include "worker/cache/sample_forms.h"
#include "worker/compute/row_work.h"
#include "worker/job/peer_records.h"
#include "worker/job/runtime_context.h"
#include "worker/job/storage_reader.h"
#include "worker/source/source.h"

namespace leat::worker {

// Returns the key under which caches know a dataset: its records, and the parts
// that its reader takes of them.
Digest DatasetKeyOf(const Digest& fingerprint, const Node& reader);

// The sources that may have the records of a dataset.
struct RecordPlaces {
  // Opens the caches and the peers of a dataset, without a look at its folder.
  // `job`: its name, for messages. `first`: the job's number of the first
  // sample. `types`: those of a record's fields. `supplied`: clients send the
  // samples.
  static RecordPlaces Of(std::string_view job, const DatasetInfo& dataset,
                         uint64_t first, const Node& reader,
                         std::shared_ptr<const Source> source,
                         std::vector<ValueType> types, bool supplied,
                         const RuntimeContext& context);

  Digest key{};  // DatasetKeyOf
  std::string root;
  std::vector<ValueType> types;
  std::shared_ptr<const Source> source;  // with the job's numbers
  std::shared_ptr<const Source> own;     // with the dataset's
  SampleCache::DatasetPtr memory;
  DiskForms::DatasetPtr disk;                      // nullptr: nothing of it is
  std::unique_ptr<const LaterSeekFile> seek_file;  // nullptr: none is used
  std::unique_ptr<PeerRecords> peers;              // nullptr: none are asked
};

class RecordReader {
 public:
  // The result of reading a record together with others.
  struct Prefetch {
    // nullopt: caches keep it, or nothing came.
    std::optional<absl::StatusOr<StoredSample>> stored;
    bool of_peer = false;      // and not from storage
    bool peers_asked = false;  // so they are not asked again
    bool good() const { return stored.has_value() && stored->ok(); }
    bool bad() const { return stored.has_value() && !stored->ok(); }
  };
  // A sample, and what the first sources of the chain look at.
  struct Wanted {
    uint64_t sample = 0;
    // The number of its record; is set before the sources below memory are
    // asked.
    uint64_t record = Source::kNoRecord;
    const StoredSample* supplied = nullptr;  // nullptr: the client sent none
    const RowRecords* read_ahead = nullptr;  // nullptr: nothing was
    Prefetch* prefetch = nullptr;  // is taken if it is good; nullptr: none
  };

  // `plan_hash`: the job's. `first`: as RecordPlaces::Of. The objects that are
  // referred to outlive this.
  RecordReader(const Digest& plan_hash, const DatasetInfo& dataset,
               uint64_t first, RecordPlaces places,
               const RuntimeContext* context);

  // Returns the sample in the form that rows use. Errors: as of rows.
  absl::StatusOr<StoredSample> Read(const Wanted& wanted) const;
  // Reads the samples of rows whose records one request reads.
  std::vector<RowRecords> ReadTogether(std::span<const RowOf> rows) const;
  // Returns how many of the first of these samples one request reads: 1 or
  // more.
  size_t CountTogether(std::span<const uint64_t> samples) const {
    return source().Nearby(samples, context_->nearby);
  }

  // Returns a record that this worker keeps, with its form, without reading
  // storage; nullopt if it is not kept.
  std::optional<StoredSample> FindKept(uint64_t record) const;
  // Takes a sample's record from a peer, and keeps it with its form. Returns
  // false if the peer gives none, or there is no room for it.
  bool TakeFrom(const Peer& peer, uint64_t sample) const;
  // Returns the forms for a row of the epoch that decodes the sample, which was
  // read as `stored`.
  SampleForms FormsOf(uint64_t sample, uint64_t epoch,
                      const StoredSample& stored) const;
  // Returns an error of the sample with the record's name and its fault.
  absl::Status OfRecord(uint64_t sample, const absl::Status& status) const;

  // The time that storage has taken for reads.
  uint64_t storage_ns() const { return storage_.spent_ns(); }
  const Source& source() const { return *places_.source; }
  const SampleCache::DatasetPtr& in_memory() const { return places_.memory; }
  // Returns the key under which caches, and other workers, know the dataset.
  const Digest& dataset_key() const { return places_.key; }

 private:
  // A source's answer about a record.
  enum class Answer {
    kFound,    // it is in `record`
    kMissing,  // the next source is tried; `record` is unchanged
    kFailed,   // `record` has the error
  };
  using Record = absl::StatusOr<StoredSample>;
  using LookIn = Answer (RecordReader::*)(const Wanted& wanted,
                                          Record* record) const;
  static const LookIn kBelowMemory[4];

  // Returns the client's sample, compared with the reader's types. REQUIRES:
  // the client sent it.
  Record Supplied(const Wanted& wanted) const;
  Record InMemory(const Wanted& wanted) const;
  // Asks the sources below memory in their order, until one does not miss the
  // record; the last one never does.
  Record BelowMemory(const Wanted& wanted) const;
  Answer Prefetched(const Wanted& wanted, Record* record) const;
  Answer OnDisk(const Wanted& wanted, Record* record) const;
  Answer AtPeers(const Wanted& wanted, Record* record) const;
  Answer InStorage(const Wanted& wanted, Record* record) const;

  // Fetches the records that caches lack, for rows whose records one request
  // reads: from peers, and the rest by that request. Returned by row.
  std::vector<Prefetch> Bring(std::span<const RowOf> rows) const;
  // Fetches those of `records`, one per row, at the indices `missing` from
  // peers. Returns those that
  // storage is to read: the ones that peers did not give, and those between
  // them if that makes it one request.
  std::vector<size_t> BringOfPeers(std::span<const RowOf> rows,
                                   std::span<const WantedRecord> records,
                                   std::span<const size_t> missing,
                                   PeerBatch* batch,
                                   std::vector<Prefetch>* prefetches) const;
  // True if Read finds it without peers and storage.
  bool IsKept(uint64_t record) const;
  const SeekFile* SeekFileFound() const {
    return places_.seek_file == nullptr ? nullptr : places_.seek_file->found();
  }
  // Puts a form that a disk has of the record into the sample, if any.
  void ReadFormOf(uint64_t record, StoredSample* sample) const;
  uint32_t ShardOf(uint64_t sample) const {
    return dataset_.shards.ShardOf(sample - first_);
  }
  // Returns where caches keep a sample's record: under the number and the shard
  // that it has in kept_.
  SampleCache::Record Kept(uint64_t sample, uint64_t record) const {
    return {.number = record,
            .shard = &kept_ == &dataset_ ? ShardOf(sample)
                                         : kept_.shards.ShardOf(record)};
  }

  const Digest& plan_hash_;
  const DatasetInfo& dataset_;
  const DatasetInfo& kept_;  // whose records caches keep
  const uint64_t first_;
  const RuntimeContext* const context_;
  const RecordPlaces places_;
  const StorageReader storage_;
};

}  // namespace leat::worker
