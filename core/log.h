// SPDX-License-Identifier: Apache-2.0
//
// Logging by spdlog: one event per line, `key=value` pairs, ids first. To
// stderr.
//
//   LOG_INFO("job.created job={} samples={}", name, samples);
#pragma once

#include <string_view>

#include "absl/status/status.h"
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

}  // namespace leat

// Arguments are evaluated only if the level is on.
#define LEAT_LOG_(level, ...)                                    \
  do {                                                           \
    if (::spdlog::logger* const leat_logger_ = ::leat::Logger(); \
        leat_logger_->should_log(level))                         \
      leat_logger_->log(level, __VA_ARGS__);                     \
  } while (false)
#define LOG_DEBUG(...) LEAT_LOG_(::spdlog::level::debug, __VA_ARGS__)
#define LOG_INFO(...) LEAT_LOG_(::spdlog::level::info, __VA_ARGS__)
#define LOG_WARN(...) LEAT_LOG_(::spdlog::level::warn, __VA_ARGS__)
#define LOG_ERROR(...) LEAT_LOG_(::spdlog::level::err, __VA_ARGS__)
