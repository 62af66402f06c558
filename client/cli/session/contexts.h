// SPDX-License-Identifier: Apache-2.0
//
// A context is a service that the CLI knows by a name; the current one is meant
// where none is named. They are kept in a file of YAML that people may write,
// too:
//
//   current: lab
//   contexts:
//     lab:
//       coordinator: lab.example:7411
//       access_token_file: lab.token      # beside this file
//       tls_ca: ~/certificates/lab.pem
//       timeout: 30s
//       output: wide
//
// The file holds no secret, but says where secrets are sent: nobody else may
// write it, and nobody else may read it where it names a token or a key.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::cli {

// A value that is empty is not set.
struct Context {
  std::string coordinator, access_token_file, tls_ca, tls_cert, tls_key;
  std::string timeout, output;
};

struct Contexts {
  std::string current;  // empty: none
  std::map<std::string, Context> all;
};

// This is a key of a context, as the file has it, and the flag that it stands
// for.
struct ContextKey {
  std::string_view key, flag;
  std::string Context::*value;
  bool file = false;  // a path
};
std::span<const ContextKey> ContextKeys();
// Whether the value is a path, and not a name in the place of one.
bool IsPath(const ContextKey& key, std::string_view value);

using Variable =
    std::function<std::optional<std::string>(const char* variable)>;
// The path is LEAT_CONFIG, or else leat/config.yaml in XDG_CONFIG_HOME or
// ~/.config. It is empty where there is no such place.
std::string ContextsPath(const Variable& variable);

// Where there is no file there are no contexts. kInvalidArgument: the message
// names path, line, key and what is expected. kFailedPrecondition: the file
// cannot be read, or others may change it.
absl::StatusOr<Contexts> ReadContexts(const std::string& path);
absl::StatusOr<Contexts> ParseContexts(const std::string& path,
                                       const std::string& text);
// Whoever reads the contexts in order to write them holds this meanwhile, so
// that of two programs neither loses what the other has written. nullptr:
// another process holds it. Where the file system has no locks it is held by
// nobody. kFailedPrecondition: its folder cannot be made.
class ContextsLock;
absl::StatusOr<std::shared_ptr<ContextsLock>> TryLockContexts(
    const std::string& path);
// Puts a new file of mode 0600 in the place of the old one.
absl::Status WriteContexts(const std::string& path, const Contexts& contexts);

// kInvalidArgument: the name is not 1 to 64 letters, digits, '.', '_' and '-'.
absl::Status CheckContextName(std::string_view name);
// `what` names the value in the error.
absl::Status CheckContextValue(const ContextKey& key, std::string_view what,
                               const std::string& value);

// Returns the context with its paths as they are to be opened: "~/" becomes
// `home`, and other relative ones are beside the file at `path`.
Context Resolved(Context context, const std::string& path,
                 const std::string& home);

}  // namespace leat::cli
