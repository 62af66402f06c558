// SPDX-License-Identifier: Apache-2.0
#include "worker/source/reader_abilities.h"

#include "core/plan/abilities.h"

namespace leat::worker {

std::vector<ReaderAbility> ReaderAbilities() {
  return {{std::string(kParquetAbility), CanReadParquet()}};
}

}  // namespace leat::worker
