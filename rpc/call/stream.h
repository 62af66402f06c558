// SPDX-License-Identifier: Apache-2.0
//
// Stream is one end of a bidirectional gRPC stream, without reactors: only its
// implementations derive from these.
//
// Reads are delivered to a handler one after another on gRPC's threads; the
// next read starts when OnMessage returns, so a slow handler slows its peer
// down. Writes are queued here, up to a bound, and sent in order.
//
// A server starts one with ServerStream<In, Out>::Start and returns it as the
// call's reactor; a client starts one with ClientStream<Out, In>::Start.
//
// Thread safety: any thread may call Send, Close and Cancel, also from the
// handler's callbacks. Lifetime: the stream keeps itself and its handler alive
// until OnClosed has returned.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"

namespace leat::rpc {

// Handles one stream's messages. Calls are serial, except that OnWritten may
// overlap OnMessage.
template <class In>
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // Must not block. The handler owns `message`.
  virtual void OnMessage(In message) = 0;
  // A message has been sent; `queued` are left. Must not block.
  virtual void OnWritten(size_t queued) {}
  // The last call, exactly once. `status` is the peer's on a client, and OK or
  // kCancelled on a server.
  virtual void OnClosed(const absl::Status& status) = 0;
};

template <class Out>
class Stream {
 public:
  virtual ~Stream() = default;
  // Queues a message. kResourceExhausted: the queue is full. kCancelled: the
  // stream has ended.
  virtual absl::Status Send(Out message) = 0;
  // Returns the number of queued messages, including the one in flight.
  virtual size_t queued() const = 0;
  // Server: ends the stream with `status` after the queued messages. Client:
  // half-closes. Idempotent.
  virtual void Close(absl::Status status) = 0;
  // Ends the stream now: queued messages are dropped. Idempotent.
  virtual void Cancel() = 0;
};

}  // namespace leat::rpc
