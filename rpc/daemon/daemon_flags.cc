// SPDX-License-Identifier: Apache-2.0
#include "rpc/daemon/daemon_flags.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "core/cluster/roles.h"
#include "core/status.h"
#include "rpc/http/status_server.h"
#include "rpc/tls/server_tls.h"

namespace leat::rpc {
namespace {

void ShowDefault(const DaemonHelp& help, CLI::Option* option) {
  if (help.shows_defaults) option->capture_default_str();
}

}  // namespace

void AddConnectionFlags(const DaemonHelp& help, CLI::App* app,
                        DaemonFlags* flags) {
  app->add_option("--max-connections", flags->max_connections,
                  "connections at a time; 0: by the limit of descriptors");
  app->add_option("--max-connections-per-address",
                  flags->max_connections_per_address,
                  "connections from one IP address at a time; 0: half of all");
  ShowDefault(
      help,
      app->add_option("--watchdog-interval-ms", flags->watchdog_interval_ms,
                      "how often this process asks itself whether it answers; "
                      "after three misses in a row it ends; 0: never")
          ->check(CLI::Range(0, 86'400'000)));
}

void AddConfinementFlag(CLI::App* app, DaemonFlags* flags) {
  app->add_flag("--no-seccomp", flags->no_seccomp,
                "this process may start programs, and whatever else its user "
                "may: no filter of system calls");
}

void AddSecurityFlags(const DaemonHelp& help, CLI::App* app,
                      DaemonFlags* flags) {
  app->add_option("--access-token-file", flags->access_token_file,
                  help.access_token_file);
  app->add_option("--tls-cert", flags->tls.cert, help.tls_cert);
  app->add_option("--tls-key", flags->tls.key, help.tls_key);
  app->add_option("--tls-ca", flags->tls.ca, help.tls_ca);
  app->add_option("--role-from-san", flags->san_roles,
                  "PATTERN=ROLE: the role of callers whose certificate has "
                  "such a DNS name or URI; the first that fits counts");
  app->add_flag("--insecure", flags->insecure, help.insecure);
}

void AddProcessFlags(const DaemonHelp& help, CLI::App* app,
                     DaemonFlags* flags) {
  ShowDefault(
      help,
      app->add_option("--log-format", flags->log_format,
                      "text or json; text has no time for systemd's journal, "
                      "which adds it")
          ->check(CLI::IsMember({"text", "json"})));
  ShowDefault(
      help,
      app->add_option("--log-level", flags->log_level,
                      "trace, debug, info, warn or error")
          ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"})));
  app->add_option("--ready-fd", flags->ready_fd, help.ready_fd)
      ->configurable(false);
  app->add_option("--lifeline-fd", flags->lifeline_fd, help.lifeline_fd)
      ->configurable(false);
}

absl::Status ReadSecurity(const DaemonFlags& flags, Security* into) {
  Security read = *into;
  RETURN_IF_ERROR(ReadTls(flags.tls, &read));
  if (!flags.access_token_file.empty()) {
    ASSIGN_OR_RETURN(read.token, ReadAccessToken(flags.access_token_file));
  }
  *into = std::move(read);
  return absl::OkStatus();
}

absl::Status CompleteSecurity(const DaemonFlags& flags,
                              const std::optional<std::string>& access_token,
                              const char* leat_token, Security* into) {
  into->insecure = flags.insecure;
  if (flags.access_token_file.empty() && access_token) {
    if (access_token->empty())
      return InvalidArgument(
          "LEAT_ACCESS_TOKEN is set and empty: want a token, or that it is "
          "not set");
    ASSIGN_OR_RETURN(into->token,
                     TokenIn("LEAT_ACCESS_TOKEN", *access_token, kMinOwnToken));
  }
  RETURN_IF_ERROR(RefuseOtherTokens(leat_token));
  RETURN_IF_ERROR(ReadSecurity(flags, into));
  for (const std::string& text : flags.san_roles) {
    ASSIGN_OR_RETURN(SanRole rule, ParseSanRole(text));
    into->san_roles.push_back(std::move(rule));
  }
  return absl::OkStatus();
}

absl::Status CheckConnectionFlags(int max_connections,
                                  int max_connections_per_address) {
  if (max_connections >= 0 && max_connections_per_address >= 0)
    return absl::OkStatus();
  return InvalidArgument(
      "--max-connections {}, --max-connections-per-address {}: want 0 or more",
      max_connections, max_connections_per_address);
}

absl::Status CheckListeners(const Security& security, const std::string& listen,
                            const std::string& http) {
  RETURN_IF_ERROR(CheckListener(security, listen));
  RETURN_IF_ERROR(security.cert_pem.empty() ? CheckRoots(security)
                                            : CheckTls(security));
  if (http.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string address, HttpAddress(http));
  if (absl::Status allowed = CheckListener(security, address); !allowed.ok())
    return Annotate(allowed, "--http");
  return absl::OkStatus();
}

}  // namespace leat::rpc
