// SPDX-License-Identifier: Apache-2.0
//
// Macros and functions for Status: early return of errors with the semantics of
// later abseil versions, and messages formatted by fmt.
//
//   RETURN_IF_ERROR(Open(path));
//   ASSIGN_OR_RETURN(Index index, ReadIndex(path));
//   return InvalidArgument("batch {}: want 1 to {}", batch, kMaxBatch);
//
// The distribution's abseil has its own string_view, which does not convert
// from std::string_view. Therefore text is built with fmt::format, never with
// absl::StrCat, and read with Message().
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"

namespace leat {

inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

// Returns a status of `code` with a formatted message.
template <class... Args>
absl::Status MakeStatus(absl::StatusCode code,
                        fmt::format_string<Args...> format, Args&&... args) {
  return absl::Status(code, fmt::format(format, std::forward<Args>(args)...));
}

#define LEAT_STATUS_MAKER_(name)                                          \
  template <class... Args>                                                \
  absl::Status name(fmt::format_string<Args...> format, Args&&... args) { \
    return MakeStatus(absl::StatusCode::k##name, format,                  \
                      std::forward<Args>(args)...);                       \
  }
LEAT_STATUS_MAKER_(Aborted)
LEAT_STATUS_MAKER_(AlreadyExists)
LEAT_STATUS_MAKER_(Cancelled)
LEAT_STATUS_MAKER_(DataLoss)
LEAT_STATUS_MAKER_(DeadlineExceeded)
LEAT_STATUS_MAKER_(FailedPrecondition)
LEAT_STATUS_MAKER_(Internal)
LEAT_STATUS_MAKER_(InvalidArgument)
LEAT_STATUS_MAKER_(NotFound)
LEAT_STATUS_MAKER_(OutOfRange)
LEAT_STATUS_MAKER_(PermissionDenied)
LEAT_STATUS_MAKER_(ResourceExhausted)
LEAT_STATUS_MAKER_(Unauthenticated)
LEAT_STATUS_MAKER_(Unavailable)
LEAT_STATUS_MAKER_(Unimplemented)
#undef LEAT_STATUS_MAKER_

// Returns the status with "`context`: " before its message, and the same code
// and payloads. OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

}  // namespace leat

#define LEAT_CONCAT_INNER_(a, b) a##b
#define LEAT_CONCAT_(a, b) LEAT_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expr)                                     \
  do {                                                            \
    if (::absl::Status leat_status_ = (expr); !leat_status_.ok()) \
      return leat_status_;                                        \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, ...) \
  ASSIGN_OR_RETURN_(LEAT_CONCAT_(leat_statusor_, __LINE__), lhs, (__VA_ARGS__))
#define ASSIGN_OR_RETURN_(tmp, lhs, expr)        \
  auto tmp = expr;                               \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)
