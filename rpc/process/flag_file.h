// SPDX-License-Identifier: Apache-2.0
//
// FlagFile reads a daemon's flags from a file, which --config names. The file
// is YAML: one map, whose keys are the flags without their dashes.
//
//   listen: 0.0.0.0:7411
//   insecure: false
//   allow:
//     - /srv/data
//     - s3://photos
//
// A flag on the command line replaces the key of its name, even if both may be
// given several times. Errors name the file, the line and the key: a key that
// is not a flag (with the nearest one), a duplicate key, a value that the flag
// does not accept.
//
// Flags for which CLI11's `configurable` is false are not allowed in a file:
// descriptors that one process hands to another, and flags meant for a single
// start.
//
// Thread-compatible.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace YAML {
class Node;
}

namespace leat::rpc {

// Returns one line for a command line that `app` rejects with `error`: the
// flag, its value and what was expected, or the flag that was probably meant.
absl::Status FlagError(const CLI::App& app, const CLI::ParseError& error);

class FlagFile {
 public:
  static constexpr size_t kMaxBytes = 1 << 20;

  // Adds --config, --check-config and --print-config to `app`, which outlives
  // this, makes its help name values in plain words, and its whole numbers
  // decimal. REQUIRES: `app` has all of its other flags.
  explicit FlagFile(CLI::App* app);

  // Sets the flags that the command line does not set from the file. Without
  // --config it does nothing. REQUIRES: `app` has parsed the command line.
  // kInvalidArgument: the file's content, as above. kNotFound,
  // kPermissionDenied, kUnavailable: the file cannot be read.
  absl::Status Apply();

  // Returns "" or " (with FILE)", for errors that name a flag whose value may
  // come from the file.
  std::string Origin() const;
  // True if the daemon is to check its flags and files, and not to serve.
  bool check() const { return check_; }
  // True if the daemon is to print Text(), and not to serve.
  bool print() const { return print_; }
  // Returns a file with every flag and its help. The flags that were given have
  // their values, and the others are in comments. Apply accepts it.
  std::string Text() const;

 private:
  absl::Status ApplyText(const std::string& text);
  absl::Status ApplyKey(const std::string& key, const YAML::Node& value);
  // Returns the error's position: "FILE, line 3".
  std::string Place(const YAML::Node& node) const;
  std::string KeyText(std::string_view key, const CLI::Option& option) const;

  CLI::App* const app_;
  std::string path_;
  bool check_ = false, print_ = false;
  std::map<std::string, CLI::Option*, std::less<>> options_;  // by key
  std::map<std::string, std::string, std::less<>> defaults_;  // shown by Text
};

}  // namespace leat::rpc
