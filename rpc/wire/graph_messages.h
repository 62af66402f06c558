// SPDX-License-Identifier: Apache-2.0
//
// Converts pipelines from and to messages. Bytes from the network are
// untrusted: every From* function checks its input.
#pragma once

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "leat/v1/types.pb.h"

namespace leat::rpc {

v1::Node ToProto(const Node& node);
v1::Graph ToProto(const Graph& graph);

// kInvalidArgument names the field. A list that is too long for a message has
// no values (core/pipeline/long_list.h).
absl::StatusOr<Node> FromProto(const v1::Node& node);
absl::StatusOr<Graph> FromProto(const v1::Graph& graph);

// Converts a pipeline that was not sent in a message: lists may be longer than
// in a message, and long ones become LongLists with values. kInvalidArgument:
// as FromProto, and as ShortenLists (core/pipeline/arguments.h).
absl::StatusOr<Graph> FromCaller(const v1::Graph& graph);

}  // namespace leat::rpc
