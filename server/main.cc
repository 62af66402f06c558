// SPDX-License-Identifier: Apache-2.0
//
// leat-coordinator: flags, life cycle, exit codes (0 drained, 1 failed, 2 wrong
// use).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "absl/time/time.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/server.h"
#include "server/config.h"
#include "server/daemon.h"

namespace leat::server {
namespace {

struct Flags {
  std::string token_file, tls_cert, tls_key, tls_ca;
  std::string log_format = "text", log_level = "info";
  int64_t heartbeat_interval_ms = 1000, lost_after_ms = 3000;
  std::string job_ttl = "720h";
  int ready_fd = -1, lifeline_fd = -1;
};

void AddFlags(CLI::App* app, Config* config, Flags* flags) {
  app->add_option("--listen", config->listen,
                  "where to listen: HOST:PORT (port 0: any), unix:PATH, "
                  "unix-abstract:NAME")
      ->capture_default_str();
  app->add_option("--state", config->state_dir,
                  "directory for what must survive a restart; without it "
                  "everything is in memory");
  app->add_flag("--accept-data-loss", config->accept_data_loss,
                "start with what can be read of a damaged state");
  app->add_option("--token-file", flags->token_file,
                  "file with the token that callers must know (or the "
                  "environment's LEAT_TOKEN)");
  app->add_option("--tls-cert", flags->tls_cert, "certificate chain, PEM");
  app->add_option("--tls-key", flags->tls_key, "its private key, PEM");
  app->add_option("--tls-ca", flags->tls_ca,
                  "authorities of callers' certificates, PEM; asks for one");
  app->add_flag("--insecure", config->security.insecure,
                "allow unencrypted connections from the network");
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
  app->add_option("--cluster", config->coordinator.cluster,
                  "the cluster's name, for people")
      ->capture_default_str();
  app->add_option("--log-format", flags->log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app->add_option("--log-level", flags->log_level,
                  "trace, debug, info, warn or error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
  app->add_option("--ready-fd", flags->ready_fd,
                  "write the address to this descriptor when serving");
  app->add_option("--lifeline-fd", flags->lifeline_fd,
                  "exit when the other end of this pipe closes");
  app->set_version_flag("--version", std::string(rpc::kLeatVersion));
}

absl::Status Complete(const Flags& flags, Config* config) {
  config->coordinator.heartbeat_interval =
      std::chrono::milliseconds(flags.heartbeat_interval_ms);
  config->coordinator.membership.lost_after =
      std::chrono::milliseconds(flags.lost_after_ms);
  absl::Duration job_ttl;
  if (!absl::ParseDuration(flags.job_ttl, &job_ttl) ||
      job_ttl < absl::ZeroDuration() || job_ttl > absl::Hours(24 * 36500))
    return InvalidArgument(
        "--job-ttl {}: want a time such as 720h, of at most 100 years, or 0",
        flags.job_ttl);
  config->coordinator.job_ttl = absl::ToChronoNanoseconds(job_ttl);
  rpc::Security& security = config->security;
  if (!flags.token_file.empty()) {
    ASSIGN_OR_RETURN(security.token, ReadToken(flags.token_file));
  } else if (const char* token = std::getenv("LEAT_TOKEN")) {
    security.token = token;
  }
  if (!flags.tls_cert.empty()) {
    ASSIGN_OR_RETURN(security.cert_pem, ReadPem(flags.tls_cert));
  }
  if (!flags.tls_key.empty()) {
    ASSIGN_OR_RETURN(security.key_pem, ReadPem(flags.tls_key));
  }
  if (!flags.tls_ca.empty()) {
    ASSIGN_OR_RETURN(security.ca_pem, ReadPem(flags.tls_ca));
  }
  return config->Validate();
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

int Run(int argc, char** argv) {
  rpc::BlockStopSignals();
  Config config;
  Flags flags;
  CLI::App app(
      "The coordinator of a Leat service: datasets, jobs, membership and who "
      "owns which shard.",
      "leat-coordinator");
  AddFlags(&app, &config, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (absl::Status status = Complete(flags, &config); !status.ok())
    return Fail(status, absl::IsInvalidArgument(status) ? 2 : 1);
  InitLog("leat-coordinator",
          flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText,
          spdlog::level::info);
  if (absl::Status status = SetLogLevel(flags.log_level); !status.ok())
    return Fail(status, 2);
  LOG_INFO("coordinator.starting {}", config.ToString());

  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(config, &Clock::Real());
  if (!daemon.ok())
    return Fail(daemon.status(),
                absl::IsInvalidArgument(daemon.status()) ? 2 : 1);
  LOG_INFO("coordinator.serving address={}", (*daemon)->address());
  ReportReady(flags.ready_fd, (*daemon)->address());
  const int signal = rpc::WaitForStop(flags.lifeline_fd);
  LOG_INFO("coordinator.stopping cause={}",
           signal == 0 ? "lifeline" : fmt::format("signal {}", signal));
  (*daemon)->Drain();
  return 0;
}

}  // namespace
}  // namespace leat::server

int main(int argc, char** argv) { return leat::server::Run(argc, argv); }
