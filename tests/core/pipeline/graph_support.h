// SPDX-License-Identifier: Apache-2.0
//
// Functions that several tests of graphs share.
#pragma once

#include <string>

#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gtest/gtest.h"

namespace leat::testing {

inline Value Text(const char* text) { return Value(std::string(text)); }

// Returns the error of a wrong graph. The test fails if the graph is right.
inline std::string ErrorOf(const Graph& graph) {
  const auto checked = Check(graph);
  EXPECT_EQ(checked.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(checked.status()));
}

}  // namespace leat::testing
