// SPDX-License-Identifier: Apache-2.0
//
// What tests of graphs say often.
#pragma once

#include <string>

#include "core/graph.h"
#include "core/operators.h"
#include "core/status.h"
#include "gtest/gtest.h"

namespace leat::testing {

inline Value Text(const char* text) { return Value(std::string(text)); }

// Why a graph that is wrong is refused; a test that checks a right one fails.
inline std::string ErrorOf(const Graph& graph) {
  const auto checked = Check(graph);
  EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(checked.status()));
}

}  // namespace leat::testing
