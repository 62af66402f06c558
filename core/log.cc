// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/json.h"
#include "core/log_text.h"
#include "core/printable.h"
#include "core/status.h"
#include "spdlog/formatter.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace leat {
namespace {

using spdlog::level::level_enum;

constexpr std::array<std::pair<std::string_view, level_enum>, 5> kLevels = {{
    {"trace", level_enum::trace},
    {"debug", level_enum::debug},
    {"info", level_enum::info},
    {"warn", level_enum::warn},
    {"error", level_enum::err},
}};

std::string_view LevelName(level_enum level) {
  for (const auto& [name, value] : kLevels)
    if (value == level) return name;
  return level == level_enum::off ? "off" : "error";
}

// 2026-05-01T12:00:00.123Z
void AppendTime(spdlog::log_clock::time_point time, std::string* line) {
  const auto since_epoch =
      std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  const std::time_t when = seconds.count();
  std::tm utc{};
  gmtime_r(&when, &utc);
  fmt::format_to(std::back_inserter(*line),
                 "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                 utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                 utc.tm_min, utc.tm_sec, (since_epoch - seconds).count());
}

// time level program message
class TextFormatter : public spdlog::formatter {
 public:
  explicit TextFormatter(std::string program) : program_(std::move(program)) {}

  void format(const spdlog::details::log_msg& msg,
              spdlog::memory_buf_t& out) override {
    std::string line;
    AppendTime(msg.time, &line);
    fmt::format_to(std::back_inserter(line), " {:<5} {} ", LevelName(msg.level),
                   program_);
    AppendPrintable(Bounded(msg), &line);
    line += '\n';
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<TextFormatter>(program_);
  }

 private:
  const std::string program_;
};

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// Returns the length of the key at the beginning of `text`, as in `key=value`;
// 0: there is none.
size_t KeySize(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && IsWord(text[size])) ++size;
  return size < text.size() && text[size] == '=' ? size : 0;
}

// Returns the end of the value at the beginning of `text`: before the next key,
// and within its quotes if it has any. A quote inside a value has a backslash
// before it; a quote that no key follows is taken for one, too.
size_t ValueSize(std::string_view text) {
  const bool quoted = text.starts_with('"');
  for (size_t at = quoted ? 1 : 0; at < text.size(); ++at) {
    if (quoted && text[at] == '\\') {
      ++at;  // what it escapes ends nothing
      continue;
    }
    if (quoted && text[at] != '"') continue;
    const std::string_view rest = text.substr(quoted ? at + 1 : at);
    if (rest.empty() || (rest[0] == ' ' && KeySize(rest.substr(1)) > 0))
      return quoted ? at + 1 : at;
  }
  return text.size();
}

// The reverse of EscapedQuotes.
std::string WithoutEscapes(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool escapes = text[at] == '\\' && at + 1 < text.size() &&
                         (text[at + 1] == '"' || text[at + 1] == '\\');
    plain += text[escapes ? ++at : at];
  }
  return plain;
}

// noun.verb key=value key="some text" ─►
// "event":"noun.verb","fields":{"key":"value","key":"some text"}
// If a key occurs twice, the first one counts. A line of another form has no
// fields.
void AppendFields(std::string_view message, std::string* line) {
  const size_t end = std::min(message.find(' '), message.size());
  const std::string_view event = message.substr(0, end);
  if (event.empty() || event.find('.') == event.npos ||
      !std::ranges::all_of(event, [](char c) { return IsWord(c) || c == '.'; }))
    return;
  *line += ",\"event\":";
  AppendJsonString(event, line);
  *line += ",\"fields\":{";
  std::set<std::string_view> keys;
  for (std::string_view rest = message.substr(end); !rest.empty();) {
    rest.remove_prefix(1);  // a space, or a character that begins no key
    const size_t size = KeySize(rest);
    if (size == 0) {
      rest.remove_prefix(std::min(rest.find(' '), rest.size()));
      continue;
    }
    const std::string_view key = rest.substr(0, size);
    rest.remove_prefix(size + 1);
    std::string value(rest.substr(0, ValueSize(rest)));
    rest.remove_prefix(value.size());
    if (value.size() > 1 && value.starts_with('"') && value.ends_with('"'))
      value =
          WithoutEscapes(std::string_view(value).substr(1, value.size() - 2));
    if (!keys.insert(key).second) continue;
    if (keys.size() > 1) *line += ',';
    AppendJsonString(key, line);
    *line += ':';
    AppendJsonString(value, line);
  }
  *line += '}';
}

// {"time":…,"level":…,"program":…,"thread":…,"event":…,"fields":…,"message":…}
class JsonFormatter : public spdlog::formatter {
 public:
  explicit JsonFormatter(std::string program) : program_(std::move(program)) {}

  void format(const spdlog::details::log_msg& msg,
              spdlog::memory_buf_t& out) override {
    std::string line = "{\"time\":\"";
    AppendTime(msg.time, &line);
    fmt::format_to(std::back_inserter(line),
                   "\",\"level\":\"{}\",\"program\":", LevelName(msg.level));
    AppendJsonString(program_, &line);
    fmt::format_to(std::back_inserter(line), ",\"thread\":{}", msg.thread_id);
    AppendFields(Bounded(msg), &line);
    line += ",\"message\":";
    AppendJsonString(Bounded(msg), &line);
    line += "}\n";
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(program_);
  }

 private:
  const std::string program_;
};

std::shared_ptr<spdlog::logger> MakeLogger(std::string_view program,
                                           LogFormat format, level_enum level) {
  auto logger = std::make_shared<spdlog::logger>(
      std::string(program), std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (format == LogFormat::kJson)
    logger->set_formatter(
        std::make_unique<JsonFormatter>(std::string(program)));
  else
    logger->set_formatter(
        std::make_unique<TextFormatter>(std::string(program)));
  logger->set_level(level);
  return logger;
}

// The logger is never destroyed: threads may log while the process ends.
std::shared_ptr<spdlog::logger>& TheLogger() {
  static auto* const logger = new std::shared_ptr<spdlog::logger>(
      MakeLogger("leat", LogFormat::kText, level_enum::warn));
  return *logger;
}

}  // namespace

std::string_view Bounded(const spdlog::details::log_msg& msg) {
  constexpr size_t kMaxMessage = 16 * 1024;
  return std::string_view(msg.payload.data(), msg.payload.size())
      .substr(0, kMaxMessage);
}

void AppendPrintable(std::string_view text, std::string* line) {
  *line += Printable(text);
}

std::string EscapedQuotes(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

uint64_t log_internal::QuotedArguments(std::string_view format) {
  uint64_t quoted = 0;
  size_t argument = 0;
  bool within = false;
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] == '"') within = !within;
    if (format[at] != '{') continue;
    if (format.substr(at + 1).starts_with('{')) {
      ++at;
      continue;
    }
    if (within) quoted |= uint64_t{1} << argument;
    ++argument;
    at = std::min(format.find('}', at), format.size());
  }
  return quoted;
}

spdlog::logger* Logger() { return TheLogger().get(); }

void InitLog(std::string_view program, LogFormat format, level_enum level) {
  TheLogger() = MakeLogger(program, format, level);
}

absl::Status SetLogLevel(std::string_view level) {
  for (const auto& [name, value] : kLevels) {
    if (name != level) continue;
    Logger()->set_level(value);
    return absl::OkStatus();
  }
  return InvalidArgument(
      "log level \"{}\": want trace, debug, info, warn or error", level);
}

std::string_view LogLevel() { return LevelName(Logger()->level()); }

}  // namespace leat
