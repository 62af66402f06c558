// SPDX-License-Identifier: Apache-2.0
//
// leat-worker. Exit codes: 0 after a drain, 1 failed, 2 wrong flags, 69 answers
// no calls, 130 or 143 after a second signal. `leat-worker index URI` is not a
// daemon (worker/index_command/index_command.h).
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/log.h"
#include "core/status.h"
#include "rpc/daemon/daemon_life.h"
#include "rpc/process/confinement.h"
#include "rpc/process/process.h"
#include "rpc/process/service_notifier.h"
#include "rpc/tracing/otlp_exporter.h"
#include "worker/config/config.h"
#include "worker/index_command/index_command.h"
#include "worker/worker.h"

namespace {

constexpr char kProgram[] = "leat-worker";
// The time to stop what still runs after the drain, or without one.
constexpr leat::Duration kTakeDown =
    leat::worker::Worker::kStopTime + std::chrono::seconds(1);

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

leat::rpc::ReloadHooks HooksOf(leat::worker::Worker* worker) {
  return {.replace =
              [worker](const leat::rpc::Security& security) {
                return worker->Replace(security);
              },
          .reloaded =
              [worker](const absl::Status& status) {
                worker->SetReloaded(status);
              }};
}

int Run(leat::worker::Config config, leat::rpc::StopSignals* signals) {
  leat::rpc::ServiceNotifier notifier(leat::rpc::WhomToTell(config.daemon),
                                      &leat::Clock::Real());
  int64_t& watchdog_ms = config.daemon.watchdog_interval_ms;
  watchdog_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(
          notifier.WatchdogInterval(std::chrono::milliseconds(watchdog_ms)))
          .count();
  std::atomic<bool> refused{false}, broken{false};
  const auto fail = [signals](std::string_view what, const absl::Status& status,
                              std::atomic<bool>* why) {
    fmt::print(stderr, "leat-worker: {}{}\n", what, leat::Message(status));
    *why = true;
    signals->Ask();
  };
  // The address is known once Start has returned; on_ready may come before.
  std::atomic<int> steps{0};
  std::string address;
  const auto ready_step = [&] {
    if (++steps != 2) return;
    leat::rpc::ReportReady(config.daemon, address);
    notifier.Status(
        fmt::format("serving {}, known to {}", address, config.coordinator));
  };
  std::atomic<bool> started{false};
  auto worker = leat::worker::Worker::Start(
      config, {.on_ready = ready_step,
               .on_alive = [&] { notifier.Alive(); },
               .on_refused =
                   [&](const absl::Status& status) {
                     fail(fmt::format("coordinator {}: ", config.coordinator),
                          status, &refused);
                   },
               .on_fatal =
                   [&](const absl::Status& status) {
                     fail("", status, &broken);
                     // A GPU that does not come back blocks Start, too.
                     if (!started) std::_Exit(1);
                   },
               .confine =
                   [&config](bool devices) {
                     return leat::rpc::ConfineDaemon(!config.daemon.no_seccomp,
                                                     devices);
                   }});
  started = true;
  if (!worker.ok()) return leat::rpc::FailStart(kProgram, worker.status());
  address = (*worker)->address();
  // systemd need not wait for a coordinator that starts later.
  notifier.Ready(fmt::format("serving {}, waiting for the coordinator {}",
                             address, config.coordinator));
  ready_step();
  const int signal = leat::rpc::ServeUntilStopped(
      signals, &notifier, config.daemon, config.security,
      fmt::format("serving {}", address), HooksOf(worker->get()));
  notifier.Stopping("finishing what was asked");
  // No client is left to serve, and nothing here is worth a clean end.
  if (signal == leat::rpc::StopSignals::kLifeline) std::_Exit(0);
  if (refused) {
    leat::rpc::EndAfter(kTakeDown, 1);
    return 1;
  }
  // With a broken GPU even an orderly end may hang; other workers take over
  // when the connections break.
  if (broken) std::_Exit(1);
  LOG_INFO("worker.stopping signal={}", signal);
  leat::rpc::EndAfter(
      std::chrono::milliseconds(config.drain_timeout_ms) + kTakeDown, 0);
  if (!(*worker)->Drain()) std::_Exit(0);
  leat::rpc::EndAfter(kTakeDown, 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "index") {
    // The command reads untrusted bytes. If the kernel has no filter, it runs
    // without one.
    leat::rpc::Confine(/*drivers=*/false).IgnoreError();
    return leat::worker::RunIndexCommand(argc - 1, argv + 1);
  }
  leat::rpc::StopSignals signals;
  // Other programs use these variables, too: a value that Leat does not accept
  // must not keep the worker from serving.
  const absl::StatusOr<leat::rpc::OtlpSettings> otlp =
      leat::rpc::OtlpFromEnvironment(
          [](const char* name) -> const char* { return std::getenv(name); });
  if (!otlp.ok())
    fmt::print(stderr, "leat-worker: {}; nothing is traced\n",
               leat::Message(otlp.status()));
  std::optional<std::string> access_token;
  if (const char* token = std::getenv("LEAT_ACCESS_TOKEN"))
    access_token = token;
  auto flags = leat::worker::ParseFlags(
      argc, argv,
      {.access_token = std::move(access_token),
       .coordinator = FromEnvironment("LEAT_COORDINATOR"),
       .transport = FromEnvironment("LEAT_TRANSPORT"),
       .leat_token = FromEnvironment("LEAT_TOKEN"),
       .pool = FromEnvironment("LEAT_POOL"),
       .otlp = otlp.value_or(leat::rpc::OtlpSettings()),
       .slurm_cpus = FromEnvironment("SLURM_CPUS_PER_TASK"),
       .slurm_memory = FromEnvironment("SLURM_MEM_PER_NODE"),
       .slurm_memory_per_cpu = FromEnvironment("SLURM_MEM_PER_CPU")});
  if (const int* code = std::get_if<int>(&flags)) return *code;
  const auto& config = std::get<leat::worker::Config>(flags);
  leat::rpc::StartLog(kProgram, config.daemon);
  if (!FromEnvironment("GRPC_EXPERIMENTS").empty())
    LOG_WARN("worker.environment GRPC_EXPERIMENTS=\"{}\" note=\"untested\"",
             FromEnvironment("GRPC_EXPERIMENTS"));
  leat::rpc::RaiseDescriptorLimit();
  if (absl::Status status = leat::rpc::CheckThreads(config.threads);
      !status.ok())
    return leat::rpc::Fail(kProgram, status, 1);
  return Run(config, &signals);
}
