// SPDX-License-Identifier: Apache-2.0
//
// Stream: one end of a bidirectional gRPC stream, without reactors: the only
// place that derives from them.
//
// Reads are delivered to a handler one after the other on gRPC's threads; the
// next read starts when OnMessage returns, so a handler that is slow to take
// slows its peer. Writes queue here, bounded, and go out in order.
//
// A server begins one by ServerStream<In, Out>::Start and returns it as the
// call's reactor; a client begins one by ClientStream<Out, In>::Start.
//
// Thread safety: Send, Close and Cancel from any thread, also from the
// handler's callbacks. Lifetime: the stream keeps itself and its handler alive
// until OnClosed has returned.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"

namespace leat::rpc {

// The domain's side. Calls are serial but for OnWritten, which may overlap
// OnMessage.
template <class In>
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // Must not block. `message` is the handler's to keep.
  virtual void OnMessage(In message) = 0;
  // A message has gone out; `queued` are left. Must not block.
  virtual void OnWritten(size_t queued) {}
  // Last call, exactly once. The peer's status on a client; OK or kCancelled on
  // a server.
  virtual void OnClosed(const absl::Status& status) = 0;
};

template <class Out>
class Stream {
 public:
  virtual ~Stream() = default;
  // Queues a message. kResourceExhausted: the queue is full. kCancelled: the
  // stream has ended.
  virtual absl::Status Send(Out message) = 0;
  // Messages waiting, the one in flight included.
  virtual size_t queued() const = 0;
  // Server: ends the stream with `status` after what is queued. Client:
  // half-closes. Idempotent.
  virtual void Close(absl::Status status) = 0;
  // Ends it now: what is queued is dropped. Idempotent.
  virtual void Cancel() = 0;
};

}  // namespace leat::rpc
