// SPDX-License-Identifier: Apache-2.0
//
// Logging by spdlog: one event per line, `key=value` pairs, ids first. To
// stderr.
//
//   LOG_INFO("job.created job={} samples={}", name, samples);
//
// A text that the format puts between quotes (error=\"{}\") gets a backslash
// before each quote and backslash of its own. So the value ends where the
// format says, whatever a peer or a file has put into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "core/log_text.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace leat {

enum class LogFormat { kText, kJson };

// Sets the process's logger. Call once, in main, before threads start. Every
// line has `program`.
void InitLog(std::string_view program, LogFormat format,
             spdlog::level::level_enum level);
// Sets the level to "trace", "debug", "info", "warn" or "error". May be called
// at run time, on any thread. kInvalidArgument: another word.
absl::Status SetLogLevel(std::string_view level);
std::string_view LogLevel();

// Returns the process's logger. Before InitLog it writes only warnings and
// errors, so that the library is silent in a program that does not configure
// it.
spdlog::logger* Logger();

namespace log_internal {

// A text, and whether the format puts it between quotes.
struct Text {
  std::string_view text;
  bool quoted;
};

template <class T>
inline constexpr bool kIsText =
    std::is_convertible_v<const T&, std::string_view>;
// The type that stands for an argument of type T.
template <class T>
using Shown = std::conditional_t<kIsText<T>, Text, T>;

template <class T>
std::conditional_t<kIsText<T>, Text, const T&> Show(
    const T& value, [[maybe_unused]] bool quoted) {
  if constexpr (kIsText<T>)
    return Text{value, quoted};
  else
    return value;  // NOLINT(bugprone-return-const-ref-from-parameter)
}
// A temporary would not outlive the result, so there is no Show of one.
template <class T>
void Show(const T&& value, bool quoted) = delete;

inline constexpr size_t kMaxArguments = 64;
// Bit i: the format puts its argument i between quotes.
uint64_t QuotedArguments(std::string_view format);

template <class... Args, size_t... kIndex>
std::string Format(fmt::string_view format, std::index_sequence<kIndex...>,
                   const Args&... args) {
  [[maybe_unused]] const uint64_t quoted =
      QuotedArguments({format.data(), format.size()});
  return fmt::vformat(format, fmt::make_format_args(Show<Args>(
                                  args, (quoted >> kIndex & 1) != 0)...));
}

template <class... Args>
void Write(spdlog::logger* logger, spdlog::level::level_enum level,
           fmt::format_string<Shown<Args>...> format, const Args&... args) {
  static_assert(sizeof...(Args) <= kMaxArguments);
  logger->log(level, spdlog::string_view_t(Format<Args...>(
                         format, std::index_sequence_for<Args...>(), args...)));
}

}  // namespace log_internal
}  // namespace leat

template <>
struct fmt::formatter<leat::log_internal::Text>
    : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const leat::log_internal::Text& of, Context& context) const {
    return of.quoted
               ? fmt::formatter<std::string_view>::format(
                     leat::EscapedQuotes(of.text), context)
               : fmt::formatter<std::string_view>::format(of.text, context);
  }
};

// Arguments are evaluated only if the level is on.
#define LEAT_LOG_(level, ...)                                        \
  do {                                                               \
    if (::spdlog::logger* const leat_logger_ = ::leat::Logger();     \
        leat_logger_->should_log(level))                             \
      ::leat::log_internal::Write(leat_logger_, level, __VA_ARGS__); \
  } while (false)
#define LOG_DEBUG(...) LEAT_LOG_(::spdlog::level::debug, __VA_ARGS__)
#define LOG_INFO(...) LEAT_LOG_(::spdlog::level::info, __VA_ARGS__)
#define LOG_WARN(...) LEAT_LOG_(::spdlog::level::warn, __VA_ARGS__)
#define LOG_ERROR(...) LEAT_LOG_(::spdlog::level::err, __VA_ARGS__)
