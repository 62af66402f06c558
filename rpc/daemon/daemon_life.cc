// SPDX-License-Identifier: Apache-2.0
#include "rpc/daemon/daemon_life.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "CLI/CLI.hpp"
#include "core/cluster/roles.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "rpc/call/grpc_log.h"
#include "rpc/process/file_watch.h"
#include "rpc/process/flag_file.h"
#include "rpc/process/journal_log.h"

namespace leat::rpc {
namespace {

bool HasFiles(const DaemonFlags& flags) {
  return !flags.tls.cert.empty() || !flags.tls.ca.empty() ||
         !flags.access_token_file.empty();
}

bool Equal(const Security& a, const Security& b) {
  return a.token == b.token && a.ca_pem == b.ca_pem &&
         a.cert_pem == b.cert_pem && a.key_pem == b.key_pem;
}

// As of sha256sum.
std::string FileText(const std::string& pem) {
  return pem.empty() ? "none" : "sha256 " + ShortHex(HashOf(pem));
}

// A token that is not of the coordinator's list is whatever its operator has
// chosen, so that a hash of it could be guessed from.
std::string TokenChange(const std::string& before, const std::string& now) {
  const std::string_view id = TokenId(now), id_before = TokenId(before);
  if (!id.empty())
    return fmt::format("{}, before {}", id,
                       id_before.empty() ? "another" : id_before);
  if (!id_before.empty()) return fmt::format("another, before {}", id_before);
  return fmt::format("the one before is taken for {} h more",
                     kReplacedTokenAccepted / std::chrono::hours(1));
}

}  // namespace

std::string ChangesText(const Security& before, const Security& now) {
  std::vector<std::string> changes;
  const auto file = [&](const char* flag, const std::string& was,
                        const std::string& is) {
    if (was != is)
      changes.push_back(
          fmt::format("{} ({}, before {})", flag, FileText(is), FileText(was)));
  };
  file("--tls-cert", before.cert_pem, now.cert_pem);
  if (before.key_pem != now.key_pem) changes.emplace_back("--tls-key");
  file("--tls-ca", before.ca_pem, now.ca_pem);
  if (before.token != now.token)
    changes.push_back(fmt::format("--access-token-file ({})",
                                  TokenChange(before.token, now.token)));
  return changes.empty() ? "nothing"
                         : fmt::format("{}", fmt::join(changes, ", "));
}

int Fail(std::string_view program, const absl::Status& status, int code) {
  fmt::print(stderr, "{}: {}\n", program, Message(status));
  return code;
}

int FailStart(std::string_view program, const absl::Status& status) {
  return Fail(program, status, absl::IsInvalidArgument(status) ? 2 : 1);
}

std::optional<int> ParseCommandLine(CLI::App* app, FlagFile* file, int argc,
                                    char** argv) {
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app->exit(error);
    return Fail(app->get_name(), FlagError(*app, error), 2);
  }
  if (absl::Status status = file->Apply(); !status.ok())
    return Fail(app->get_name(), status, 2);
  if (!file->print()) return std::nullopt;
  fmt::print("{}", file->Text());
  return 0;
}

void StartLog(const std::string& program, const DaemonFlags& flags) {
  const bool json = flags.log_format == "json";
  InitLog(program, json ? LogFormat::kJson : LogFormat::kText,
          spdlog::level::from_str(flags.log_level));
  if (!json) LogForJournal(std::getenv("JOURNAL_STREAM"));
  LogGrpc();
}

NotifySettings WhomToTell(const DaemonFlags& flags) {
  if (flags.lifeline_fd >= 0) return {};
  return NotifySettings::Read(
      [](const char* name) -> const char* { return std::getenv(name); },
      getpid());
}

void ReportReady(const DaemonFlags& flags, const std::string& address) {
  if (flags.ready_fd < 0) return;
  const std::string line = address + "\n";
  if (write(flags.ready_fd, line.data(), line.size()) !=
      static_cast<ssize_t>(line.size()))
    LOG_WARN("ready.not_told fd={}", flags.ready_fd);
  close(flags.ready_fd);
}

int ServeUntilStopped(StopSignals* signals, ServiceNotifier* notifier,
                      const DaemonFlags& flags, const Security& security,
                      const std::string& serving, const ReloadHooks& hooks) {
  Security last = security;
  bool in_use = true;  // the files as they are
  const auto reload = [&](bool asked) {
    if (!HasFiles(flags)) return;
    Security read = security;
    absl::Status status = ReadSecurity(flags, &read);
    if (status.ok() && in_use && !asked && Equal(read, last)) return;
    if (status.ok()) status = hooks.replace(read);
    in_use = status.ok();
    hooks.reloaded(status);
    if (!status.ok()) {
      LOG_ERROR("tls.not_reloaded error=\"{}\"", Message(status));
      return;
    }
    LOG_INFO("tls.reloaded changed=\"{}\"", ChangesText(last, read));
    last = read;
  };
  FileWatch files({flags.tls.cert, flags.tls.key, CaFileOf(flags.tls),
                   flags.access_token_file});
  return signals->Wait(flags.lifeline_fd, &files, [&](bool asked) {
    if (asked) notifier->Reloading();
    reload(asked);
    if (asked) notifier->Ready(serving);
  });
}

}  // namespace leat::rpc
