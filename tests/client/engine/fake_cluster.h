// SPDX-License-Identifier: Apache-2.0
//
// Fakes for client tests: a coordinator and workers of real gRPC on abstract
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

// Some address that nobody else has.
std::string UniqueAddress();

struct FakeJobOptions {
  std::string name = "train";
  uint64_t samples = 1000;
  uint32_t batch = 16;
  LastBatch last_batch = LastBatch::kDrop;
  bool external =
      false;  // consumers supply the samples, as they are in a batch
};
// A job of "image" uint8 (6, 5, 3) and "label" int32.
JobInfo MakeFakeJob(const FakeJobOptions& options);

// What a worker sends for a sample, and what a batch must hold.
std::byte ImageByte(uint64_t sample, size_t i);
int32_t Label(uint64_t sample);

// What a FakeWorker does with requests from now on.
enum class Behaviour {
  kServe,
  kSilent,    // keeps requests; Release() answers them
  kTwice,     // answers each request twice
  kHalf,      // sends half of each answer
  kGarbage,   // answers random bytes
  kMisfit,    // answers rows that were not asked for
  kDraining,  // answers each request by UNAVAILABLE
  kUnknown,   // ends each stream by NOT_FOUND
  kBytes,     // answers rows with places by data
  kFlipped,   // answers by data of which one bit is wrong on the wire
};

// Whether a FakeWorker writes into consumers' memory.
enum class Taking {
  kNone,
  kTaken,   // with places, rows are written there
  kNobody,  // names a memory socket that does not exist
};

class FakeWorker {
 public:
  // At an address of TCP consumers ask for checksums, which it sends if
  // `checksums`; older releases know none.
  explicit FakeWorker(std::string name, std::string address = UniqueAddress(),
                      bool checksums = true);
  ~FakeWorker();
  // Of streams from now on. At most `memories` pieces of memory a stream.
  void TakeMemory(Taking taking, size_t memories = 64);
  // Pieces of memory that consumers have shared and not taken back.
  uint64_t shared() const;
  // The coordinator tells `told`'s public half, from its next assignment on,
  // and streams are proved by `own`; null: none is. Not before Start.
  using Key = std::shared_ptr<const rpc::WorkerKey>;
  void SetKeys(Key told, Key own);
  std::string public_key() const;
  // Whether streams begin with `opened`, as they must.
  void set_greets(bool greets) { greets_ = greets; }
  // Closes the memory sockets, while the streams go on.
  void CloseSharing();

  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }
  void Behave(Behaviour behaviour);
  // The sample fails by DATA_LOSS with this text.
  void SpoilSample(uint64_t sample, std::string text);
  // Bytes of payload in one message.
  void set_chunk_bytes(size_t bytes) { chunk_bytes_ = bytes; }
  // Answers what kSilent kept, and serves from now on.
  void Release();
  // As by kill -9: streams break. Start brings it back at the same address.
  void Kill();
  void Start();
  // Blocks until so many rows have been asked for in all.
  void AwaitAsked(uint64_t rows);
  // Blocks until it keeps an answer back, as kSilent does.
  void AwaitKept();
  uint64_t asked() const { return asked_; }
  // As the last stream was opened.
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
  // Blocks until a consumer has reported its statistics so many times.
  void AwaitReports(int reports);
  v1::ConsumerStats last_report();
  // How often it was asked for its status.
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
