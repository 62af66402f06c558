// SPDX-License-Identifier: Apache-2.0
//
// Status macros: early return of errors, with abseil's later semantics.
//
//   RETURN_IF_ERROR(Open(path));
//   ASSIGN_OR_RETURN(Index index, ReadIndex(path));
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat {

// The same code, with "`context`: " before the message. OK stays OK. Payloads are kept.
absl::Status Annotate(const absl::Status& status, std::string_view context);

}  // namespace leat

#define LEAT_CONCAT_INNER_(a, b) a##b
#define LEAT_CONCAT_(a, b) LEAT_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expr)                                \
  do {                                                       \
    if (::absl::Status leat_status_ = (expr); !leat_status_.ok()) \
      return leat_status_;                                   \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_(LEAT_CONCAT_(leat_statusor_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_(tmp, lhs, expr)    \
  auto tmp = (expr);                         \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)
