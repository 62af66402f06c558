// SPDX-License-Identifier: Apache-2.0
//
// ReaderAbilities: the abilities that some readers need (core/plan/abilities.h),
// and whether this process has them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leat::worker {

struct ReaderAbility {
  std::string name;
  absl::Status has;  // not OK: why this process lacks it
};

// Loads what the readers need, which takes milliseconds. Thread-safe.
std::vector<ReaderAbility> ReaderAbilities();

// Whether Arrow's libraries are here. Loads them. Defined by the format
// (parquet/).
absl::Status CanReadParquet();

}  // namespace leat::worker
