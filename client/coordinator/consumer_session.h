// SPDX-License-Identifier: Apache-2.0
//
// Session: a consumer's stream with the coordinator: it receives assignments
// and sends reports. It is optional: it reconnects for ever, with backoff, and
// its absence stops nothing.
//
// One thread calls Tick and Stop; the callbacks run on gRPC's threads, without
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
#include "rpc/call/stream.h"

namespace leat::client {

class Session {
 public:
  struct Config {
    Duration report_interval = std::chrono::seconds(1);
    Duration backoff_min = std::chrono::milliseconds(100);
    Duration backoff_max = std::chrono::seconds(5);
    // The longest time that Stop waits until the last report has arrived, and
    // again for the verdict on the job.
    Duration farewell = std::chrono::milliseconds(500);
    // Shortens each wait by up to a half, so that consumers do not all
    // reconnect at once when the coordinator starts. Draws from [0, 1); null:
    // 0.
    std::function<double()> random;
  };
  struct Callbacks {
    std::function<void(const v1::Assignment&)> on_assignment;
    // The coordinator has given the job up. May be null.
    std::function<void(const absl::Status&)> on_failure;
    // The stream has ended; the status is never OK.
    std::function<void(const absl::Status&)> on_lost;
    std::function<v1::ConsumerStats()> stats;  // on the thread of Tick
    // Runs on the thread of Tick: a report to the coordinator about unreached
    // workers, sent without waiting for the next regular report. May be null.
    std::function<std::optional<v1::UnreachedWorkers>()> unreached;
    // The coordinator requests spans. May be null, and so may `spans`, which
    // runs on the thread of Tick and returns the spans to send, and when to
    // call again.
    std::function<void(const v1::TraceConsumer&)> on_trace;
    std::function<SpanReporter::Due(MonotonicTime now)> spans;
    // The coordinator requests previews of rows. May be null, and so may
    // `sheet`, which runs on the thread of Tick and returns the preview to
    // send.
    std::function<void(const v1::WantSheet&)> on_sheet;
    std::function<std::optional<v1::RowsSheet>()> sheet;
    // All workers have reported the bad samples that they had met when
    // `settles` returned true: without a failure so far the job is not given
    // up. May be null, and so may `settles`, which runs on the thread of Tick
    // and returns whether the consumer waits for the verdict. `at_stop`: the
    // call belongs to the last report.
    std::function<void()> on_settled;
    std::function<bool(bool at_stop)> settles;
  };
  using Stream = rpc::Stream<v1::ConsumerSessionRequest>;
  using Receiver = rpc::StreamHandler<v1::ConsumerSessionResponse>;
  using Opener =
      std::function<std::shared_ptr<Stream>(std::shared_ptr<Receiver>)>;

  Session(const Config& config, v1::OpenConsumer open, Callbacks callbacks,
          Opener opener);
  ~Session();  // calls Stop

  // Connects and reports as due; returns when to call again.
  MonotonicTime Tick(MonotonicTime now);
  // Sends the last report, and ends the stream; no callback runs after it has
  // returned. Idempotent.
  void Stop();

 private:
  struct Shared;
  class SharedReceiver;
  MonotonicTime SendSpans(MonotonicTime now);
  void SendSheet();
  void SayLast();
  bool Settles(bool at_stop) const;

  const Config config_;
  const v1::OpenConsumer open_;
  const Callbacks callbacks_;
  const Opener opener_;
  const std::shared_ptr<Shared> shared_;  // shared with the open stream
  std::shared_ptr<Stream> stream_;
  bool settling_ = false;  // the verdict was requested on this stream
  MonotonicTime next_report_{};
  MonotonicTime next_attempt_{};
  Duration backoff_;
};

}  // namespace leat::client
