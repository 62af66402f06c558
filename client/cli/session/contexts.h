// SPDX-License-Identifier: Apache-2.0
//
// A context is a service that the CLI knows by a name; the current one is used
// if none is named. Contexts are kept in a YAML file that people may edit, too:
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
// The file holds no secret, but it determines where secrets are sent. Other
// users must not be able to write it, nor to read it if it names a token or a
// key.
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

// Empty values are not set.
struct Context {
  std::string coordinator, access_token_file, tls_ca, tls_cert, tls_key;
  std::string timeout, output;
};

struct Contexts {
  std::string current;  // empty: none
  std::map<std::string, Context> all;
};

// A key of a context in the file, and the flag that it replaces.
struct ContextKey {
  std::string_view key, flag;
  std::string Context::*value;
  bool file = false;  // a path
};
std::span<const ContextKey> ContextKeys();
// Returns whether the value is a path, and not a keyword used instead of one.
bool IsPath(const ContextKey& key, std::string_view value);

using Variable =
    std::function<std::optional<std::string>(const char* variable)>;
// Returns LEAT_CONFIG, or else leat/config.yaml in XDG_CONFIG_HOME or
// ~/.config; empty if none of these is set.
std::string ContextsPath(const Variable& variable);

// Without a file there are no contexts. kInvalidArgument: the message names
// path, line, key and the expectation. kFailedPrecondition: the file cannot be
// read, or other users may change it.
absl::StatusOr<Contexts> ReadContexts(const std::string& path);
absl::StatusOr<Contexts> ParseContexts(const std::string& path,
                                       const std::string& text);
// A program that reads the contexts in order to change them holds this lock
// meanwhile, so that two programs do not overwrite each other's changes.
// nullptr: another process holds it. On a file system without locks it has no
// effect. kFailedPrecondition: its folder cannot be created.
class ContextsLock;
absl::StatusOr<std::shared_ptr<ContextsLock>> TryLockContexts(
    const std::string& path);
// Replaces the file by a new one of mode 0600.
absl::Status WriteContexts(const std::string& path, const Contexts& contexts);

// kInvalidArgument: the name is not 1 to 64 letters, digits, '.', '_' and '-'.
absl::Status CheckContextName(std::string_view name);
// `what` names the value in the error.
absl::Status CheckContextValue(const ContextKey& key, std::string_view what,
                               const std::string& value);

// Returns the context with its paths ready to be opened: "~/" becomes `home`,
// and other relative ones are beside the file at `path`.
Context Resolved(Context context, const std::string& path,
                 const std::string& home);

}  // namespace leat::cli
