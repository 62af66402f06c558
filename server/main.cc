// SPDX-License-Identifier: Apache-2.0
//
// leat-coordinator: flags, life cycle, exit codes (0 drained, 1 failed, 2 wrong
// use, 69 could not serve, 74 could not keep its state).
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/time/time.h"
#include "core/counted.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/daemon/daemon_life.h"
#include "rpc/process/confinement.h"
#include "rpc/process/flag_file.h"
#include "rpc/process/process.h"
#include "rpc/process/service_notifier.h"
#include "server/config.h"
#include "server/daemon.h"
#include "server/store/backup.h"

namespace leat::server {
namespace {

// How long threads may take to end after the drain: a disk may not answer.
constexpr auto kEndTime = std::chrono::seconds(2);

constexpr char kProgram[] = "leat-coordinator";
constexpr rpc::DaemonHelp kHelp = {
    .access_token_file =
        "file with the access token that callers must know (or the "
        "environment's LEAT_ACCESS_TOKEN)",
    .tls_cert = "certificate chain, PEM; SIGHUP reads it again",
    .tls_key = "its private key, PEM",
    .tls_ca = "authorities of callers' certificates, PEM; asks for one",
    .insecure =
        "allow unencrypted connections and unknown callers from the network",
    .ready_fd = "write the address to this descriptor when serving",
    .lifeline_fd = "exit when the other end of this pipe closes",
    .shows_defaults = true};

struct Flags {
  rpc::DaemonFlags daemon;
  int64_t heartbeat_interval_ms = 1000, lost_after_ms = 3000;
  std::string job_ttl = "720h", scale_down_after = "10m";
  int64_t drain_timeout_ms = 2000;
  std::string backup_to;
};

void AddFlags(CLI::App* app, Config* config, Flags* flags) {
  app->add_option("--listen", config->listen,
                  "where to listen: HOST:PORT (port 0: any), unix:PATH, "
                  "unix-abstract:NAME; fd:N: an inherited Unix socket that "
                  "listens, for callers of this user")
      ->capture_default_str();
  app->add_option("--http", config->http,
                  "where the page, /livez, /readyz and /metrics are shown: "
                  "HOST:PORT, or a PORT of this machine alone; nowhere without "
                  "it");
  app->add_option("--state", config->state_dir,
                  "directory for what must survive a restart; without it "
                  "everything is in memory");
  app->add_flag("--accept-data-loss", config->accept_data_loss,
                "start with what can be read of a damaged state")
      ->configurable(false);
  rpc::AddSecurityFlags(kHelp, app, &flags->daemon);
  app->add_option("--heartbeat-interval-ms", flags->heartbeat_interval_ms,
                  "how often workers report")
      ->capture_default_str();
  app->add_option("--lost-after-ms", flags->lost_after_ms,
                  "a worker silent for this long owns nothing any more")
      ->capture_default_str();
  app->add_option(
         "--job-ttl", flags->job_ttl,
         "a job unused for this long is deleted, and a dataset without "
         "jobs with its index: 720h, 90m, ...; 0: never")
      ->capture_default_str();
  app->add_option("--scale-down-after", flags->scale_down_after,
                  "a pool gets smaller when its trainers have wanted less than "
                  "it can give for this long: 10m, 90s, ...")
      ->capture_default_str();
  app->add_option("--index-block-bytes", config->coordinator.index_block_bytes,
                  "about how many bytes of an index are kept and sent together")
      ->capture_default_str();
  app->add_option("--cluster", config->coordinator.cluster,
                  "the cluster's name, for people")
      ->capture_default_str();
  app->add_option("--drain-timeout-ms", flags->drain_timeout_ms,
                  "for calls to end by themselves after SIGTERM")
      ->check(CLI::Range(0, 86'400'000))
      ->capture_default_str();
  rpc::AddConnectionFlags(kHelp, app, &flags->daemon);
  rpc::AddConfinementFlag(app, &flags->daemon);
  app->add_option("--backup-to", flags->backup_to,
                  "copy the folder of --state, also while a coordinator uses "
                  "it, into a folder that this makes, and end")
      ->configurable(false);
  rpc::AddProcessFlags(kHelp, app, &flags->daemon);
  app->set_version_flag("--version",
                        fmt::format("leat-coordinator {}", rpc::kLeatVersion));
}

absl::StatusOr<Duration> ParseTime(const char* flag, const std::string& text) {
  absl::Duration time;
  if (!absl::ParseDuration(text, &time) || time < absl::ZeroDuration() ||
      time > absl::Hours(24 * 36500))
    return InvalidArgument(
        "{} {}: want a time such as 720h or 10m, of at most 100 years, or 0",
        flag, text);
  return absl::ToChronoNanoseconds(time);
}

absl::Status Complete(const Flags& flags, Config* config) {
  config->coordinator.heartbeat_interval =
      std::chrono::milliseconds(flags.heartbeat_interval_ms);
  config->coordinator.membership.lost_after =
      std::chrono::milliseconds(flags.lost_after_ms);
  ASSIGN_OR_RETURN(config->coordinator.job_ttl,
                   ParseTime("--job-ttl", flags.job_ttl));
  ASSIGN_OR_RETURN(config->coordinator.scale_down_after,
                   ParseTime("--scale-down-after", flags.scale_down_after));
  config->drain_timeout = std::chrono::milliseconds(flags.drain_timeout_ms);
  config->server.watchdog_interval =
      std::chrono::milliseconds(flags.daemon.watchdog_interval_ms);
  config->server.max_connections = flags.daemon.max_connections;
  config->server.max_connections_per_address =
      flags.daemon.max_connections_per_address;
  std::optional<std::string> access_token;
  if (const char* token = std::getenv("LEAT_ACCESS_TOKEN"))
    access_token = token;
  RETURN_IF_ERROR(rpc::CompleteSecurity(flags.daemon, access_token,
                                        std::getenv("LEAT_TOKEN"),
                                        &config->security));
  if (config->security.system_roots)
    return InvalidArgument(
        "--tls-ca system: want a PEM file of the authorities of callers' "
        "certificates: a public authority would admit every holder of its "
        "certificates");
  return config->Validate();
}

// Runs --backup-to. Returns the exit code.
int BackUp(const std::string& state, const std::string& to) {
  if (state.empty())
    return rpc::Fail(
        kProgram, InvalidArgument("--backup-to {}: want --state, too", to), 2);
  const absl::StatusOr<BackedUp> done = BackUpState(state, to);
  if (!done.ok()) return rpc::Fail(kProgram, done.status(), 1);
  fmt::print("{} has the state of {}: {}, {}, {} of {}\n", to, state,
             Counted(done->sequence, "event"),
             Counted(done->datasets, "dataset"), Counted(done->blocks, "block"),
             Counted(done->block_bytes, "byte"));
  for (const std::string& block : done->without)
    fmt::print(
        "without block {}, which is missing or damaged in {}: its "
        "dataset is listed again when somebody reads it\n",
        block, state);
  return 0;
}

// Returns the exit code if the command line is wrong, or if there is nothing to
// serve (--help, --check-config, --backup-to).
std::optional<int> Parse(int argc, char** argv, Config* config, Flags* flags) {
  CLI::App app(
      "The coordinator of a Leat service: datasets, jobs, membership and who "
      "owns which shard.",
      "leat-coordinator");
  AddFlags(&app, config, flags);
  rpc::FlagFile file(&app);
  if (const auto code = rpc::ParseCommandLine(&app, &file, argc, argv))
    return code;
  if (!flags->backup_to.empty())
    return BackUp(config->state_dir, flags->backup_to);
  absl::Status status = Complete(*flags, config);
  if (status.ok())
    status =
        rpc::CheckListeners(config->security, config->listen, config->http);
  if (!status.ok())
    return rpc::Fail(
        kProgram, InvalidArgument("{}{}", Message(status), file.Origin()), 2);
  if (!file.check()) return std::nullopt;
  fmt::print("the configuration is good{}\n", file.Origin());
  return 0;
}

int Run(int argc, char** argv) {
  rpc::StopSignals signals;
  Config config;
  Flags flags;
  if (const std::optional<int> code = Parse(argc, argv, &config, &flags); code)
    return *code;
  rpc::StartLog(kProgram, flags.daemon);
  rpc::RaiseDescriptorLimit();
  if (absl::Status status = rpc::CheckThreads(/*own=*/0); !status.ok())
    return rpc::Fail(kProgram, status, 1);
  rpc::ServiceNotifier notifier(rpc::WhomToTell(flags.daemon), &Clock::Real());
  config.server.watchdog_interval =
      notifier.WatchdogInterval(config.server.watchdog_interval);
  config.server.on_alive = [&notifier] { notifier.Alive(); };
  LOG_INFO("coordinator.starting {}", config.ToString());
  config.coordinator.not_confined =
      rpc::ConfineDaemon(!flags.daemon.no_seccomp, /*drivers=*/false);
  notifier.Status("reading the state");

  std::atomic<bool> state_failed = false;
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(config, &Clock::Real(), [&](const absl::Status& why) {
        LOG_ERROR("state.failed exit_code={} error=\"{}\"",
                  kStateFailedExitCode, Message(why));
        state_failed = true;
        signals.Ask();
      });
  if (!daemon.ok()) return rpc::FailStart(kProgram, daemon.status());
  LOG_INFO("coordinator.serving address={}", (*daemon)->address());
  rpc::ReportReady(flags.daemon, (*daemon)->address());
  const std::string serving = "serving " + (*daemon)->address();
  notifier.Ready(serving);
  const int signal = rpc::ServeUntilStopped(
      &signals, &notifier, flags.daemon, config.security, serving,
      {.replace =
           [&](const rpc::Security& security) {
             return (*daemon)->Replace(security);
           },
       .reloaded =
           [&](const absl::Status& status) {
             (*daemon)->coordinator().SetReloaded(status);
           }});
  notifier.Stopping("waiting for calls to end");
  LOG_INFO("coordinator.stopping cause={} timeout_ms={}",
           signal == rpc::StopSignals::kLifeline ? "lifeline"
           : signal == rpc::StopSignals::kAsked
               ? "state"
               : fmt::format("signal {}", signal),
           flags.drain_timeout_ms);
  rpc::EndAfter(config.drain_timeout + kEndTime,
                state_failed ? kStateFailedExitCode : 1);
  (*daemon)->Drain();
  return state_failed ? kStateFailedExitCode : 0;
}

}  // namespace
}  // namespace leat::server

int main(int argc, char** argv) { return leat::server::Run(argc, argv); }
