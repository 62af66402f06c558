// SPDX-License-Identifier: Apache-2.0
//
// DaemonFlags has the flags of both daemons: who may connect, how, and how the
// process runs and logs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/call/auth.h"
#include "rpc/tls/secret_files.h"

namespace CLI {
class App;
}

namespace leat::rpc {

struct DaemonFlags {
  std::string access_token_file;  // empty: the environment's access token
  TlsFiles tls;
  std::vector<std::string> san_roles;  // PATTERN=ROLE
  bool insecure = false;
  // 0: three quarters of the descriptors; and half of that per address.
  int max_connections = 0, max_connections_per_address = 0;
  int64_t watchdog_interval_ms = 10'000;  // 0: none
  bool no_seccomp = false;                // the process is not confined
  std::string log_format = "text", log_level = "info";
  int ready_fd = -1, lifeline_fd = -1;
};

// The texts of a daemon's --help for flags whose description differs.
struct DaemonHelp {
  const char* access_token_file;
  const char* tls_cert;
  const char* tls_key;
  const char* tls_ca;
  const char* insecure;
  const char* ready_fd;
  const char* lifeline_fd;
  bool shows_defaults = false;
};

// Each function adds some of the flags. `flags` outlives `app`.
// --max-connections, --max-connections-per-address, --watchdog-interval-ms.
void AddConnectionFlags(const DaemonHelp& help, CLI::App* app,
                        DaemonFlags* flags);
// --no-seccomp.
void AddConfinementFlag(CLI::App* app, DaemonFlags* flags);
// --access-token-file, --tls-*, --role-from-san, --insecure.
void AddSecurityFlags(const DaemonHelp& help, CLI::App* app,
                      DaemonFlags* flags);
// --log-format, --log-level, --ready-fd, --lifeline-fd.
void AddProcessFlags(const DaemonHelp& help, CLI::App* app, DaemonFlags* flags);

// Reads the files again into `into`, which is unchanged after an error. Errors:
// as ReadTls and ReadAccessToken.
absl::Status ReadSecurity(const DaemonFlags& flags, Security* into);
// Sets `into` from the flags and the environment at a start. `access_token`:
// LEAT_ACCESS_TOKEN, used without --access-token-file. `leat_token`:
// LEAT_TOKEN, nullptr if unset; it is rejected. Errors: as ReadSecurity;
// kInvalidArgument: names the flag or variable.
absl::Status CompleteSecurity(const DaemonFlags& flags,
                              const std::optional<std::string>& access_token,
                              const char* leat_token, Security* into);
// kInvalidArgument: numbers below 0.
absl::Status CheckConnectionFlags(int max_connections,
                                  int max_connections_per_address);
// Checks the addresses, certificates and keys as a start would. `http` empty:
// there is none. kInvalidArgument: names the flag, and the file or address.
absl::Status CheckListeners(const Security& security, const std::string& listen,
                            const std::string& http);

}  // namespace leat::rpc
