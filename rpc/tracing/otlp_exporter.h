// SPDX-License-Identifier: Apache-2.0
//
// OtlpExporter sends the spans of traced steps to an OpenTelemetry collector,
// by OTLP over gRPC.
//
//   Tracer ─► SpanBuffer, at most kMaxWaiting ─► thread ─► Export,
//   one at a time
//
// A collector that cannot be reached, or is slow, delays nothing: spans without
// room are dropped and counted. After a failure the thread pauses, longer each
// time, and then sends the spans recorded since.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/observe/tracing.h"

namespace leat::rpc {

inline constexpr double kDefaultTraceRatio = 0.01;

struct OtlpSettings {
  std::string endpoint;  // "http://HOST:PORT", "https://HOST:PORT"; empty: none
  std::string ca_file;   // roots of https; empty: the system's
  double ratio = kDefaultTraceRatio;  // fraction of the steps
  std::string service_name;

  // kInvalidArgument: names what is wrong, and what is expected.
  absl::Status Validate() const;
};

// Reads the standard variables: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
// OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_CERTIFICATE,
// OTEL_TRACES_SAMPLER_ARG, OTEL_SERVICE_NAME. The endpoint is empty if
// OTEL_SDK_DISABLED is true, OTEL_TRACES_EXPORTER is not otlp, or
// OTEL_EXPORTER_OTLP_PROTOCOL is not grpc. kInvalidArgument: as Validate, with
// the variable's name.
absl::StatusOr<OtlpSettings> OtlpFromEnvironment(
    const std::function<const char*(const char*)>& variable);

struct OtlpCounters {
  uint64_t exported = 0;
  uint64_t dropped = 0;  // no room, or rejected by the collector
};

class OtlpExporter {
 public:
  static constexpr size_t kMaxWaiting = 32'768;  // spans
  static constexpr size_t kMaxBatch = 512;

  struct Config {
    OtlpSettings settings;
    // Describes the process, e.g. "service.instance.id". Without secrets.
    std::map<std::string, std::string> resource;
    Duration timeout = std::chrono::seconds(3);  // of a call
    // Spans wait this long for others, so that one call sends many.
    Duration linger = std::chrono::seconds(1);
    Duration first_pause = std::chrono::milliseconds(500);
    Duration max_pause = std::chrono::seconds(30);
    // For the remaining spans at the end.
    Duration last_timeout = std::chrono::seconds(2);
  };

  // Listens to `tracer`, which outlives it. kInvalidArgument: as
  // OtlpSettings::Validate. kFailedPrecondition: ca_file cannot be read.
  // kResourceExhausted: no thread, or too many listeners.
  static absl::StatusOr<std::unique_ptr<OtlpExporter>> Start(Config config,
                                                             Tracer* tracer);
  // Sends the remaining spans, for at most last_timeout; sends none if the last
  // call failed.
  ~OtlpExporter();

  OtlpCounters counters() const;

 private:
  struct Channel;
  OtlpExporter(Config config, Tracer* tracer);
  void Run();
  // Sends up to kMaxBatch spans. Returns false if the call failed.
  bool SendOne(Duration timeout, size_t least);
  bool Pause(Duration duration);  // returns false if the exporter ends
  void NoteResult(const absl::Status& status);

  const Config config_;
  Tracer* const tracer_;
  std::unique_ptr<Channel> channel_;
  std::shared_ptr<SpanBuffer> buffer_;
  std::atomic<uint64_t> exported_{0}, refused_{0};
  bool failing_ = false;  // used by the thread only
  mutable Mutex mu_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace leat::rpc
