// SPDX-License-Identifier: Apache-2.0
#include "client/cli/session/session.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/file.h"
#include "client/cli/base/printer.h"
#include "client/cli/base/suggestions.h"
#include "client/cli/base/text.h"
#include "core/cluster/roles.h"
#include "core/status.h"
#include "core/system_roots.h"

namespace leat::cli {
namespace {

constexpr absl::Duration kMaxTime = absl::Hours(24);

}  // namespace

absl::StatusOr<absl::Duration> ParseTimeFlag(std::string_view flag,
                                             std::string_view text) {
  std::string with_unit(text);
  if (!text.empty() && std::isdigit(static_cast<uint8_t>(text.back()))) {
    with_unit += "s";
  }
  absl::Duration duration;
  if (!absl::ParseDuration(with_unit, &duration) ||
      duration <= absl::ZeroDuration() || duration > kMaxTime) {
    return InvalidArgument(
        "{} \"{}\": want a time as 10s, 500ms or 2m, at most {}", flag, text,
        absl::FormatDuration(kMaxTime));
  }
  return duration;
}

absl::StatusOr<absl::Duration> ParseLifetimeFlag(std::string_view flag,
                                                 std::string_view text) {
  absl::Duration lifetime;
  uint32_t days = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, days);
  if (error == std::errc() && at + 1 == end && *at == 'd')
    lifetime = absl::Hours(24) * days;
  else if (!absl::ParseDuration(std::string(text), &lifetime))
    lifetime = absl::ZeroDuration();
  if (lifetime < absl::Seconds(1))
    return InvalidArgument("{} \"{}\": want a time such as 90d or 12h", flag,
                           text);
  return lifetime;
}

// An empty variable was meant to have a value, as with "$(cat address)" where
// there is no such file.
absl::Status Session::CheckVariables() const {
  static constexpr std::pair<const char*, const char*> kVariables[] = {
      {"LEAT_CONTEXT", "--context"},
      {"LEAT_COORDINATOR", "--coordinator"},
      {"LEAT_ACCESS_TOKEN", "--access-token-file"},
      {"LEAT_ACCESS_TOKEN_FILE", "--access-token-file"},
      {"LEAT_TLS_CA", "--tls-ca"},
      {"LEAT_TLS_CERT", "--tls-cert"},
      {"LEAT_TLS_KEY", "--tls-key"}};
  for (const auto& [name, flag] : kVariables) {
    const std::optional<std::string> value = environment_.variable(name);
    if (value && value->empty() && !line_.Given(flag))
      return InvalidArgument(
          "{} is set and empty: want a value, {}, or \"unset {}\"", name, flag,
          name);
  }
  return absl::OkStatus();
}

// The same for flags: "--coordinator "$(cat address)"".
absl::Status Session::CheckFlags() const {
  const Options& options = line_.options();
  const std::pair<const char*, const std::string&> flags[] = {
      {"--context", options.context},
      {"--coordinator", options.coordinator},
      {"--access-token-file", options.access_token_file},
      {"--tls-ca", options.tls_ca},
      {"--tls-cert", options.tls_cert},
      {"--tls-key", options.tls_key}};
  for (const auto& [flag, value] : flags)
    if (line_.Given(flag) && value.empty())
      return InvalidArgument("{} is empty: want a value", flag);
  return absl::OkStatus();
}

// A context replaces the environment, so that no token of one service is sent
// to another one. Flags override both.
absl::Status Session::UseContext() {
  const Options& options = line_.options();
  const auto variable = [&](const char* name) {
    return environment_.variable(name).value_or("");
  };
  const bool named = line_.Given("--context");
  RETURN_IF_ERROR(CheckFlags());
  if (!named && !line_.Given("--private")) RETURN_IF_ERROR(CheckVariables());
  for (const char* flag : {"--coordinator", "--private"}) {
    if (!line_.Given(flag)) continue;
    if (named) return InvalidArgument("--context and {}: want one", flag);
    return absl::OkStatus();
  }
  std::string name = named ? options.context : variable("LEAT_CONTEXT");
  if (name.empty() && !variable("LEAT_COORDINATOR").empty())
    return absl::OkStatus();
  const std::string path = ContextsPath(environment_.variable);
  Contexts contexts;
  if (!path.empty()) {
    ASSIGN_OR_RETURN(contexts, ReadContexts(path));
  }
  if (name.empty()) name = contexts.current;
  if (name.empty()) return absl::OkStatus();
  const auto found = contexts.all.find(name);
  if (found == contexts.all.end()) {
    std::vector<std::string> names;
    for (const auto& [each, context] : contexts.all) names.push_back(each);
    return NotFound("no context \"{}\" in {}{}", name,
                    path.empty() ? "any file" : path, DidYouMean(name, names));
  }
  context_ = Resolved(found->second, path, variable("HOME"));
  return absl::OkStatus();
}

Format Session::format() const {
  const bool own =
      line_.Given("--output") || !context_ || context_->output.empty();
  return FormatOf(own ? line_.options().output : context_->output);
}

std::string Session::ValueOf(std::string_view flag, const std::string& given,
                             const char* variable,
                             std::string Context::*kept) const {
  if (line_.Given(flag)) return given;
  if (context_) return (*context_).*kept;
  return environment_.variable(variable).value_or("");
}

CredentialSources Session::credentials() const {
  const Options& options = line_.options();
  CredentialSources sources;
  if (line_.Given("--access-token-file"))
    sources.token_file = options.access_token_file;
  else if (context_)
    sources.token_file = context_->access_token_file;
  else if (const auto token = environment_.variable("LEAT_ACCESS_TOKEN"))
    sources.token = *token;
  else
    sources.token_file =
        environment_.variable("LEAT_ACCESS_TOKEN_FILE").value_or("");
  const std::string ca =
      ValueOf("--tls-ca", options.tls_ca, "LEAT_TLS_CA", &Context::tls_ca);
  // If it does not exist, reading a file of that name reports this.
  sources.ca =
      RootsFile(ca, environment_.variable("SSL_CERT_FILE").value_or(""),
                [](const char* path) { return std::ifstream(path).good(); })
          .value_or(ca);
  sources.cert = ValueOf("--tls-cert", options.tls_cert, "LEAT_TLS_CERT",
                         &Context::tls_cert);
  sources.key =
      ValueOf("--tls-key", options.tls_key, "LEAT_TLS_KEY", &Context::tls_key);
  return sources;
}

// Returns "" if none is given. Surrounding spaces and line ends are removed.
void Session::Say(std::string_view message) const {
  *environment_.out << std::flush;
  *environment_.err << "leat: " << Printable(message) << std::endl;
}

void Session::SayError(const absl::Status& error) const {
  Say(fmt::format("{}: {}", line_.Chosen(), Message(error)));
}

absl::StatusOr<std::vector<std::string>> Session::Names() const {
  std::vector<std::string> names;
  for (const std::string& name : options().names) {
    if (name.empty())
      return InvalidArgument("name {} of {} is empty: want a name",
                             names.size() + 1, options().names.size());
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return names;
}

absl::StatusOr<int> Session::ForEach(
    const std::vector<std::string>& names,
    const std::function<absl::Status(const std::string& name)>& one) const {
  int exit_code = kGood;
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::Status status = one(names[i]);
    if (status.ok()) continue;
    // RunCli prints the error of a single name, and its remedy.
    if (names.size() == 1) return status;
    const int code = ExitCodeOf(status.code());
    if (code == kCannotConnect || code == kNotAllowed) {
      std::string left;
      for (size_t k = i + 1; k < names.size(); ++k)
        left += (left.empty() ? "; not tried: " : ", ") + names[k];
      return absl::Status(status.code(), fmt::format("{}: {}{}", names[i],
                                                     Message(status), left));
    }
    SayError(status);
    if (exit_code == kGood) exit_code = code;
  }
  return exit_code;
}

bool Session::IsDumb() const {
  return environment_.variable("TERM").value_or("") == "dumb";
}

namespace {

// Returns the lines that fit a terminal of `height` above the cursor; 0: all.
std::string FirstLines(const std::string& text, size_t height) {
  if (height < 3) return text;
  const auto lines =
      static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  if (lines < height) return text;
  const size_t kept = height - 2;
  size_t end = 0;
  for (size_t i = 0; i < kept; ++i) end = text.find('\n', end) + 1;
  return fmt::format("{}… {} more lines\n", text.substr(0, end), lines - kept);
}

}  // namespace

void Session::Put(const View& view, bool redraw, bool further) const {
  const Options& options = line_.options();
  PrintStyle style;
  style.format = format();
  style.width = environment_.width();
  style.further = further;
  const auto variable = [&](const char* name) {
    return environment_.variable(name).value_or("");
  };
  style.color = options.color == "always" ||
                (options.color == "auto" && environment_.out_is_terminal &&
                 variable("NO_COLOR").empty() && !IsDumb());
  const Printed printed = Print(view, style);
  std::ostream& out = *environment_.out;
  if (redraw) {
    // Each line is written over the old one and cleared to its end, and then
    // the rest of the screen: no flicker.
    std::string text = "\x1b[H";
    for (const char c : FirstLines(printed.text, environment_.height())) {
      if (c == '\n') text += "\x1b[K";
      text += c;
    }
    out << text << "\x1b[J";
  } else {
    out << printed.text;
  }
  out << std::flush;
  if (!view.note.empty()) Say(view.note);
  if (!printed.dropped.empty() && environment_.out_is_terminal && !redraw) {
    std::string list;
    for (const std::string& title : printed.dropped) {
      list += (list.empty() ? "" : ", ") + title;
    }
    Say(fmt::format("left out for want of width: {} (-o wide shows all)",
                    list));
  }
}

absl::StatusOr<int> Session::Show(
    const std::function<absl::StatusOr<Result>()>& make, bool watch) const {
  const Options& options = line_.options();
  watch = watch || options.watch;
  ASSIGN_OR_RETURN(const absl::Duration interval,
                   ParseTimeFlag("--interval", options.interval));
  const Format format = this->format();
  const bool redraw = watch && environment_.out_is_terminal && !IsDumb() &&
                      (format == Format::kTable || format == Format::kWide);
  int exit_code = kGood;
  for (uint32_t n = 0;; ++n) {
    absl::StatusOr<Result> result = make();
    const Window drawn = WindowNow();
    if (result.ok()) {
      if (n == 0 && redraw) *environment_.out << "\x1b[2J";
      const bool text = format == Format::kTable || format == Format::kWide;
      if (n > 0 && !redraw && text) *environment_.out << '\n';
      if (n > 0 && format == Format::kYaml) *environment_.out << "---\n";
      Put(result->view, redraw, /*further=*/false);
      exit_code = result->exit_code;
      for (const absl::Status& error : result->errors) SayError(error);
      if (!result->errors.empty())
        exit_code = ExitCodeOf(result->errors.front().code());
    } else if (n == 0) {
      return result.status();
    } else {
      // Watching continues while a coordinator restarts.
      exit_code = ExitCodeOf(result.status().code());
      Say(Message(result.status()));
    }
    if (!environment_.out->good()) return exit_code;  // no reader is left
    const uint32_t prints = watch ? options.count : 1;
    if (prints > 0 && n + 1 >= prints) return exit_code;
    PauseBetween(interval, redraw && result.ok() ? &result->view : nullptr,
                 drawn);
  }
}

Session::Window Session::WindowNow() const {
  return {environment_.width(), environment_.height()};
}

void Session::PauseBetween(absl::Duration interval, const View* shown,
                           Window drawn) const {
  while (true) {
    if (shown == nullptr || WindowNow() == drawn) {
      environment_.pause(interval);
      if (shown == nullptr || WindowNow() == drawn) return;
    }
    drawn = WindowNow();
    *environment_.out << "\x1b[2J";
    Put(*shown, /*redraw=*/true, /*further=*/false);
  }
}

}  // namespace leat::cli
