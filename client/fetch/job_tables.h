// SPDX-License-Identifier: Apache-2.0
//
// JobTables keeps the newest assignment table of each of a job's datasets, and
// joins them into one table of all the job's shards. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/fetch/assignment_table.h"
#include "core/plan/shard_table.h"
#include "leat/v1/types.pb.h"

namespace leat::client {

class JobTables {
 public:
  struct Dataset {
    std::string id;
    ShardTable shards;
  };
  using Table = std::shared_ptr<const AssignmentTable>;

  // `datasets`: in the order in which the job numbers their shards. Sources of
  // a mixture may have the same one.
  explicit JobTables(const std::vector<Dataset>& datasets);

  // Takes a table. Returns the joined one if it has changed; nullptr: the table
  // is older than the known one, or other datasets still have none.
  // kInvalidArgument: of no dataset of the job, or with inconsistent sizes.
  absl::StatusOr<Table> Offer(const v1::Assignment& assignment);

 private:
  struct Known {
    std::string id;
    uint32_t num_shards = 0;
    Table table;
  };

  std::vector<Known> known_;
};

}  // namespace leat::client
