// SPDX-License-Identifier: Apache-2.0
//
// Assignments: the owners of the shards of every dataset in use, versioned.
//
// There is a table for each (dataset, decoder class) that a job or a consumer
// uses; workers that lack the class are not in it. A table gets a new version,
// from one counter for all, only if something in it changed. The instance
// number tells the coordinators of different starts apart.
//
// Thread-compatible; the owner locks.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/assignment.h"
#include "server/membership.h"
#include "server/types.h"

namespace leat::server {

struct TableKey {
  std::string dataset_id;
  DecoderClass decoder_class = DecoderClass::kExact;
  friend auto operator<=>(const TableKey&, const TableKey&) = default;
};

class Assignments {
 public:
  explicit Assignments(uint64_t instance) : instance_(instance) {}

  // Adds a table, without owners until it is updated. False: it is there.
  bool Add(const TableKey& key, uint32_t num_shards);
  void Remove(const TableKey& key) { tables_.erase(key); }
  // Gives the READY workers their shards. Returns the tables that changed.
  std::vector<TableKey> Update(const Membership& membership);
  // The same for one table. True: it changed. REQUIRES: it is there.
  bool Update(const TableKey& key, const Membership& membership);

  // nullptr: no such table, or never updated.
  std::shared_ptr<const Assignment> Get(const TableKey& key) const;
  // Of `dataset_id`, the table that workers are told: of the exact class if
  // there is one. nullptr: none.
  std::shared_ptr<const Assignment> ForWorkers(
      std::string_view dataset_id) const;
  std::vector<TableKey> keys() const;
  // Shards owned first, by worker, over all tables.
  std::map<std::string, uint64_t> Loads() const;

 private:
  struct Table {
    Table(const TableKey& key, uint32_t num_shards)
        : assigner(key.dataset_id, num_shards) {}
    Assigner assigner;
    std::shared_ptr<const Assignment> published;
  };
  bool Update(const TableKey& key, const Membership& membership, Table* table);

  const uint64_t instance_;
  uint64_t version_ = 0;
  std::map<TableKey, Table> tables_;
};

}  // namespace leat::server
