// SPDX-License-Identifier: Apache-2.0
//
// Checks for the possible results of reading damaged files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cluster/fault.h"
#include "gtest/gtest.h"
#include "worker/source/faults/fault_rules.h"
#include "worker/source/source.h"

namespace leat::worker {

// Expects success, or a fault of the sample or object. A fault of this worker
// would send the request to another worker, and a transient one would pass.
inline void ExpectVerdict(const absl::Status& status) {
  if (status.ok()) return;
  const std::optional<Fault> fault = FaultOf(Judged(status));
  EXPECT_TRUE(fault == Fault::kSample || fault == Fault::kObject) << status;
}

// Describes and reads every sample.
inline void ReadDamaged(const absl::StatusOr<std::unique_ptr<Source>>& source) {
  ExpectVerdict(source.status());
  if (!source.ok()) return;
  const uint64_t samples = std::min<uint64_t>(100, (*source)->num_samples());
  for (uint64_t i = 0; i < samples; ++i) {
    EXPECT_FALSE((*source)->Describe(i).empty());
    ExpectVerdict((*source)->Read(i).status());
  }
}

}  // namespace leat::worker
