// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/assignment_table.h"

#include "core/status.h"

namespace leat::client {
namespace {
constexpr uint32_t kMaxOwnersPerShard = 4;
constexpr int kMaxWorkers = 65535;
}  // namespace

absl::StatusOr<std::shared_ptr<const AssignmentTable>>
AssignmentTable::FromProto(const v1::Assignment& assignment,
                           std::string_view dataset_id, uint32_t num_shards) {
  if (assignment.dataset_id() != dataset_id)
    return InvalidArgument("assignment: of dataset {}, not of {}",
                           assignment.dataset_id(), dataset_id);
  const uint32_t per_shard = assignment.owners_per_shard();
  const std::string& owners = assignment.owners();
  if (assignment.workers_size() > kMaxWorkers ||
      per_shard > kMaxOwnersPerShard ||
      owners.size() != size_t{num_shards} * per_shard * 2)
    return InvalidArgument(
        "assignment: {} bytes of owners, {} a shard, {} workers; the dataset "
        "has {} shards",
        owners.size(), per_shard, assignment.workers_size(), num_shards);
  std::shared_ptr<AssignmentTable> table(new AssignmentTable);
  table->instance_ = assignment.instance();
  table->version_ = assignment.version();
  table->per_shard_ = per_shard;
  for (const v1::WorkerRef& worker : assignment.workers())
    table->workers_.push_back(
        {worker.name(), worker.address(), worker.public_key()});
  table->owners_.resize(owners.size() / 2);
  for (size_t i = 0; i < table->owners_.size(); ++i) {
    const auto low = static_cast<uint8_t>(owners[2 * i]);
    const auto high = static_cast<uint8_t>(owners[2 * i + 1]);
    const auto owner = static_cast<uint16_t>(low | high << 8);
    if (owner >= table->workers_.size())
      return InvalidArgument("assignment: owner {} of {} workers", owner,
                             table->workers_.size());
    table->owners_[i] = owner;
  }
  return table;
}

bool AssignmentTable::Replaces(const AssignmentTable* other) const {
  if (other == nullptr) return true;
  if (workers_.empty() && !other->workers_.empty()) return false;
  return instance_ != other->instance_ || version_ > other->version_;
}

}  // namespace leat::client
