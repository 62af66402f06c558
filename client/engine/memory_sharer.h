// SPDX-License-Identifier: Apache-2.0
//
// MemorySharer: the memory sockets of one iterator (rpc/wire/memory_socket.h).
// They are served by one thread, which starts with the first socket and never
// blocks on a single worker.
//
// A socket is opened, authenticates by its secret, shares memory, takes back
// memory that was destroyed, and is watched until its end. `key` identifies it.
// All functions may be called on any thread and do not block; Stop, and the
// destructor, join the thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "client/batch/batch_memory.h"
#include "client/batch/batch_pool.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "rpc/wire/memory_socket.h"

namespace leat::v1 {
class ShareReply;
}

namespace leat::client {

class MemorySharer {
 public:
  struct Config {
    Duration reply_timeout = std::chrono::seconds(1);  // per message
    size_t max_sockets = 256;
    size_t max_memories = 1024;  // per socket
    // How long a worker may take to close a socket that cannot be received
    // from. It may write to the memory until then.
    Duration end_timeout = std::chrono::minutes(5);
    // As rpc::ReceivePacket, for data that has arrived already.
    std::function<absl::Status(int, v1::ShareReply*, Fd*)> receive =
        ReceiveArrived;
  };
  using Key = std::shared_ptr<void>;
  // Run on the MemorySharer's thread, without locks; none after Stop has
  // returned.
  struct Events {
    std::function<void(const Key&)> ready;
    // Nothing more can be shared; leases remain.
    std::function<void(const Key&, const absl::Status&)> failed;
    // kDeadlineExceeded: no reply yet; OK may follow.
    std::function<void(const Key&, uint64_t memory_id, const absl::Status&)>
        shared;
    std::function<void(const Key&, uint64_t memory_id)> returned;
    // The worker has closed it, or it was never connected. The last event of
    // the key.
    std::function<void(const Key&)> closed;
  };

  MemorySharer(const Config& config, std::shared_ptr<const BatchLayout> layout,
               Events events);
  ~MemorySharer();

  // kResourceExhausted: the system has no thread left, or had no descriptor at
  // the construction. Then `key` has no events.
  absl::Status Open(Key key, std::string address, std::string secret);
  void Share(Key key, std::shared_ptr<BatchMemory> memory);
  // Takes all memory back, without waiting for the worker. `closed` follows.
  void Close(Key key);
  // Some memory was destroyed: takes it back from all sockets that share it.
  void Sweep();
  void Stop();

 private:
  struct Socket;
  static absl::Status ReceiveArrived(int socket, v1::ShareReply* reply, Fd* fd);
  // Has no effect if the thread does not run.
  void Do(std::function<void()> command);
  absl::Status StartOnce();
  void Run();
  Socket* Find(const Key& key);
  void OpenNow(const Key& key, const std::string& address,
               const std::string& secret);
  void ShareNow(const Key& key, const std::shared_ptr<BatchMemory>& memory);
  void SweepNow();
  void Flush(Socket& socket);
  void Receive(Socket& socket);
  void Answer(Socket& socket, const absl::Status& status);
  void CheckTime(Socket& socket, MonotonicTime now);
  void Fail(Socket& socket, const absl::Status& status);
  void AwaitEnd(Socket& socket, const absl::Status& status);
  void End(Socket& socket);

  const Config config_;
  const std::shared_ptr<const BatchLayout> layout_;
  const Events events_;
  const Fd wake_;                                 // an eventfd
  std::vector<std::unique_ptr<Socket>> sockets_;  // of the thread

  Mutex mu_;
  std::vector<std::function<void()>> commands_ ABSL_GUARDED_BY(mu_);
  bool sweep_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::client
