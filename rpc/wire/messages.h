// SPDX-License-Identifier: Apache-2.0
//
// Converts messages of jobs and datasets from and to core types. Bytes from the network are
// untrusted: every From* function checks its input.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/plan/job.h"
#include "core/plan/shard_table.h"
#include "leat/v1/types.pb.h"
#include "rpc/wire/graph_messages.h"
#include "rpc/wire/selection_messages.h"

namespace leat::rpc {

v1::JobSpec ToProto(const JobSpec& spec);
v1::ShardTable ToProto(const ShardTable& shards);
v1::ValueType ToProto(const ValueType& type);
v1::Dataset ToProto(const DatasetInfo& dataset);
v1::Job ToProto(const JobInfo& job);
// For callers that may not read secrets: see Job.redacted.
v1::Job ShownToProto(const JobInfo& job);

// kInvalidArgument names the field. An unspecified enum becomes the default.
absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& spec);
absl::StatusOr<ShardTable> FromProto(const v1::ShardTable& shards);
absl::StatusOr<std::vector<ValueType>> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ValueType>& types);
absl::StatusOr<DatasetInfo> FromProto(const v1::Dataset& dataset);
// Checks also that the plan hash is the spec's.
absl::StatusOr<JobInfo> FromProto(const v1::Job& job);

// Parses the JSON form of leat.v1.JobSpec, with lists as in FromCaller.
// kInvalidArgument: the parser's message with its position.
absl::StatusOr<JobSpec> JobSpecFromJson(std::string_view json);
std::string ToJson(const JobSpec& spec);

}  // namespace leat::rpc
