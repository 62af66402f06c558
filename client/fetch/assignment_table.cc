// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/assignment_table.h"

#include <map>
#include <string_view>
#include <utility>

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
  table->parts_ = {{.num_shards = num_shards, .per_shard = per_shard}};
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

std::shared_ptr<const AssignmentTable> AssignmentTable::Joined(
    std::span<const std::shared_ptr<const AssignmentTable>> tables) {
  std::shared_ptr<AssignmentTable> joined(new AssignmentTable);
  std::map<std::pair<std::string_view, std::string_view>, uint16_t> numbers;
  uint32_t shards = 0;
  for (const auto& table : tables) {
    std::vector<uint16_t> renumbered;
    for (const Worker& worker : table->workers_) {
      const auto [at, is_new] =
          numbers.try_emplace({worker.name, worker.address},
                              static_cast<uint16_t>(joined->workers_.size()));
      if (is_new) joined->workers_.push_back(worker);
      renumbered.push_back(at->second);
    }
    const Part& part = table->parts_[0];
    joined->parts_.push_back({.first_shard = shards,
                              .num_shards = part.num_shards,
                              .per_shard = part.per_shard,
                              .first_owner = joined->owners_.size()});
    for (const uint16_t owner : table->owners_)
      joined->owners_.push_back(renumbered[owner]);
    shards += part.num_shards;
    joined->instance_ += table->instance_;
    joined->version_ += table->version_;
  }
  return joined;
}

bool AssignmentTable::Replaces(const AssignmentTable* other) const {
  if (other == nullptr) return true;
  if (workers_.empty() && !other->workers_.empty()) return false;
  return instance_ != other->instance_ || version_ > other->version_;
}

}  // namespace leat::client
