// SPDX-License-Identifier: Apache-2.0
//
// StreamSharing: the memory that one Rows stream's consumer has shared, and
// which of its slots are being written.
//
// The consumer attaches its memory connection by the stream's secret, once. The
// connection is shut down, which tells the consumer that nothing is written any
// more, when two things hold: the stream has been closed, or the consumer has
// closed its end; and all memories that requests and groups still held are
// dropped.
//
// Thread-safe. No method calls out with a lock held, or waits for a device.
// Memory is unmapped when its last holder drops it, or by the importer's
// thread, and counts as shared until then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/wire/memory_socket.h"
#include "worker/compute/row_work.h"
#include "worker/shared_memory/device_importer.h"

namespace leat::worker {

struct SharedMemoryLimits {
  size_t max_memories_per_stream = 64;
  size_t max_memories = 8192;  // of all streams
  uint64_t max_shared_bytes = 64ull << 30;
};

struct SharedMemoryCounters {
  std::atomic<uint64_t> memories{0}, bytes{0};  // mapped now
  std::atomic<uint64_t> connections{0};         // open now
  std::atomic<uint64_t> refused_total{0};       // connections and memories
};

class StreamSharing {
 public:
  // `importer`, which may be nullptr, outlives the memories.
  StreamSharing(SharedMemoryLimits limits, DeviceImporter* importer,
                std::shared_ptr<SharedMemoryCounters> counters);
  ~StreamSharing();

  const std::string& secret() const { return secret_; }

  // Called for requests:

  struct Offer {
    std::shared_ptr<const SharedMemory> memory;
    uint64_t number = 0;  // of this offer
  };
  // Takes slots of a memory, for one request with rows of `field_bytes` (the
  // same for all requests of a stream). kInvalidArgument: no such memory, it is
  // too small for its rows, or a slot is outside it or used by an open request.
  // kUnavailable: the consumer has taken everything back.
  absl::StatusOr<Offer> Borrow(uint64_t memory_id,
                               std::span<const uint32_t> slots,
                               std::span<const size_t> field_bytes);
  // Frees those of the slots that the offer still has.
  void GiveBack(uint64_t memory_id, uint64_t offer,
                std::span<const uint32_t> slots);
  // The stream has ended: no more slots can be taken. Idempotent.
  void Close();

  // Called for the memory connection:

  // kUnavailable: the stream has ended. kFailedPrecondition: it has, or has
  // had, a connection.
  absl::Status Attach(std::shared_ptr<const Fd> socket);
  // Takes memory; the caller keeps `fd`. kInvalidArgument, kResourceExhausted,
  // kUnimplemented: the reason why not.
  absl::Status Share(int fd, const v1::ShareMemory& share);
  // kNotFound: no such memory. kFailedPrecondition: an open request uses it.
  absl::Status Return(uint64_t memory_id);

 private:
  class Hold;
  class HeldMemory;
  struct Entry {
    std::shared_ptr<const SharedMemory> memory;
    uint64_t bytes = 0;
    bool fits = false;  // its rows have been checked
    absl::flat_hash_map<uint32_t, uint64_t> offers;  // by slot
  };

  absl::Status Check(const v1::ShareMemory& share) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const SharedMemoryLimits limits_;
  DeviceImporter* const importer_;
  const std::shared_ptr<SharedMemoryCounters> counters_;
  const std::string secret_;

  Mutex mu_;
  bool attached_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<Hold> hold_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Entry> memories_ ABSL_GUARDED_BY(mu_);  // by memory_id
  uint64_t next_offer_ ABSL_GUARDED_BY(mu_) = 1;
};

}  // namespace leat::worker
