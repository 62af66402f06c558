// SPDX-License-Identifier: Apache-2.0
//
// leat-worker. Exit codes: 0 after a drain, 1 failed, 2 wrong flags, 69
// answered nobody, 130 or 143 after a second signal. `leat-worker index URI` is
// no daemon (worker/index_command/index_command.h).
#include <unistd.h>

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
#include "rpc/call/grpc_log.h"
#include "rpc/process/confinement.h"
#include "rpc/process/journal_log.h"
#include "rpc/process/process.h"
#include "rpc/process/service_notifier.h"
#include "rpc/tls/secret_files.h"
#include "rpc/tracing/otlp_exporter.h"
#include "worker/config/config.h"
#include "worker/index_command/index_command.h"
#include "worker/worker.h"

namespace {

// To take down what is left after the drain, or without one.
constexpr leat::Duration kTakeDown =
    leat::worker::Worker::kStopTime + std::chrono::seconds(1);

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Tells the one who started us, once.
void SayReady(int fd, const std::string& address) {
  if (fd < 0) return;
  const std::string line = address + "\n";
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    LOG_WARN("worker.ready_fd fd={} error=\"cannot be written\"", fd);
  close(fd);
}

bool Equal(const leat::rpc::Security& a, const leat::rpc::Security& b) {
  return a.token == b.token && a.ca_pem == b.ca_pem &&
         a.cert_pem == b.cert_pem && a.key_pem == b.key_pem;
}

// What SIGHUP (`asked`) does, and a change of the files: the certificates and
// the token are read again. What is wrong with them is logged, and the last
// good ones, `*last`, stay.
void Reload(const leat::worker::Config& config, bool asked,
            leat::rpc::Security* last, leat::worker::Worker* worker) {
  if (config.tls.cert.empty() && config.tls.ca.empty() &&
      config.access_token_file.empty())
    return;
  leat::rpc::Security security = config.security;
  absl::Status status = config.ReadSecurity(&security);
  if (status.ok() && !asked && Equal(security, *last)) return;
  if (status.ok()) status = worker->Replace(security);
  if (!status.ok()) {
    LOG_ERROR("tls.not_reloaded error=\"{}\"", leat::Message(status));
    return;
  }
  *last = security;
  LOG_INFO("tls.reloaded");
}

// A daemon on a lifeline belongs to the process at its other end, and systemd
// is told of that process, if of any.
leat::rpc::NotifySettings WhomToTell(const leat::worker::Config& config) {
  if (config.lifeline_fd >= 0) return {};
  return leat::rpc::NotifySettings::Read(
      [](const char* name) -> const char* { return std::getenv(name); },
      getpid());
}

int Run(leat::worker::Config config, leat::rpc::StopSignals* signals) {
  leat::rpc::ServiceNotifier notifier(WhomToTell(config), &leat::Clock::Real());
  config.watchdog_interval_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(
          notifier.WatchdogInterval(
              std::chrono::milliseconds(config.watchdog_interval_ms)))
          .count();
  std::atomic<bool> refused{false}, broken{false};
  const auto fail = [signals](std::string_view what, const absl::Status& status,
                              std::atomic<bool>* why) {
    fmt::print(stderr, "leat-worker: {}{}\n", what, leat::Message(status));
    *why = true;
    signals->Ask();
  };
  // The address is known once Start has returned; readiness may come before.
  std::atomic<int> steps{0};
  std::string address;
  const auto ready_step = [&] {
    if (++steps != 2) return;
    SayReady(config.ready_fd, address);
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
                     // A GPU that does not come back holds up the start, too.
                     if (!started) std::_Exit(1);
                   },
               .confine =
                   [&config](bool devices) {
                     return leat::rpc::ConfineDaemon(!config.no_seccomp,
                                                     devices);
                   }});
  started = true;
  if (!worker.ok()) {
    fmt::print(stderr, "leat-worker: {}\n", leat::Message(worker.status()));
    return 1;
  }
  address = (*worker)->address();
  // systemd is not kept waiting for a coordinator that starts later.
  notifier.Ready(fmt::format("serving {}, waiting for the coordinator {}",
                             address, config.coordinator));
  ready_step();
  leat::rpc::Security last = config.security;
  leat::rpc::FileWatch files({config.tls.cert, config.tls.key,
                              leat::rpc::CaFileOf(config.tls),
                              config.access_token_file});
  const int signal = signals->Wait(config.lifeline_fd, &files, [&](bool asked) {
    if (asked) notifier.Reloading();
    Reload(config, asked, &last, worker->get());
    if (asked) notifier.Ready(fmt::format("serving {}", address));
  });
  notifier.Stopping("finishing what was asked");
  // Nobody is left to serve, and nothing here is worth a clean end.
  if (signal == leat::rpc::StopSignals::kLifeline) std::_Exit(0);
  if (refused) {
    leat::rpc::EndAfter(kTakeDown, 1);
    return 1;
  }
  // With a GPU that is out of order even an orderly end may hang; others take
  // over when the connections break.
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
    // It reads bytes that may be anybody's. Where the kernel has no filter it
    // goes on without.
    leat::rpc::Confine(/*drivers=*/false).IgnoreError();
    return leat::worker::RunIndexCommand(argc - 1, argv + 1);
  }
  leat::rpc::StopSignals signals;
  // The variables are other programs', too: what Leat does not take of them
  // keeps no worker from serving.
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
       .plane = FromEnvironment("LEAT_PLANE"),
       .leat_token = FromEnvironment("LEAT_TOKEN"),
       .pool = FromEnvironment("LEAT_POOL"),
       .otlp = otlp.value_or(leat::rpc::OtlpSettings()),
       .slurm_cpus = FromEnvironment("SLURM_CPUS_PER_TASK"),
       .slurm_memory = FromEnvironment("SLURM_MEM_PER_NODE"),
       .slurm_memory_per_cpu = FromEnvironment("SLURM_MEM_PER_CPU")});
  if (const int* code = std::get_if<int>(&flags)) return *code;
  const auto& config = std::get<leat::worker::Config>(flags);
  leat::InitLog("leat-worker", config.log_format,
                spdlog::level::from_str(config.log_level));
  if (config.log_format == leat::LogFormat::kText)
    leat::rpc::LogForJournal(std::getenv("JOURNAL_STREAM"));
  leat::rpc::LogGrpc();
  if (!FromEnvironment("GRPC_EXPERIMENTS").empty())
    LOG_WARN("worker.environment GRPC_EXPERIMENTS=\"{}\" note=\"untested\"",
             FromEnvironment("GRPC_EXPERIMENTS"));
  leat::rpc::RaiseDescriptorLimit();
  if (absl::Status status = leat::rpc::CheckThreads(config.threads);
      !status.ok()) {
    fmt::print(stderr, "leat-worker: {}\n", leat::Message(status));
    return 1;
  }
  return Run(config, &signals);
}
