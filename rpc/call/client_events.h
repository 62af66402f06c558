// SPDX-License-Identifier: Apache-2.0
//
// ClientEvents: the threads on which a process's ClientStreams are called
// (rpc/call/client_stream.h). Each of them waits for the events of a queue of
// its own, and handles them itself.
//
// gRPC's callback threads would do the same, but there are two of them at
// least, and the one that takes an event from the kernel first wakes another
// one to wait for the next. Beside workers that keep all cores busy these wakes
// were a sixth of the CPU time of a client.
//
// Connections are made, kept alive and seen to end by whichever thread waits
// for an event, of any queue. Between its calls a client without such a thread
// would learn of none of that for five seconds.
#pragma once

#include "absl/status/statusor.h"
#include "grpcpp/completion_queue.h"

namespace leat::rpc {

// Each tag of such a queue points at one.
class ClientEvent {
 public:
  // Called on the queue's thread. Must not block. `ok` is that of
  // grpc::CompletionQueue::Next.
  virtual void Complete(bool ok) = 0;

 protected:
  ~ClientEvent() = default;
};

// Returns a queue for a new stream. Each tag has to point at a ClientEvent. The
// queue and its thread last as long as the process. There is one for each
// eight cores, from one to four, and streams take turns.
// kResourceExhausted: the system gives no thread.
absl::StatusOr<grpc::CompletionQueue*> ClientQueue();

// Starts the first of the threads, so that connections are looked after before
// there is a stream. Does nothing if the system gives no thread: calls look
// after their connections while they wait.
void StartClientEvents();

}  // namespace leat::rpc
