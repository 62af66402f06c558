// SPDX-License-Identifier: Apache-2.0
//
// Session: a consumer's view of the coordinator: assignments come, reports go.
// Soft: it reconnects for ever, with backoff, and its absence stops nothing.
//
// Tick and Stop from one thread; the callbacks come on gRPC's threads, without
// a lock.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/coordinator/span_reporter.h"
#include "core/clock.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::client {

class Session {
 public:
  struct Config {
    Duration report_interval = std::chrono::seconds(1);
    Duration backoff_min = std::chrono::milliseconds(100);
    Duration backoff_max = std::chrono::seconds(5);
    // Takes up to a half of each wait away, so that the consumers of a
    // coordinator that starts do not come at once. Draws from [0, 1); null: 0.
    std::function<double()> random;
  };
  struct Callbacks {
    std::function<void(const v1::Assignment&)> on_assignment;
    // The coordinator gives the job up. May be null.
    std::function<void(const absl::Status&)> on_failure;
    // The stream has ended; OK is never passed.
    std::function<void(const absl::Status&)> on_lost;
    std::function<v1::ConsumerStats()> stats;  // on the thread of Tick
    // On the same: what the coordinator is to be told, with a report that does
    // not wait for its time. May be null.
    std::function<std::optional<v1::UnreachedWorkers>()> unreached;
    // Somebody wants spans. May be null, and so may `spans`, which is called on
    // the thread of Tick and says what of them is to be sent, and when to ask
    // again.
    std::function<void(const v1::TraceConsumer&)> on_trace;
    std::function<SpanReporter::Due(MonotonicTime now)> spans;
    // Somebody wants to see rows. May be null, and so may `sheet`, which is
    // called on the thread of Tick and gives what is to be sent.
    std::function<void(const v1::WantSheet&)> on_sheet;
    std::function<std::optional<v1::RowsSheet>()> sheet;
  };
  // One stream. Send false: it is full or has ended.
  class Stream {
   public:
    virtual ~Stream() = default;
    virtual bool Send(const v1::ConsumerSessionRequest& request) = 0;
    virtual void Cancel() = 0;
  };
  // `on_closed` exactly once, and nothing after it.
  using Opener = std::function<std::shared_ptr<Stream>(
      std::function<void(const v1::ConsumerSessionResponse&)> on_message,
      std::function<void(const absl::Status&)> on_closed)>;

  Session(const Config& config, v1::OpenConsumer open, Callbacks callbacks,
          Opener opener);
  ~Session();  // stops

  // Connects and reports as due; returns when to call again.
  MonotonicTime Tick(MonotonicTime now);
  // Ends the stream; no callback after it has returned. Idempotent.
  void Stop();

 private:
  struct Shared;
  MonotonicTime SendSpans(MonotonicTime now);
  void SendSheet();

  const Config config_;
  const v1::OpenConsumer open_;
  const Callbacks callbacks_;
  const Opener opener_;
  const std::shared_ptr<Shared> shared_;  // also the open stream's
  std::shared_ptr<Stream> stream_;
  MonotonicTime next_report_{};
  MonotonicTime next_attempt_{};
  Duration backoff_;
};

}  // namespace leat::client
