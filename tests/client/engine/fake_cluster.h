// SPDX-License-Identifier: Apache-2.0
//
// Fakes for client tests: a coordinator and workers with real gRPC on abstract
// Unix sockets, in this process, that misbehave on request.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/plan/job.h"
#include "leat/v1/types.pb.h"
#include "rpc/access/worker_key.h"
#include "rpc/call/auth.h"
#include "rpc/server/server.h"
#include "worker/shared_memory/server.h"

namespace leat::client {

// Returns a unique address.
std::string UniqueAddress();

struct FakeJobOptions {
  std::string name = "train";
  uint64_t samples = 1000;
  uint32_t batch = 16;
  LastBatch last_batch = LastBatch::kDrop;
  bool external = false;  // consumers supply the samples, as in a batch
};
// Makes a job of "image" uint8 (6, 5, 3) and "label" int32.
JobInfo MakeFakeJob(const FakeJobOptions& options);

// Bytes that a worker sends for a sample, and that a batch must contain.
std::byte ImageByte(uint64_t sample, size_t i);
int32_t Label(uint64_t sample);

// How a FakeWorker handles requests from now on.
enum class Behaviour {
  kServe,
  kSilent,    // keeps requests; Release() answers them
  kTwice,     // answers each request twice
  kHalf,      // sends half of each answer
  kGarbage,   // answers random bytes
  kMisfit,    // answers rows that were not requested
  kDraining,  // answers each request with UNAVAILABLE
  kUnknown,   // ends each stream with NOT_FOUND
  kBytes,     // answers rows with places as data
  kFlipped,   // answers as data with one bit wrong on the wire
};

// Whether a FakeWorker writes into consumers' memory.
enum class Taking {
  kNone,
  kTaken,   // rows with places are written there
  kNobody,  // names a memory socket that does not exist
};

class FakeWorker {
 public:
  // At a TCP address consumers ask for checksums, which it sends if
  // `checksums`; older releases have none.
  explicit FakeWorker(std::string name, std::string address = UniqueAddress(),
                      bool checksums = true);
  ~FakeWorker();
  // Applies to new streams. At most `memories` blocks of memory per stream.
  void TakeMemory(Taking taking, size_t memories = 64);
  // Returns how many blocks consumers have shared and not taken back.
  uint64_t shared() const;
  // The coordinator publishes `told`'s public half from its next assignment on,
  // and streams are proved by `own`; null: none. Not before Start.
  using Key = std::shared_ptr<const rpc::WorkerKey>;
  void SetKeys(Key told, Key own);
  std::string public_key() const;
  // Sets whether streams begin with `opened`, as they must.
  void set_greets(bool greets) { greets_ = greets; }
  // Closes the memory sockets, while the streams continue.
  void CloseSharing();

  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }
  void Behave(Behaviour behaviour);
  // The sample fails with DATA_LOSS and this text.
  void SpoilSample(uint64_t sample, std::string text);
  // Sets the payload bytes per message.
  void set_chunk_bytes(size_t bytes) { chunk_bytes_ = bytes; }
  // Answers the requests that kSilent kept, and serves from now on.
  void Release();
  // As after kill -9: streams break. Start brings it back at the same address.
  void Kill();
  void Start();
  // Blocks until this many rows have been requested in all.
  void AwaitAsked(uint64_t rows);
  // Blocks until it keeps an answer back, as kSilent does.
  void AwaitKept();
  uint64_t asked() const { return asked_; }
  // Returns how the last stream was opened.
  v1::OpenRows opened() const {
    MutexLock lock(&mu_);
    return opened_;
  }

 private:
  class Service;
  class Handler;
  const std::string name_;
  std::string address_;
  const bool checksums_;
  std::atomic<size_t> chunk_bytes_{1 << 20};
  std::atomic<uint64_t> asked_{0};
  mutable Mutex mu_;
  CondVar asked_more_;
  Behaviour behaviour_ ABSL_GUARDED_BY(mu_) = Behaviour::kServe;
  v1::OpenRows opened_ ABSL_GUARDED_BY(mu_);
  std::vector<std::function<void()>> kept_ ABSL_GUARDED_BY(mu_);
  uint64_t spoiled_ ABSL_GUARDED_BY(mu_) = ~uint64_t{0};
  std::string spoiled_text_ ABSL_GUARDED_BY(mu_);
  Taking taking_ ABSL_GUARDED_BY(mu_) = Taking::kNone;
  std::shared_ptr<worker::SharedMemoryServer> sharing_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> greets_{true};
  Key told_ ABSL_GUARDED_BY(mu_), own_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Service> service_;
  std::unique_ptr<rpc::Server> server_;
};

class FakeCoordinator {
 public:
  explicit FakeCoordinator(JobInfo job, std::string token = "");
  ~FakeCoordinator();

  const std::string& address() const { return address_; }
  // Pushes an assignment: shard s is owned by worker s mod n, then the next.
  // `instance`: of the coordinator's process.
  void SetWorkers(const std::vector<const FakeWorker*>& workers,
                  uint64_t instance = 1);
  void Kill();
  void Start();
  // Blocks until a consumer has reported its statistics this many times.
  void AwaitReports(int reports);
  v1::ConsumerStats last_report();
  // Returns how often it was asked for its status.
  int status_calls() const { return status_calls_; }

 private:
  class Service;
  class AdminService;
  class Handler;
  const JobInfo job_;
  const rpc::Security security_;
  const std::string address_;
  Mutex mu_;
  CondVar reported_;
  v1::Assignment assignment_ ABSL_GUARDED_BY(mu_);
  std::vector<std::weak_ptr<Handler>> sessions_ ABSL_GUARDED_BY(mu_);
  v1::ConsumerStats report_ ABSL_GUARDED_BY(mu_);
  int reports_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<int> status_calls_ = 0;
  std::unique_ptr<Service> service_;
  std::unique_ptr<AdminService> admin_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace leat::client
