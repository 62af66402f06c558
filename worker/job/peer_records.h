// SPDX-License-Identifier: Apache-2.0
//
// PeerRecords: records of a dataset as other workers keep them, for a worker
// that would have to read them from storage: a row has spilled to it, or a
// shard has become its own.
//
// The first one of a shard's other owners is asked, and nobody behind it, and
// only while that pays:
//
//   an answer's time < share of answers with a record
//                      × (a read's time + what a decode by its form saves)
//
// The share of a peer that the coordinator tells what it keeps (ownership.h)
// begins with that, and again when it is told another; one that keeps nothing
// is not asked.
//
// These are means of the newest 16, about. Where it does not pay, one record in
// 64 is asked for still; where it does, one in 1,024 is read from storage. So a
// change on either side is seen.
//
// Records that one request to storage would bring are asked for one after the
// other, and only while the whole of that is faster than the request:
//
//   (answers + a request for what is left) ÷ records
//       < the smaller of what a request takes ÷ these records, and
//         what it takes ÷ the records that it usually brings
//         + what decodes by forms save
//
// so that answers for a part, which leave the request to be made all the same,
// do not look like a gain.
//
// What comes back is compared with the reader's types, and a form with the
// bytes that it was made of, so what a peer sends changes no row that it could
// not change by serving it.
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
  std::vector<std::byte> record;  // as stored_bytes.h has it
  std::vector<std::byte> form;    // of one of its fields; empty: none
  uint32_t form_kind = 0;         // a JpegFormKind
};

// Asks another worker.
class RecordAsker {
 public:
  virtual ~RecordAsker() = default;
  // `dataset`: DatasetKeyOf. `form_version`: of forms that can be read; 0: none
  // is wanted. Within `timeout`. kNotFound: the peer does not keep it.
  // kUnavailable, kDeadlineExceeded: not now. kUnauthenticated, kDataLoss: the
  // answer is not the peer's, or damaged.
  virtual absl::StatusOr<PackedRecord> Ask(const Peer& peer,
                                           const Digest& dataset,
                                           uint64_t record,
                                           uint16_t form_version,
                                           Duration timeout) = 0;
  // What Ask gave is no record of the dataset, or its form is not the record's.
  virtual void Refuse(const Peer& peer) = 0;
};

struct PeerRecordsOptions {
  RecordAsker* asker = nullptr;
  const Ownership* ownership = nullptr;
  FormCodec codec;                 // without functions: no form is wanted
  FormKinds kinds;                 // that are wanted of those
  std::string dataset_id;          // for `ownership`
  Digest dataset{};                // for peers
  std::vector<ValueType> types;    // of a record's fields
  SampleCache::DatasetPtr kept{};  // says what forms save
};

struct WantedRecord {
  uint64_t record = 0;
  uint32_t shard = 0;
};

// What peers gave of records that one request to storage would bring.
struct PeerBatch {
  std::vector<std::optional<StoredSample>> samples;  // parallel to these
  bool asked = false;                                // for any of them
  Duration took{};                                   // to ask
};

class PeerRecords {
 public:
  // Records that are asked for to know what that takes: the first, and one of
  // so many. And of how many one is read from storage to know the same.
  static constexpr uint64_t kFirst = 8, kOneOf = 64, kReadOneOf = 1024;
  // So many of a peer whose share was told are enough: only the time that an
  // answer takes is not known.
  static constexpr uint64_t kFirstTold = 4;
  static constexpr size_t kMaxTold = 1000;  // peers
  // As kFirst, of requests that bring several.
  static constexpr uint64_t kFirstTogether = 4;

  // `clock`, and what the options point to, outlive it.
  PeerRecords(PeerRecordsOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {}

  // The record, with a form if the peer has one. nullopt: read it from storage.
  std::optional<StoredSample> Get(uint64_t record, uint32_t shard);
  // The same of this peer, for a record that nobody waits for. nullopt also
  // where peers take longer than storage.
  std::optional<StoredSample> GetFrom(const Peer& peer, uint64_t record);
  // That a read of one record from storage took so long.
  void CountRead(Duration took);
  // The same of records that one request would bring. It takes about twice as
  // long as such a request at most, and ends where a peer does not answer.
  PeerBatch GetTogether(std::span<const WantedRecord> wanted);
  // Counts what storage took for what the batch lacks; 0: it lacks nothing.
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

  // Whether the next record is asked for.
  bool Pays(const OtherOwner& other) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the next ones that one request would bring are.
  bool PayTogether(std::span<const OtherOwner> others) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the mean share of the peer's answers that have a record.
  Mean& FoundOf(const Peer& peer, std::optional<double> kept_share)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `kept_share`: OtherOwner's. `answers`: whether it is worth asking the peer
  // for another one.
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
  uint64_t missed_ ABSL_GUARDED_BY(mu_) = 0;  // records that it was wanted for
  // Nanoseconds of reads of storage and of answers; the share of answers with a
  // record, of peers whose share was not told; and nanoseconds that the forms
  // of records save.
  Mean read_ns_ ABSL_GUARDED_BY(mu_), answer_ns_ ABSL_GUARDED_BY(mu_),
      found_ ABSL_GUARDED_BY(mu_), saved_ns_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Told> told_ ABSL_GUARDED_BY(mu_);  // by name
  uint64_t batches_ ABSL_GUARDED_BY(mu_) = 0;  // that it was wanted for
  // Nanoseconds of requests for several records, of a record's share of them,
  // and of its share of a batch that was asked for, with what storage did then.
  Mean request_ns_ ABSL_GUARDED_BY(mu_), share_ns_ ABSL_GUARDED_BY(mu_),
      asked_share_ns_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
