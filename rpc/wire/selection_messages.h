// SPDX-License-Identifier: Apache-2.0
//
// Converts selections and groups from and to messages. Bytes from the network
// are untrusted: every From* function checks its input.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/selection.h"
#include "leat/v1/selection.pb.h"

namespace leat::rpc {

v1::Selection ToProto(const Selection& selection);
v1::Selection ToProto(const Arrangement& arrangement);
v1::Packing ToProto(const PackNode& pack);
// kInvalidArgument: CheckPackNode refuses it.
absl::StatusOr<PackNode> FromProto(const v1::Packing& packing);
// Groups of both sides have the same order.
void SetGroups(const std::vector<Group>& groups,
               google::protobuf::RepeatedPtrField<v1::Group>* protos);

// Reads what a selection says of samples. They are in groups by class if they
// are chosen and groups have shares. kInvalidArgument: CheckArrangement refuses
// it.
absl::StatusOr<Arrangement> ArrangementFrom(const v1::Selection& selection);
// kInvalidArgument: more than kMaxGroups shares, or as ArrangementFrom.
// CheckSelection
// (core/plan/selection.h) examines what they say.
absl::StatusOr<Selection> FromProto(const v1::Selection& selection);
// kInvalidArgument: more than kMaxGroups, or other than `samples` samples in
// all. None is no error.
absl::StatusOr<std::vector<Group>> GroupsFrom(
    const google::protobuf::RepeatedPtrField<v1::Group>& protos,
    uint64_t samples);

}  // namespace leat::rpc
