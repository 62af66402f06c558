// SPDX-License-Identifier: Apache-2.0
//
// Converts what is kept of a dataset to and from its stored form, for
// records.cc.
#pragma once

#include "absl/status/statusor.h"
#include "leat/stored/v1/records.pb.h"
#include "server/state/events.h"

namespace leat::server {

void ToStored(const DatasetIndexed& indexed, stored::v1::DatasetIndexed* to);
void ToStored(const DatasetListedAgain& again,
              stored::v1::DatasetListedAgain* to);

// kDataLoss: a hash, a dtype or a table of shards that no version writes.
absl::StatusOr<DatasetIndexed> FromStored(
    const stored::v1::DatasetIndexed& from);
absl::StatusOr<DatasetListedAgain> FromStored(
    const stored::v1::DatasetListedAgain& from);

}  // namespace leat::server
