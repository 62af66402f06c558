// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/job_tables.h"

#include <algorithm>

#include "core/status.h"

namespace leat::client {

JobTables::JobTables(const std::vector<Dataset>& datasets) {
  for (const Dataset& dataset : datasets)
    known_.push_back({dataset.id, dataset.shards.num_shards(), nullptr});
}

absl::StatusOr<JobTables::Table> JobTables::Offer(
    const v1::Assignment& assignment) {
  const auto first =
      std::ranges::find(known_, assignment.dataset_id(), &Known::id);
  if (first == known_.end())
    return InvalidArgument("assignment: of dataset {}, which the job has not",
                           assignment.dataset_id());
  ASSIGN_OR_RETURN(
      const Table table,
      AssignmentTable::FromProto(assignment, first->id, first->num_shards));
  if (!table->Replaces(first->table.get())) return nullptr;
  for (auto known = first; known != known_.end(); ++known)
    if (known->id == first->id) known->table = table;
  if (known_.size() == 1) return table;
  std::vector<Table> all;
  for (const Known& known : known_) {
    if (known.table == nullptr) return nullptr;
    all.push_back(known.table);
  }
  return AssignmentTable::Joined(all);
}

}  // namespace leat::client
