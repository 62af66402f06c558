// SPDX-License-Identifier: Apache-2.0
//
// RecordClient: requests records from other workers over gRPC
// (leat.v1.RecordsService).
//
// It keeps a connection to each peer that was asked, up to kMaxConnections, and
// makes at most kMaxCalls calls at a time. A peer that did not answer is left
// alone, for a second and then for twice as long each time, up to a minute;
// such requests fail at once, and storage is read.
//
// An answer is checked before it is used: its checksum and, if the coordinator
// sent a key of the peer, its proof (rpc/access/worker_key.h).
//
// The certificate and the token that it presents can be replaced, for calls
// that begin later. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "leat/v1/records.grpc.pb.h"
#include "rpc/call/auth.h"
#include "rpc/call/call_set.h"
#include "worker/job/peer_records.h"

namespace leat::worker {

class RecordClient final : public RecordAsker {
 public:
  static constexpr size_t kMaxConnections = 64, kMaxCalls = 32;
  static constexpr Duration kFirstPause = std::chrono::seconds(1),
                            kMostPause = std::chrono::minutes(1);

  struct Counters {
    uint64_t found = 0;    // records that came
    uint64_t missing = 0;  // records that the peer did not keep
    uint64_t failed = 0;   // no answer
    // Answers that were damaged, not from the peer, or otherwise wrong.
    uint64_t refused = 0;
  };

  // `clock` outlives it.
  RecordClient(rpc::Security security, const Clock& clock);
  ~RecordClient() override;

  absl::StatusOr<PackedRecord> Ask(const Peer& peer, const Digest& dataset,
                                   uint64_t record, uint16_t form_version,
                                   Duration timeout) override;
  void Refuse(const Peer& peer) override;

  // REQUIRES: `security` was checked.
  void ReplaceSecurity(rpc::Security security);
  // Ends calls in progress, and all later ones, with kCancelled.
  void Stop();
  Counters counters() const;

 private:
  struct Connection;

  absl::StatusOr<std::shared_ptr<Connection>> Connect(const Peer& peer);
  void Ended(Connection* connection, const absl::Status& status);

  const Clock& clock_;
  std::atomic<uint64_t> found_{0}, missing_{0}, failed_{0}, refused_{0};
  Mutex mu_;
  rpc::Security security_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, std::shared_ptr<Connection>> connections_
      ABSL_GUARDED_BY(mu_);  // by address
  rpc::CallSet calls_;
};

}  // namespace leat::worker
