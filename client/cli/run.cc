// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run.h"

#include <map>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/commands.h"
#include "client/cli/options/command_line.h"
#include "core/status.h"

namespace leat::cli {
namespace {

struct Command {
  absl::StatusOr<int> (*run)(Session&);
  bool local = false;  // uses no service: contexts do not matter
};

const std::map<std::string_view, Command>& Commands() {
  static const auto& commands = *new std::map<std::string_view, Command>{
      {"status", {RunStatus}},
      {"get", {RunGet}},
      {"describe", {RunDescribe}},
      {"delete", {RunDelete}},
      {"refresh", {RunRefresh}},
      {"drain", {RunDrain}},
      {"undrain", {RunUndrain}},
      {"log-level", {RunLogLevel}},
      {"access", {RunAccess}},
      {"pool", {RunPool}},
      {"slurm", {RunSlurm}},
      {"sheet", {RunSheet}},
      {"index", {RunIndex, true}},
      {"state", {RunState, true}},
      {"inspect", {RunInspect, true}},
      {"completion", {RunCompletion, true}},
      {"version", {RunVersion, true}},
      {"convert", {RunConvert, true}},
      {"why", {RunWhy}},
      {"bottleneck", {RunBottleneck}},
      {"top", {RunTop}},
      {"wait", {RunWait}},
      {"doctor", {RunDoctor}},
      {"events", {RunEvents}},
      {"health", {RunHealth}},
      {"report", {RunReport}},
      {"trace", {RunTrace}},
      {"context", {RunContext, true}},
      {"man", {RunMan, true}},
  };
  return commands;
}

// Returns the remedy for an error, if it is always the same.
std::string_view Remedy(absl::StatusCode code, const CommandLine& line,
                        bool default_address) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return default_address
                 ? "no service is named, so the default address was tried; "
                   "--coordinator HOST:PORT or LEAT_COORDINATOR names one"
                 : "";
    case absl::StatusCode::kDeadlineExceeded:
      if (line.Chosen() == "slurm") return "--within TIME waits longer";
      return line.Takes("--within")
                 ? "\"leat status\" says what is wrong; --within TIME gives it "
                   "longer"
                 : "\"leat status\" says what is wrong; --timeout TIME gives "
                   "it longer";
    case absl::StatusCode::kPermissionDenied:
      return "\"leat access roles\" says which role may do it";
    case absl::StatusCode::kUnauthenticated:
      return "--access-token-file or LEAT_ACCESS_TOKEN_FILE names the file "
             "with the access token; \"leat doctor\" examines it";
    default:
      return "";
  }
}

int RunParsed(std::vector<std::string> args, const Environment& environment,
              CommandLine& line, Session& session) {
  if (args.empty()) {
    *environment.err << line.Help() << std::flush;
    return kWrongUse;
  }
  const absl::StatusOr<CommandLine::Parsed> parsed =
      line.Parse(std::move(args));
  if (!parsed.ok()) {
    session.Say(Message(parsed.status()));
    const std::string chosen = line.Chosen();
    session.Say(
        chosen.empty() || chosen == "help"
            ? "\"leat --help\" lists the commands"
            : fmt::format("\"leat {} --help\" says what it takes", chosen));
    return kWrongUse;
  }
  if (!parsed->help.empty()) {
    *environment.out << parsed->help << std::flush;
    return kGood;
  }
  const Command& command = Commands().at(parsed->command);
  const absl::Status used =
      command.local ? absl::OkStatus() : session.UseContext();
  const absl::StatusOr<int> exit_code =
      used.ok() ? command.run(session) : absl::StatusOr<int>(used);
  if (exit_code.ok()) return *exit_code;
  const absl::StatusCode code = exit_code.status().code();
  session.Say(
      fmt::format("{}: {}", parsed->command, Message(exit_code.status())));
  if (const std::string_view remedy =
          Remedy(code, line, session.not_answered() && !session.NamesService());
      !command.local && !remedy.empty())
    session.Say(remedy);
  return ExitCodeOf(code);
}

}  // namespace

int RunCli(std::vector<std::string> args, const Environment& environment) {
  CommandLine line;
  Session session(line, environment);
  const int exit_code = RunParsed(std::move(args), environment, line, session);
  if (environment.out->flush()) return exit_code;
  // The disk is full. (If the reader of a pipe stops, SIGPIPE ends the
  // process.)
  session.Say(
      "standard output takes no more: what was to be said is not whole");
  return kFailed;
}

}  // namespace leat::cli
