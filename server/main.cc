// SPDX-License-Identifier: Apache-2.0
//
// leat-coordinator: flags, life cycle, exit codes (0 drained, 1 failed, 2 wrong
// use, 69 answered nobody, 74 could not keep its state).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/time/time.h"
#include "core/cluster/roles.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/call/grpc_log.h"
#include "rpc/http/status_server.h"
#include "rpc/process/confinement.h"
#include "rpc/process/flag_file.h"
#include "rpc/process/journal_log.h"
#include "rpc/process/process.h"
#include "rpc/process/service_notifier.h"
#include "rpc/tls/secret_files.h"
#include "server/config.h"
#include "server/daemon.h"
#include "server/store/backup.h"

namespace leat::server {
namespace {

// For the threads to end, after the drain: a disk may not answer.
constexpr auto kEndTime = std::chrono::seconds(2);

struct Flags {
  std::string access_token_file;
  rpc::TlsFiles tls;
  std::string log_format = "text", log_level = "info";
  int64_t heartbeat_interval_ms = 1000, lost_after_ms = 3000;
  std::string job_ttl = "720h", scale_down_after = "10m";
  int64_t drain_timeout_ms = 2000, watchdog_interval_ms = 10'000;
  int ready_fd = -1, lifeline_fd = -1;
  bool no_seccomp = false;
  std::string backup_to;
  std::vector<std::string> san_roles;
};

void AddServerFlags(CLI::App* app, rpc::ServerOptions* options, Flags* flags) {
  app->add_option("--max-connections", options->max_connections,
                  "connections at a time; 0: by the limit of descriptors");
  app->add_option("--max-connections-per-address",
                  options->max_connections_per_address,
                  "of them from one IP address; 0: half");
  app->add_option("--watchdog-interval-ms", flags->watchdog_interval_ms,
                  "how often this process asks itself whether it answers; "
                  "after three misses in a row it ends; 0: never")
      ->check(CLI::Range(0, 86'400'000))
      ->capture_default_str();
  app->add_flag("--no-seccomp", flags->no_seccomp,
                "this process may start programs, and whatever else its user "
                "may: no filter of system calls");
}

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
  app->add_option("--access-token-file", flags->access_token_file,
                  "file with the access token that callers must know (or the "
                  "environment's LEAT_ACCESS_TOKEN)");
  app->add_option("--tls-cert", flags->tls.cert,
                  "certificate chain, PEM; SIGHUP reads it again");
  app->add_option("--tls-key", flags->tls.key, "its private key, PEM");
  app->add_option("--tls-ca", flags->tls.ca,
                  "authorities of callers' certificates, PEM; asks for one");
  app->add_option("--role-from-san", flags->san_roles,
                  "PATTERN=ROLE: the role of callers whose certificate has "
                  "such a DNS name or URI; the first that fits counts");
  app->add_flag(
      "--insecure", config->security.insecure,
      "allow unencrypted connections and unknown callers from the network");
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
  AddServerFlags(app, &config->server, flags);
  app->add_option("--log-format", flags->log_format,
                  "text or json; text has no time for systemd's journal, which "
                  "adds it")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app->add_option("--log-level", flags->log_level,
                  "trace, debug, info, warn or error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
  app->add_option("--ready-fd", flags->ready_fd,
                  "write the address to this descriptor when serving")
      ->configurable(false);
  app->add_option("--backup-to", flags->backup_to,
                  "copy the folder of --state, also while a coordinator uses "
                  "it, into a folder that this makes, and end")
      ->configurable(false);
  app->add_option("--lifeline-fd", flags->lifeline_fd,
                  "exit when the other end of this pipe closes")
      ->configurable(false);
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
      std::chrono::milliseconds(flags.watchdog_interval_ms);
  rpc::Security& security = config->security;
  if (!flags.access_token_file.empty()) {
    ASSIGN_OR_RETURN(security.token,
                     rpc::ReadAccessToken(flags.access_token_file));
  } else if (const char* token = std::getenv("LEAT_ACCESS_TOKEN")) {
    if (*token == '\0')
      return InvalidArgument(
          "LEAT_ACCESS_TOKEN is set and empty: want a token, or that it is "
          "not set");
    ASSIGN_OR_RETURN(security.token,
                     TokenIn("LEAT_ACCESS_TOKEN", token, kMinOwnToken));
  }
  RETURN_IF_ERROR(rpc::RefuseOtherTokens(std::getenv("LEAT_TOKEN")));
  RETURN_IF_ERROR(rpc::ReadTls(flags.tls, &security));
  if (security.system_roots)
    return InvalidArgument(
        "--tls-ca system: want a PEM file of the authorities of callers' "
        "certificates: whoever has a certificate for a name of the internet "
        "would be let in");
  for (const std::string& text : flags.san_roles) {
    ASSIGN_OR_RETURN(rpc::SanRole rule, rpc::ParseSanRole(text));
    security.san_roles.push_back(std::move(rule));
  }
  return config->Validate();
}

// What a start would say of the addresses.
absl::Status CheckListeners(const Config& config) {
  RETURN_IF_ERROR(rpc::CheckListener(config.security, config.listen));
  if (config.http.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string http, rpc::HttpAddress(config.http));
  return rpc::CheckListener(config.security, http);
}

int Fail(const absl::Status& status, int code) {
  const std::string_view text = Message(status);
  std::fprintf(stderr, "leat-coordinator: %.*s\n",
               static_cast<int>(text.size()), text.data());
  return code;
}

void ReportReady(int fd, const std::string& address) {
  if (fd < 0) return;
  const std::string line = address + "\n";
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    LOG_WARN("ready.not_told fd={}", fd);
  close(fd);
}

// What SIGHUP does, and a change of the files: certificates and the access
// token are read again. What is wrong with them is logged, and the last good
// ones stay.
void Reload(const Flags& flags, rpc::Security security, Daemon* daemon) {
  absl::Status status;
  if (!flags.access_token_file.empty()) {
    absl::StatusOr<std::string> token =
        rpc::ReadAccessToken(flags.access_token_file);
    status = token.status();
    if (token.ok()) security.token = *std::move(token);
  }
  if (status.ok()) status = rpc::ReadTls(flags.tls, &security);
  if (status.ok()) status = daemon->Replace(security);
  if (!status.ok()) LOG_ERROR("tls.not_reloaded error=\"{}\"", Message(status));
}

// What --backup-to does. Returns the exit code.
int BackUp(const std::string& state, const std::string& to) {
  if (state.empty())
    return Fail(InvalidArgument("--backup-to {}: want --state, too", to), 2);
  const absl::StatusOr<BackedUp> done = BackUpState(state, to);
  if (!done.ok()) return Fail(done.status(), 1);
  fmt::print(
      "{} has the state of {}: {} events, {} datasets, {} blocks of {} "
      "bytes\n",
      to, state, done->sequence, done->datasets, done->blocks,
      done->block_bytes);
  for (const std::string& block : done->without)
    fmt::print(
        "without block {}, which is missing or damaged in {}: its "
        "dataset is listed again when somebody reads it\n",
        block, state);
  return 0;
}

// The exit code of a command line that is wrong, or that asks for nothing to be
// served (--help, --check-config, --backup-to).
std::optional<int> Parse(int argc, char** argv, Config* config, Flags* flags) {
  CLI::App app(
      "The coordinator of a Leat service: datasets, jobs, membership and who "
      "owns which shard.",
      "leat-coordinator");
  AddFlags(&app, config, flags);
  rpc::FlagFile file(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return Fail(rpc::FlagError(app, error), 2);
  }
  if (absl::Status status = file.Apply(); !status.ok()) return Fail(status, 2);
  if (file.print()) {
    fmt::print("{}", file.Text());
    return 0;
  }
  if (!flags->backup_to.empty())
    return BackUp(config->state_dir, flags->backup_to);
  absl::Status status = Complete(*flags, config);
  if (file.check() && status.ok()) status = CheckListeners(*config);
  if (!status.ok())
    return Fail(
        MakeStatus(status.code(), "{}{}", Message(status), file.Origin()),
        absl::IsInvalidArgument(status) ? 2 : 1);
  if (!file.check()) return std::nullopt;
  fmt::print("the configuration is good{}\n", file.Origin());
  return 0;
}

// A daemon on a lifeline belongs to the process at its other end, and systemd
// is told of that process, if of any.
rpc::NotifySettings WhomToTell(const Flags& flags) {
  if (flags.lifeline_fd >= 0) return {};
  return rpc::NotifySettings::Read(
      [](const char* name) -> const char* { return std::getenv(name); },
      getpid());
}

int Run(int argc, char** argv) {
  rpc::StopSignals signals;
  Config config;
  Flags flags;
  if (const std::optional<int> code = Parse(argc, argv, &config, &flags); code)
    return *code;
  InitLog("leat-coordinator",
          flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText,
          spdlog::level::info);
  if (flags.log_format == "text")
    rpc::LogForJournal(std::getenv("JOURNAL_STREAM"));
  rpc::LogGrpc();
  if (absl::Status status = SetLogLevel(flags.log_level); !status.ok())
    return Fail(status, 2);
  rpc::RaiseDescriptorLimit();
  if (absl::Status status = rpc::CheckThreads(/*own=*/0); !status.ok())
    return Fail(status, 1);
  rpc::ServiceNotifier notifier(WhomToTell(flags), &Clock::Real());
  config.server.watchdog_interval =
      notifier.WatchdogInterval(config.server.watchdog_interval);
  config.server.on_alive = [&notifier] { notifier.Alive(); };
  LOG_INFO("coordinator.starting {}", config.ToString());
  config.coordinator.not_confined =
      rpc::ConfineDaemon(!flags.no_seccomp, /*drivers=*/false);
  notifier.Status("reading the state");

  std::atomic<bool> state_failed = false;
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(config, &Clock::Real(), [&](const absl::Status& why) {
        LOG_ERROR("state.failed exit_code={} error=\"{}\"",
                  kStateFailedExitCode, Message(why));
        state_failed = true;
        signals.Ask();
      });
  if (!daemon.ok())
    return Fail(daemon.status(),
                absl::IsInvalidArgument(daemon.status()) ? 2 : 1);
  LOG_INFO("coordinator.serving address={}", (*daemon)->address());
  ReportReady(flags.ready_fd, (*daemon)->address());
  const std::string serving = "serving " + (*daemon)->address();
  notifier.Ready(serving);
  rpc::FileWatch files({flags.tls.cert, flags.tls.key, rpc::CaFileOf(flags.tls),
                        flags.access_token_file});
  const int signal = signals.Wait(flags.lifeline_fd, &files, [&](bool asked) {
    if (asked) notifier.Reloading();
    Reload(flags, config.security, daemon->get());
    if (asked) notifier.Ready(serving);
  });
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
