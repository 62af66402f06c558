// SPDX-License-Identifier: Apache-2.0
//
// Logging by spdlog: one event a line, `key=value` pairs, ids first. To stderr.
//
//   LOG_INFO("job.created job={} samples={}", name, samples);
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "spdlog/spdlog.h"

namespace leat {

enum class LogFormat { kText, kJson };

// Sets the process's logger. Call once, in main, before threads start.
// `program` is in every line.
void InitLog(std::string_view program, LogFormat format,
             spdlog::level::level_enum level);
// "trace", "debug", "info", "warn", "error": at run time, any thread.
// kInvalidArgument: another word.
absl::Status SetLogLevel(std::string_view level);
std::string_view LogLevel();

}  // namespace leat

#define LOG_DEBUG(...) \
  SPDLOG_LOGGER_DEBUG(::spdlog::default_logger_raw(), __VA_ARGS__)
#define LOG_INFO(...) \
  SPDLOG_LOGGER_INFO(::spdlog::default_logger_raw(), __VA_ARGS__)
#define LOG_WARN(...) \
  SPDLOG_LOGGER_WARN(::spdlog::default_logger_raw(), __VA_ARGS__)
#define LOG_ERROR(...) \
  SPDLOG_LOGGER_ERROR(::spdlog::default_logger_raw(), __VA_ARGS__)
