// SPDX-License-Identifier: Apache-2.0
//
// PeerRecords: gets records of a dataset that other workers keep, for a worker
// that would have to read them from storage because a row has spilled to it, or
// a shard has become its own.
//
// Only the first of a shard's other owners is asked, and only while that pays:
//
//   an answer's time < share of answers with a record
//                      × (a read's time + what a decode by its form saves)
//
// For a peer that reports its kept fraction (ownership.h), the share begins
// with that fraction, and again when a new one is reported; a peer that keeps
// nothing is not asked.
//
// These are means of about the newest 16 values. While asking does not pay, one
// record in 64 is still requested; while it pays, one in 1,024 is read from
// storage. So a change on either side is noticed.
//
// Records that one request to storage would read are requested from peers one
// after the other, and only while the whole is faster than that request:
//
//   (answers + a request for what is left) ÷ records
//       < the smaller of what a request takes ÷ these records, and
//         what it takes ÷ the records that it usually brings
//         + what decodes by forms save
//
// so that answers for a part, after which the request is still needed, do not
// look like a gain.
//
// Answers are compared with the reader's types, and a form with the bytes that
// it was made of. So a peer's answer changes no row that the peer could not
// change by serving it.
//
// Thread-safe. Get blocks for as long as the asker lets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/mutex.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "worker/cache/sample_cache.h"
#include "worker/image/jpeg/forms/codec.h"
#include "worker/job/ownership.h"
#include "worker/sample/stored_sample.h"

namespace leat::worker {

// A record on its way between workers.
struct PackedRecord {
  std::vector<std::byte> record;  // encoded as in stored_bytes.h
  std::vector<std::byte> form;    // of one of its fields; empty: none
  uint32_t form_kind = 0;         // a JpegFormKind
};

// Asks another worker for records.
class RecordAsker {
 public:
  virtual ~RecordAsker() = default;
  // `dataset`: DatasetKeyOf. `form_version`: the version of forms that can be
  // read; 0: none is wanted. Returns within `timeout`. kNotFound: the peer does
  // not keep it. kUnavailable, kDeadlineExceeded: not now. kUnauthenticated,
  // kDataLoss: the answer is not the peer's, or damaged.
  virtual absl::StatusOr<PackedRecord> Ask(const Peer& peer,
                                           const Digest& dataset,
                                           uint64_t record,
                                           uint16_t form_version,
                                           Duration timeout) = 0;
  // Reports that Ask's answer was no record of the dataset, or its form was not
  // the record's.
  virtual void Refuse(const Peer& peer) = 0;
};

struct PeerRecordsOptions {
  RecordAsker* asker = nullptr;
  const Ownership* ownership = nullptr;
  FormCodec codec;                 // without functions: no form is wanted
  FormKinds kinds;                 // of forms that are wanted
  std::string dataset_id;          // for `ownership`
  Digest dataset{};                // for peers
  std::vector<ValueType> types;    // of a record's fields
  SampleCache::DatasetPtr kept{};  // says what forms save
};

struct WantedRecord {
  uint64_t record = 0;
  uint32_t shard = 0;
};

// The answers of peers for records that one request to storage would read.
struct PeerBatch {
  std::vector<std::optional<StoredSample>> samples;  // parallel to the records
  bool asked = false;                                // for any of them
  Duration took{};                                   // time spent on asking
};

class PeerRecords {
 public:
  // To measure the cost, the first kFirst records are requested from peers, and
  // one in kOneOf; and one in kReadOneOf is read from storage.
  static constexpr uint64_t kFirst = 8, kOneOf = 64, kReadOneOf = 1024;
  // For a peer that reports its fraction this many are enough: only the time of
  // an answer is unknown.
  static constexpr uint64_t kFirstTold = 4;
  static constexpr size_t kMaxTold = 1000;  // peers
  // Like kFirst, for requests that read several records.
  static constexpr uint64_t kFirstTogether = 4;

  // `clock`, and the objects that the options point to, outlive it.
  PeerRecords(PeerRecordsOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {}

  // Returns the record, with a form if the peer has one. nullopt: read it from
  // storage.
  std::optional<StoredSample> Get(uint64_t record, uint32_t shard);
  // Gets a record that no row waits for from this peer. nullopt also if peers
  // take longer than storage.
  std::optional<StoredSample> GetFrom(const Peer& peer, uint64_t record);
  // Counts the time of one record's read from storage.
  void CountRead(Duration took);
  // Gets records that one request would read. Takes at most about twice as long
  // as such a request, and ends when a peer does not answer.
  PeerBatch GetTogether(std::span<const WantedRecord> wanted);
  // Counts the time that storage took for the records that the batch lacks; 0:
  // it lacks none.
  void CountTogether(const PeerBatch& batch, Duration took);

 private:
  struct Mean {
    double value = 0;
    uint64_t count = 0;
    void Add(double sample);
  };
  struct Told {
    double kept_share = -1;  // none
    Mean found;
  };

  // True if the next record is to be requested from a peer.
  bool Pays(const OtherOwner& other) ABSL_LOCKS_EXCLUDED(mu_);
  // True if the next records that one request would read are to be requested
  // from peers.
  bool PayTogether(std::span<const OtherOwner> others) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the mean share of the peer's answers that have a record.
  Mean& FoundOf(const Peer& peer, std::optional<double> kept_share)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `kept_share`: OtherOwner's. Sets `answers` to whether the peer is worth
  // another request.
  std::optional<StoredSample> Ask(const Peer& peer,
                                  std::optional<double> kept_share,
                                  uint64_t record, Duration timeout,
                                  bool* answers = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);
  Duration Timeout() const ABSL_LOCKS_EXCLUDED(mu_);
  Duration TimeoutTogether() const ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<StoredSample> Unpack(PackedRecord packed) const;

  const PeerRecordsOptions options_;
  const Clock& clock_;
  mutable Mutex mu_;
  uint64_t missed_ ABSL_GUARDED_BY(mu_) = 0;  // records for which it was wanted
  // Means: nanoseconds per read from storage and per answer; the share of
  // answers with a record, for peers that report no fraction; and nanoseconds
  // that the forms of records save.
  Mean read_ns_ ABSL_GUARDED_BY(mu_), answer_ns_ ABSL_GUARDED_BY(mu_),
      found_ ABSL_GUARDED_BY(mu_), saved_ns_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Told> told_ ABSL_GUARDED_BY(mu_);  // by name
  uint64_t batches_ ABSL_GUARDED_BY(mu_) = 0;  // for which it was wanted
  // Means: nanoseconds per request for several records, per record of such a
  // request, and per record of a batch that was requested from peers, including
  // the rest that storage then read.
  Mean request_ns_ ABSL_GUARDED_BY(mu_), share_ns_ ABSL_GUARDED_BY(mu_),
      asked_share_ns_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
