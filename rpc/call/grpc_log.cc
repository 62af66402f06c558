// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/grpc_log.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

#include "core/log.h"
#include "core/mutex.h"
#include "grpc/support/log.h"

namespace leat::rpc {
namespace {

constexpr auto kInterval = std::chrono::seconds(10);
constexpr int kMostInInterval = 10;
constexpr auto kFresh = std::chrono::seconds(1);
constexpr size_t kMostFailures = 64;
constexpr std::string_view kHandshake = "Handshake failed";

struct State {
  Mutex mu;
  bool all = false;  // no line is suppressed; set before gRPC logs
  MonotonicTime interval_at ABSL_GUARDED_BY(mu){};
  int in_interval ABSL_GUARDED_BY(mu) = 0;
  uint64_t held_back ABSL_GUARDED_BY(mu) = 0;
  std::deque<std::pair<MonotonicTime, std::string>> failures
      ABSL_GUARDED_BY(mu);
};

// Never destroyed: gRPC's threads may log while the process ends.
State& TheState() {
  static auto* const state = new State;
  return *state;
}

// Returns whether another line may be written now. Sets `*before` to the number
// of lines suppressed in the previous interval.
bool MayWrite(uint64_t* before) {
  State& state = TheState();
  if (state.all) return true;
  const MonotonicTime now = Clock::Real().Now();
  MutexLock lock(&state.mu);
  if (now - state.interval_at >= kInterval) {
    state.interval_at = now;
    state.in_interval = 0;
    *before = std::exchange(state.held_back, 0);
  }
  if (state.in_interval < kMostInInterval) {
    ++state.in_interval;
    return true;
  }
  ++state.held_back;
  return false;
}

void Write(gpr_log_func_args* args) {
  const std::string_view text = args->message;
  const std::string_view path = args->file;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const char severity = args->severity == GPR_LOG_SEVERITY_ERROR  ? 'E'
                        : args->severity == GPR_LOG_SEVERITY_INFO ? 'I'
                                                                  : 'D';
  State& state = TheState();
  if (text.starts_with(kHandshake)) {
    LOG_DEBUG("grpc.log severity={} at={}:{} text=\"{}\"", severity, file,
              args->line, text);
    MutexLock lock(&state.mu);
    if (state.failures.size() >= kMostFailures) state.failures.pop_front();
    state.failures.emplace_back(Clock::Real().Now(), text);
    return;
  }
  uint64_t before = 0;
  if (!MayWrite(&before)) return;
  if (before > 0) LOG_WARN("grpc.log held_back={}", before);
  if (severity == 'E')
    LOG_WARN("grpc.log severity=E at={}:{} text=\"{}\"", file, args->line,
             text);
  else
    LOG_INFO("grpc.log severity={} at={}:{} text=\"{}\"", severity, file,
             args->line, text);
}

}  // namespace

void LogGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const char* name : {"GRPC_VERBOSITY", "GRPC_TRACE"})
      if (const char* value = std::getenv(name);
          value != nullptr && *value != '\0')
        TheState().all = true;
    gpr_set_log_function(Write);
  });
}

std::optional<std::string> TakeFailedHandshake(MonotonicTime now) {
  State& state = TheState();
  MutexLock lock(&state.mu);
  while (!state.failures.empty()) {
    auto [at, text] = std::move(state.failures.front());
    state.failures.pop_front();
    if (now - at < kFresh) return text;
  }
  return std::nullopt;
}

std::string HandshakeText(std::string_view grpc_text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9>
      kTexts = {
          {{"peer did not return a certificate",
            "it shows no certificate, and --tls-ca wants one"},
           {"certificate verify failed",
            "its certificate is refused: it is not valid, or of no authority "
            "of --tls-ca"},
           {"wrong version number", "it does not speak TLS"},
           {"http request", "it does not speak TLS"},
           {"packet length too long", "it does not speak TLS"},
           {"alert unknown ca",
            "it does not trust the authority of this daemon's certificate"},
           {"alert certificate expired",
            "it finds this daemon's certificate expired"},
           {"alert bad certificate", "it refuses this daemon's certificate"},
           {"alert certificate unknown",
            "it refuses this daemon's certificate"}}};
  for (const auto& [mark, text] : kTexts)
    if (grpc_text.find(mark) != grpc_text.npos) return std::string(text);
  return std::string(grpc_text);
}

}  // namespace leat::rpc
