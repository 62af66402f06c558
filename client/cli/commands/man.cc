// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/man.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/file.h"
#include "client/cli/commands/commands.h"
#include "core/status.h"

namespace leat::cli {
namespace {

// Converts text to roff. Characters that roff would draw differently from what
// people type, such as hyphens and quotes, are named, and a dot at the
// beginning of a line does not become a request.
std::string Roff(std::string_view text) {
  static constexpr std::pair<char, std::string_view> kNamed[] = {
      {'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
      {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && c == '.') out += "\\&";
    line_begins = c == '\n';
    const auto* const named =
        std::find_if(std::begin(kNamed), std::end(kNamed),
                     [c](const auto& each) { return each.first == c; });
    if (named == std::end(kNamed))
      out += c;
    else
      out += named->second;
  }
  return out;
}

std::string Bold(std::string_view text) { return "\\fB" + Roff(text) + "\\fR"; }
std::string Italic(std::string_view text) {
  return "\\fI" + Roff(text) + "\\fR";
}

// Adds the full stop, which the tree's texts lack.
std::string Sentence(std::string_view text) {
  std::string out(text);
  if (out.empty()) return out;
  if (out.back() != '.') out += '.';
  return out;
}

// Returns "\fB-o\fR, \fB--output\fR \fIFORMAT\fR".
std::string Heading(const OptionNode& option) {
  std::string out;
  for (const std::string& flag : option.flags)
    out += (out.empty() ? "" : ", ") + Bold(flag);
  if (option.takes_value)
    out += " " + Italic(option.type.empty() ? "VALUE" : option.type);
  return out;
}

std::string OptionList(const std::vector<OptionNode>& options) {
  std::string out;
  for (const OptionNode& option : options)
    out +=
        ".TP\n" + Heading(option) + "\n" + Roff(Sentence(option.text)) + "\n";
  return out;
}

std::string ExampleText(const std::string& examples) {
  if (examples.empty()) return "";
  return ".SH EXAMPLES\n.nf\n" + Roff(examples) + ".fi\n";
}

std::string ManTitle(std::string_view page, std::string_view version) {
  std::string upper;
  for (const char c : page)
    upper += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  // The page has no date: the version shows the release that it belongs to.
  return fmt::format(
      ".\\\" Made by \"leat man\" of the program's own table of commands.\n"
      ".TH {} 1 \"\" \"leat {}\" \"Leat\"\n",
      Roff(upper), Roff(version));
}

std::string ManName(std::string_view page, std::string_view text) {
  return fmt::format(".SH NAME\n{} \\- {}\n", Roff(page), Roff(text));
}

constexpr std::string_view kExitStatus = R"(.SH EXIT STATUS
.TP
0
It is good.
.TP
1
It failed.
.TP
2
The command line, or a value on it, is wrong.
.TP
3
The thing that was named does not exist.
.TP
4
The coordinator cannot be reached, or the time is over.
.TP
5
The caller may not do it.
.TP
6
The service, or what was looked at, is unhealthy: there is an error.
)";

constexpr std::string_view kEnvironment = R"(.SH ENVIRONMENT
Flags are over contexts, and contexts are over these variables.
.TP
\fBLEAT_COORDINATOR\fR
The coordinator's address, HOST:PORT.
.TP
\fBLEAT_CONTEXT\fR
The context that is used instead of the current one.
.TP
\fBLEAT_ACCESS_TOKEN\fR
The access token itself.
.TP
\fBLEAT_ACCESS_TOKEN_FILE\fR
A file, as that of \fB\-\-access\-token\-file\fR, where \fBLEAT_ACCESS_TOKEN\fR is not set.
.TP
\fBLEAT_TLS_CA\fR, \fBLEAT_TLS_CERT\fR, \fBLEAT_TLS_KEY\fR
Files, as those of \fB\-\-tls\-ca\fR, \fB\-\-tls\-cert\fR and \fB\-\-tls\-key\fR.
.TP
\fBLEAT_CONFIG\fR
The file of the contexts.
.TP
\fBNO_COLOR\fR
Not empty: there are no colours.
.TP
\fBCOLUMNS\fR
The width of the terminal. Where there is none, nothing is cut.
.SH FILES
.TP
\fI\(ti/.config/leat/config.yaml\fR
The contexts, as \fBleat context\fR writes them, or
\fI$XDG_CONFIG_HOME/leat/config.yaml\fR.
Nobody else may change the file, and nobody else may read it if it names an
access token or a key.
)";

std::string CommandPage(const CommandNode& root, const CommandNode& command,
                        std::string_view version) {
  const std::string page = root.name + "-" + command.name;
  std::string out = ManTitle(page, version) + ManName(page, command.text);
  out += ".SH SYNOPSIS\n" + Bold(root.name + " " + command.name);
  for (const OptionNode& option : command.options)
    if (option.required) out += " " + Heading(option);
  out += " [\\fIOPTIONS\\fR]";
  for (const PositionalNode& positional : command.positionals)
    out +=
        fmt::format(fmt::runtime(positional.required ? " {}{}" : " [{}{}]"),
                    Italic(positional.name), positional.repeats ? " ..." : "");
  out += "\n.SH DESCRIPTION\n" + Roff(Sentence(command.text)) + "\n";
  for (const PositionalNode& positional : command.positionals)
    out += ".TP\n" + Italic(positional.name) + "\n" +
           Roff(Sentence(positional.text)) + "\n";
  out += ".SH OPTIONS\n" + OptionList(command.options);
  out += ".PP\nThe options of every command are in\n\\fB" + Roff(root.name) +
         "\\fR(1).\n";
  out += ExampleText(command.examples);
  out += kExitStatus;
  out += ".SH SEE ALSO\n\\fB" + Roff(root.name) + "\\fR(1)\n";
  return out;
}

}  // namespace

std::map<std::string, std::string> ManPages(const CommandNode& root,
                                            std::string_view version) {
  std::map<std::string, std::string> pages;
  std::string out = ManTitle(root.name, version) +
                    ManName(root.name, "look at a Leat service and run it");
  out += ".SH SYNOPSIS\n" + Bold(root.name) +
         " [\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...\n.SH DESCRIPTION\n" +
         Roff(Sentence(root.text)) + "\n.SH COMMANDS\n";
  for (const CommandNode& command : root.commands) {
    const std::string page = root.name + "-" + command.name;
    pages[page + ".1"] = CommandPage(root, command, version);
    out += ".TP\n" + Bold(page) + "(1)\n" + Roff(Sentence(command.text)) + "\n";
  }
  out +=
      ".SH OPTIONS\n" + OptionList(root.options) + ExampleText(root.examples);
  out += kExitStatus;
  out += kEnvironment;
  pages[root.name + ".1"] = std::move(out);
  return pages;
}

absl::StatusOr<int> RunMan(Session& session) {
  namespace fs = std::filesystem;
  const fs::path folder = session.options().path;
  std::error_code error;
  fs::create_directories(folder, error);
  std::error_code none;  // why there is no folder is in `error`
  if (!fs::is_directory(folder, none))
    return FailedPrecondition(
        "{}: {}; want a folder, or a path where one can be made",
        folder.string(), error ? error.message() : "it is a file");
  const auto pages =
      ManPages(session.line().Tree(), session.environment().version);
  for (const auto& [name, text] : pages) {
    RETURN_IF_ERROR(WriteFile((folder / name).string(), text));
  }
  session.Say(
      fmt::format("{}: {} manual pages", folder.string(), pages.size()));
  return kGood;
}

}  // namespace leat::cli
