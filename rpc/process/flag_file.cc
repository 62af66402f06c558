// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/flag_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/pipeline/arguments.h"
#include "core/status.h"
#include "rpc/process/whole_number.h"

namespace leat::rpc {
namespace {

constexpr size_t kMaxShown = 100;       // bytes of a value in an error
constexpr size_t kCommentColumns = 98;  // columns of a line of help

// Reads the whole file. A FIFO or a device would block, or never end.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const auto failed = [&path](int error) {
    const auto code = error == ENOENT || error == ENOTDIR
                          ? absl::StatusCode::kNotFound
                      : error == EACCES || error == EPERM
                          ? absl::StatusCode::kPermissionDenied
                          : absl::StatusCode::kUnavailable;
    return MakeStatus(code, "--config {}: {}", path, strerror(error));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failed(errno);
  struct stat found {};
  if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
    close(fd);
    return InvalidArgument("--config {}: want a file", path);
  }
  std::string text(FlagFile::kMaxBytes + 1, '\0');
  size_t size = 0;
  ssize_t bytes = 1;
  while (size < text.size() && bytes != 0) {
    bytes = read(fd, text.data() + size, text.size() - size);
    if (bytes < 0 && errno != EINTR) {
      const int error = errno;
      close(fd);
      return failed(error);
    }
    if (bytes > 0) size += static_cast<size_t>(bytes);
  }
  close(fd);
  if (size > FlagFile::kMaxBytes)
    return InvalidArgument("--config {}: want at most {} bytes", path,
                           FlagFile::kMaxBytes);
  text.resize(size);
  return text;
}

// Returns the text in quotes, escaped and bounded: an error is one line.
std::string Quoted(std::string_view text) {
  const std::string quoted = JsonString(text.substr(0, kMaxShown));
  return text.size() > kMaxShown ? quoted + "…" : quoted;
}

bool IsFlag(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}

bool TakesSeveral(const CLI::Option& option) {
  return option.get_items_expected_max() > 1;
}

// Returns whether the option's checks accept this text, which they may change.
bool Accepts(CLI::Option* option, std::string text) {
  try {
    for (int i = 0;; ++i)
      if (!(*option->get_validator(i))(text).empty()) return false;
  } catch (const CLI::OptionNotFound&) {  // there are no more checks
    return true;
  }
}

// Returns the flag's value if it is not set; "": there is none that a file
// could contain.
std::string DefaultOf(CLI::Option* option) {
  const std::string before = option->get_default_str();
  if (!before.empty()) return before;
  if (IsFlag(*option)) return "false";
  if (TakesSeveral(*option)) return "";
  option->capture_default_str();
  const std::string text = option->get_default_str();
  option->default_str(before);
  return Accepts(option, text) ? text : "";
}

// Removes the flag with which CLI11's messages begin.
std::string WithoutFlag(std::string_view message, std::string_view flag) {
  const std::string start = fmt::format("{}: ", flag);
  if (message.starts_with(start)) message.remove_prefix(start.size());
  return std::string(message);
}

// Returns the text unquoted if YAML reads it as the same text, otherwise in
// double quotes: JSON strings are valid there.
std::string Scalar(std::string_view text) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./";
  const bool plain = !text.empty() &&
                     text.find_first_not_of(kPlain) == text.npos &&
                     text != "null" && text != "Null" && text != "NULL";
  return plain ? std::string(text) : JsonString(text);
}

// Returns help text as lines of a comment.
std::string Comment(std::string_view help) {
  std::string lines, line = "#";
  size_t at = 0;
  while (at < help.size()) {
    const size_t end = std::min(help.find(' ', at), help.size());
    const std::string_view word = help.substr(at, end - at);
    if (line.size() + 1 + word.size() > kCommentColumns) {
      lines += line + "\n";
      line = "#";
    }
    if (!word.empty()) line += fmt::format(" {}", word);
    at = end + 1;
  }
  return lines + line + "\n";
}

// CLI11 describes its checks with its own types: "INT:INT in [1 - 1024]",
// "ENUM:value in {all->1,remote->0} OR {1,0}", "TEXT:{text,json}". These become
// "1 to 1024", "all|remote" and "text|json".
std::string ValuesText(std::string_view type) {
  const size_t colon = type.find(':');
  if (colon == type.npos)
    return type == "INT" || type == "UINT" || type == "FLOAT"
               ? "N"
               : std::string(type);
  std::string_view check = type.substr(colon + 1);
  if (const size_t range = check.find(" in ["); range != check.npos) {
    const std::string_view bounds = check.substr(range + 5);
    const size_t dash = bounds.find(" - ");
    const size_t end = bounds.find(']');
    if (dash != bounds.npos && end != bounds.npos)
      return fmt::format("{} to {}", bounds.substr(0, dash),
                         bounds.substr(dash + 3, end - dash - 3));
  }
  const size_t begin = check.find('{');
  const size_t end = check.find('}');
  if (begin == check.npos || end == check.npos || end < begin) return "VALUE";
  std::string words;
  std::string_view left = check.substr(begin + 1, end - begin - 1);
  while (!left.empty()) {
    const std::string_view each = left.substr(0, left.find(','));
    left.remove_prefix(std::min(each.size() + 1, left.size()));
    if (!words.empty()) words += '|';
    words += each.substr(0, each.find("->"));
  }
  return words;
}

class PlainHelp : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (IsFlag(*option)) return "";
    std::string text = " " + ValuesText(option->get_type_name());
    if (!option->get_default_str().empty())
      text += fmt::format(" [{}]", option->get_default_str());
    if (TakesSeveral(*option)) text += " ...";
    return text;
  }
};

}  // namespace

absl::Status FlagError(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining();
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError) ||
      rest.empty()) {
    std::string text = error.what();
    std::ranges::replace(text, '\n', ' ');
    return InvalidArgument("{}", text);
  }
  const auto flag = std::ranges::find_if(
      rest, [](const std::string& word) { return word.starts_with("-"); });
  if (flag == rest.end())
    return InvalidArgument("unexpected {}: want flags alone",
                           Quoted(rest.back()));
  const std::string word = flag->substr(0, flag->find('='));
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  std::string hint = Suggestion(
      word, std::vector<std::string_view>(names.begin(), names.end()));
  if (!hint.starts_with("; did you mean")) hint = "; --help lists them";
  return InvalidArgument("there is no flag {}{}", Quoted(word), hint);
}

FlagFile::FlagFile(CLI::App* app) : app_(app) {
  app->formatter(std::make_shared<PlainHelp>());
  for (CLI::Option* option : app->get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string& key = option->get_lnames().front();
    if (key == "help" || key == "version") continue;
    options_.emplace(key, option);
    if (option->get_configurable()) defaults_.emplace(key, DefaultOf(option));
    const std::string type = option->get_type_name();
    const bool is_signed = type.starts_with("INT");
    if (is_signed || type.starts_with("UINT"))
      option->transform(WholeNumber(is_signed));
  }
  app->add_option("--config", path_,
                  "YAML file with these flags, without their dashes; what the "
                  "command line gives replaces what the file says")
      ->configurable(false);
  app->add_flag("--check-config", check_,
                "check the flags and the files that they name, and end")
      ->configurable(false);
  app->add_flag("--print-config", print_,
                "print a file for --config with every flag, those that are "
                "given here with their values, and end")
      ->configurable(false);
}

std::string FlagFile::Origin() const {
  return path_.empty() ? "" : fmt::format(" (with {})", path_);
}

std::string FlagFile::Place(const YAML::Node& node) const {
  return fmt::format("{}, line {}", path_, node.Mark().line + 1);
}

absl::Status FlagFile::Apply() {
  if (path_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path_));
  try {
    return ApplyText(text);
  } catch (const YAML::Exception& error) {
    return InvalidArgument("{}, line {}: this is no YAML: {}", path_,
                           error.mark.line + 1, error.msg);
  }
}

absl::Status FlagFile::ApplyText(const std::string& text) {
  const std::vector<YAML::Node> documents = YAML::LoadAll(text);
  if (documents.empty()) return absl::OkStatus();
  const YAML::Node& root = documents.front();
  if (documents.size() == 1 && root.IsNull()) return absl::OkStatus();
  if (documents.size() > 1 || !root.IsMap())
    return InvalidArgument("{}: want one map of flags: \"listen: ADDRESS\"",
                           path_);
  std::set<std::string> seen;
  for (const auto& entry : root) {
    if (!entry.first.IsScalar())
      return InvalidArgument("{}: want a flag's name as the key",
                             Place(entry.first));
    const std::string& key = entry.first.Scalar();
    if (!seen.insert(key).second)
      return InvalidArgument("{}: {} is given twice", Place(entry.first),
                             Quoted(key));
    if (absl::Status status = ApplyKey(key, entry.second); !status.ok())
      return Annotate(status, Place(entry.first));
  }
  return absl::OkStatus();
}

// Errors do not contain the position.
absl::Status FlagFile::ApplyKey(const std::string& key,
                                const YAML::Node& value) {
  const auto found = options_.find(key);
  if (found == options_.end() &&
      app_->get_option_no_throw("--" + key) == nullptr) {
    std::vector<std::string_view> known;
    for (const auto& [name, option] : defaults_) known.push_back(name);
    return InvalidArgument("there is no flag {}{}", Quoted(key),
                           Suggestion(key, known));
  }
  if (found == options_.end() || !found->second->get_configurable())
    return InvalidArgument("{} is for the command line only", key);
  CLI::Option* const option = found->second;
  std::vector<std::string> values;
  if (value.IsScalar()) {
    values.push_back(value.Scalar());
  } else if (value.IsSequence() && TakesSeveral(*option) && value.size() > 0) {
    for (const YAML::Node& one : value) {
      if (!one.IsScalar())
        return InvalidArgument("{}: want a list of texts", key);
      values.push_back(one.Scalar());
    }
  } else {
    return InvalidArgument(
        "{}: want {}, or no such line", key,
        TakesSeveral(*option) ? "a value or a list of them" : "one value");
  }
  for (const std::string& text : values)
    if (text.empty())
      return InvalidArgument("{}: it is empty: want a value, or no such line",
                             key);
  if (IsFlag(*option) && values[0] != "true" && values[0] != "false")
    return InvalidArgument("{}: {}: want true or false", key,
                           Quoted(values[0]));
  // The command line takes precedence.
  if (option->count() > 0) return absl::OkStatus();
  try {
    option->add_result(values);
    option->run_callback();
  } catch (const CLI::Error& error) {
    return InvalidArgument("{}: {}", key,
                           WithoutFlag(error.what(), "--" + key));
  }
  return absl::OkStatus();
}

std::string FlagFile::KeyText(std::string_view key,
                              const CLI::Option& option) const {
  if (option.count() == 0) {
    const std::string& value = defaults_.find(key)->second;
    return value.empty() ? fmt::format("#{}:\n", key)
                         : fmt::format("#{}: {}\n", key, Scalar(value));
  }
  if (!TakesSeveral(option))
    return fmt::format("{}: {}\n", key, Scalar(option.results().front()));
  std::string text = fmt::format("{}:\n", key);
  for (const std::string& one : option.results())
    text += fmt::format("  - {}\n", Scalar(one));
  return text;
}

std::string FlagFile::Text() const {
  std::string text = Comment(fmt::format(
      "Flags of {0}, without their dashes, for \"{0} --config FILE\". A flag "
      "on the command line replaces what is said here. \"{0} --check-config "
      "--config FILE\" checks this file. Lines that begin with #NAME: show "
      "what holds without them.",
      app_->get_name()));
  for (const CLI::Option* option : app_->get_options()) {  // in order of --help
    if (option->get_lnames().empty()) continue;
    const std::string& key = option->get_lnames().front();
    if (!defaults_.contains(key)) continue;
    text += "\n" + Comment(option->get_description()) + KeyText(key, *option);
  }
  return text;
}

}  // namespace leat::rpc
