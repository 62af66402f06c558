// SPDX-License-Identifier: Apache-2.0
//
// ClientEvents provides the threads that call a process's ClientStreams
// (rpc/call/client_stream.h). Each of them waits for the events of its own
// queue, and handles them itself.
//
// gRPC's callback threads would do the same, but there are at least two of
// them, and the one that receives an event from the kernel first wakes another
// to wait for the next. Next to workers that keep all cores busy, these wakeups
// took a sixth of a client's CPU time.
//
// Any thread that waits for an event, of any queue, also makes connections,
// keeps them alive and notices their end. Without such a thread, a client would
// between its calls notice none of this for five seconds.
#pragma once

#include "absl/status/statusor.h"
#include "grpcpp/completion_queue.h"

namespace leat::rpc {

// Each tag of such a queue points at a ClientEvent.
class ClientEvent {
 public:
  // Called on the queue's thread. Must not block. `ok` is that of
  // grpc::CompletionQueue::Next.
  virtual void Complete(bool ok) = 0;

 protected:
  ~ClientEvent() = default;
};

// Returns a queue for a new stream. Each tag must point at a ClientEvent. The
// queue and its thread live as long as the process. There is one queue per
// eight cores, from one to four, and streams are assigned in turn.
// kResourceExhausted: the system cannot create a thread.
absl::StatusOr<grpc::CompletionQueue*> ClientQueue();

// Starts the first of the threads, so that connections are serviced before
// there is a stream. Does nothing if the system cannot create a thread: calls
// then service their connections while they wait.
void StartClientEvents();

}  // namespace leat::rpc
