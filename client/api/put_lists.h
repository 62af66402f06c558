// SPDX-License-Identifier: Apache-2.0
//
// Uploads the long lists of a pipeline (core/pipeline/long_list.h) to the
// coordinator, before the job that names them is created.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/coordinator/control.h"
#include "client/coordinator/retry.h"
#include "core/pipeline/graph.h"

namespace leat::client {

bool HasLists(const Graph& pipeline);

// Uploads the blocks that the coordinator lacks, one after the other. Lists
// without values are left to it. kFailedPrecondition: its version accepts no
// lists. Others: see PutListBlock in proto/leat/v1/coordinator.proto.
absl::Status PutLists(const Graph& pipeline, const Retry& retry,
                      absl::Time deadline, Control* control);

}  // namespace leat::client
