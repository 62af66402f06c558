// SPDX-License-Identifier: Apache-2.0
#include "rpc/daemon/daemon_life.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "CLI/CLI.hpp"
#include "core/log.h"
#include "core/status.h"
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

}  // namespace

int Fail(std::string_view program, const absl::Status& status, int code) {
  fmt::print(stderr, "{}: {}\n", program, Message(status));
  return code;
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

int ServeUntilStopped(
    StopSignals* signals, ServiceNotifier* notifier, const DaemonFlags& flags,
    const Security& security, const std::string& serving,
    const std::function<absl::Status(const Security&)>& replace) {
  Security last = security;
  const auto reload = [&](bool asked) {
    if (!HasFiles(flags)) return;
    Security read = security;
    absl::Status status = ReadSecurity(flags, &read);
    if (status.ok() && !asked && Equal(read, last)) return;
    if (status.ok()) status = replace(read);
    if (!status.ok()) {
      LOG_ERROR("tls.not_reloaded error=\"{}\"", Message(status));
      return;
    }
    last = read;
    LOG_INFO("tls.reloaded");
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
