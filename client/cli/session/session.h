// SPDX-License-Identifier: Apache-2.0
//
// Session: one run of the CLI: its options, its environment, and the
// connection, which opens when a command first needs it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/base/environment.h"
#include "client/cli/base/view.h"
#include "client/cli/diagnostics/credentials.h"
#include "client/cli/options/command_line.h"
#include "client/cli/session/contexts.h"

namespace leat::cli {

class Session {
 public:
  // The arguments must outlive the session.
  Session(const CommandLine& line, const Environment& environment)
      : line_(line), environment_(environment) {}

  const Options& options() const { return line_.options(); }
  const CommandLine& line() const { return line_; }
  const Environment& environment() const { return environment_; }

  // Looks up the context to use, if there is one (docs/run/command-line.md
  // says which). Call it before Connect and Show. kNotFound: no such context.
  // kInvalidArgument, kFailedPrecondition: its file, or two addresses.
  absl::Status UseContext();
  // Returns the sources of the connection's secrets: the flags, the context or
  // the environment.
  CredentialSources credentials() const;
  absl::StatusOr<std::string> AccessToken(
      const CredentialSources& sources) const;
  // Returns the coordinator's address, from the same sources.
  std::string address() const;
  // Returns whether the terminal ignores control sequences (TERM=dumb).
  bool IsDumb() const;
  // Returns the options for Connect. Errors: of the flags, or a file in them
  // that cannot be read.
  absl::StatusOr<ConnectOptions> MakeOptions() const;
  // Connects once, trying for --timeout and no longer than `most`; a failure is
  // not remembered.
  absl::StatusOr<Connection*> Connect(
      absl::Duration most = absl::InfiniteDuration());
  // The same; if no service is named and none answers at the default address,
  // connects to a private service of this user, if exactly one runs.
  absl::StatusOr<Connection*> ConnectOrPrivate();
  // Returns whether a flag, the environment or a context names a service.
  bool NamesService() const;
  // Returns whether the coordinator was called and has not answered.
  bool not_answered() const { return called_ && connection_ == nullptr; }
  // Prints a message for people, on stderr; escaped.
  void Say(std::string_view message) const;
  // Prints an error after which the command continues.
  void SayError(const absl::Status& error) const;

  // Returns the names on the command line, each once. kInvalidArgument: a name
  // is empty, as from an unset variable of the shell.
  absl::StatusOr<std::vector<std::string>> Names() const;
  // Calls `one` for each name. It prints the error of a name and continues with
  // the others. If the error would be the same for all (the coordinator is
  // lost, or the call is not allowed), it stops, and the error says which names
  // were not tried. Returns the exit code of the first name that failed.
  absl::StatusOr<int> ForEach(
      const std::vector<std::string>& names,
      const std::function<absl::Status(const std::string& name)>& one) const;

  // Returns the format of -o; without that, of the context.
  Format format() const;
  // Prints one view; `further`: as in PrintStyle.
  void PrintView(const View& view, bool further) const {
    Put(view, false, further);
  }

  // The view of a command, and its exit code.
  struct Result {
    View view;
    int exit_code = 0;
    // Errors of names without a match. They are printed after the view, and the
    // exit code is that of the first.
    std::vector<absl::Status> errors = {};
  };
  // Prints the result of `make`, repeatedly with --watch or `watch`; returns
  // the last exit code.
  absl::StatusOr<int> Show(const std::function<absl::StatusOr<Result>()>& make,
                           bool watch = false) const;

 private:
  absl::Status CheckVariables() const;
  absl::Status CheckFlags() const;
  absl::Status TryDefault(ConnectOptions connect);
  std::string ValueOf(std::string_view flag, const std::string& given,
                      const char* variable, std::string Context::*kept) const;
  // Returns the process that --private names; 0: it names none.
  absl::StatusOr<int64_t> PrivatePid() const;
  // `redraw`: over the previous view.
  void Put(const View& view, bool redraw, bool further) const;
  using Window = std::pair<size_t, size_t>;  // columns and lines
  Window WindowNow() const;
  // Waits. Draws `shown` again if the terminal's size is no longer `drawn`;
  // null: draws nothing.
  void PauseBetween(absl::Duration interval, const View* shown,
                    Window drawn) const;

  const CommandLine& line_;
  const Environment& environment_;
  std::optional<Context> context_;  // in use; its paths are resolved
  bool called_ = false;             // the coordinator was called
  bool or_private_ = false;         // ConnectOrPrivate was called
  std::unique_ptr<Connection> connection_;
};

// Parses "10s", "500ms", "10" (seconds). kInvalidArgument: anything else, or
// not above zero; names `flag`.
absl::StatusOr<absl::Duration> ParseTimeFlag(std::string_view flag,
                                             std::string_view text);

// The same for a time that may be days: "90d", "12h".
absl::StatusOr<absl::Duration> ParseLifetimeFlag(std::string_view flag,
                                                 std::string_view text);

}  // namespace leat::cli
