// SPDX-License-Identifier: Apache-2.0
//
// proto <-> core. Bytes from the network are hostile: every From* checks what
// it takes.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/plan/job.h"
#include "core/plan/shard_table.h"
#include "leat/v1/types.pb.h"

namespace leat::rpc {

v1::Node ToProto(const Node& node);
v1::Graph ToProto(const Graph& graph);
v1::JobSpec ToProto(const JobSpec& spec);
v1::ShardTable ToProto(const ShardTable& shards);
v1::ValueType ToProto(const ValueType& type);
v1::Dataset ToProto(const DatasetInfo& dataset);
v1::Job ToProto(const JobInfo& job);
// For those who are not to read what it reads: see Job.redacted.
v1::Job ShownToProto(const JobInfo& job);

// kInvalidArgument names the field. A list that is too long for a message has
// no values (core/pipeline/long_list.h). Enums: unspecified becomes the
// default.
absl::StatusOr<Node> FromProto(const v1::Node& node);
absl::StatusOr<Graph> FromProto(const v1::Graph& graph);
absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& spec);
absl::StatusOr<ShardTable> FromProto(const v1::ShardTable& shards);
absl::StatusOr<std::vector<ValueType>> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ValueType>& types);
absl::StatusOr<DatasetInfo> FromProto(const v1::Dataset& dataset);
// Checks also that the plan hash is the spec's.
absl::StatusOr<JobInfo> FromProto(const v1::Job& job);

// A pipeline that has not travelled: lists may be longer than in a message, and
// those that are become LongLists with values. kInvalidArgument: as FromProto,
// and as ShortenLists (core/pipeline/arguments.h).
absl::StatusOr<Graph> FromCaller(const v1::Graph& graph);

// The JSON form of leat.v1.JobSpec, lists as FromCaller takes them.
// kInvalidArgument: the parser's message with
// its place.
absl::StatusOr<JobSpec> JobSpecFromJson(std::string_view json);
std::string ToJson(const JobSpec& spec);

}  // namespace leat::rpc
