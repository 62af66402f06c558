// SPDX-License-Identifier: Apache-2.0
//
// Assignments: versioned owners of the shards of every dataset in use.
//
// There is a table per (dataset, decoder class, decoders, abilities) that a job
// or a consumer uses. It names the READY workers that have the class and the
// abilities (core/plan/abilities.h), decode like that (server/state/decoders.h)
// and can read the dataset. The abilities are the job's, since a worker opens a
// mixture with all its sources. A table gets a new
// version, from one counter for all tables, only if something in it changed.
// The instance number distinguishes the coordinator's starts.
//
// Consumers obey a table, so an empty one would stop them: if no worker can own
// shards, the table stays as it was, and a table that never had owners is not
// published at all.
//
// Computing a table takes up to seconds; TableBuilder does it without the
// coordinator's lock:
//
//   builders = assignments.Due(...)          under the lock
//   built = builder->Build(members, ...)     without it, one at a time
//   assignments.Publish(builder, built)      under the lock
//
// Assignments is thread-compatible; the owner locks. A TableBuilder is used by
// one thread at a time.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/cluster/assignment.h"
#include "core/hash.h"
#include "core/plan/abilities.h"
#include "server/membership/membership.h"
#include "server/state/types.h"

namespace leat::server {

v1::WorkerRef ToProto(const WorkerRef& worker);

struct TableKey {
  std::string dataset_id;
  DecoderClass decoder_class = DecoderClass::kExact;
  Digest decoders{};      // that its plans began with; zero: not begun
  Abilities abilities{};  // that its jobs need
  friend auto operator<=>(const TableKey&, const TableKey&) = default;
};

// A worker that may own shards, as of one moment.
struct Member {
  std::shared_ptr<const WorkerRegistration> registration;
  double weight = 1;
  StorageFailures failures = {};
  // True if it cannot read the dataset with this fingerprint.
  bool FailsToRead(const Digest& fingerprint) const;
};
// Returns the READY workers, sorted by name.
std::vector<Member> MembersOf(const Membership& membership);

class TableBuilder {
 public:
  struct Built {
    std::shared_ptr<const Assignment> table;  // nullptr: nothing changed
    // Workers whose set of primarily owned shards changed.
    std::vector<std::string> changed;
  };

  TableBuilder(const TableKey& key, const Digest& fingerprint,
               uint32_t num_shards)
      : key_(key),
        fingerprint_(fingerprint),
        assigner_(key.dataset_id, num_shards) {}

  const TableKey& key() const { return key_; }
  // `version`: of the newest of all tables; raised if this one changes.
  Built Build(const std::vector<Member>& members, uint64_t instance,
              uint64_t* version);

 private:
  const TableKey key_;
  const Digest fingerprint_;  // of the dataset
  Assigner assigner_;
  std::shared_ptr<const Assignment> last_;
};

class Assignments {
 public:
  // Counts a user of the table, which exists while it has any. `fingerprint`:
  // the dataset's.
  void Use(const TableKey& key, const Digest& fingerprint, uint32_t num_shards);
  // Removes a user. If it was the last, removes the table and returns it;
  // nullptr: it stays, or was never published.
  std::shared_ptr<const Assignment> Release(const TableKey& key);

  // Returns the tables to compute: all, or those never computed.
  std::vector<std::shared_ptr<TableBuilder>> Due(bool all) const;
  bool has_new() const { return !new_.empty(); }
  // Lets tables that were never computed wait until all are computed.
  void ForgetNew() { new_.clear(); }
  // Returns false if the table does not exist any more.
  bool Publish(const TableBuilder& builder, const TableBuilder::Built& built);

  // Returns nullptr if there is no such table, or it was never published.
  std::shared_ptr<const Assignment> Get(const TableKey& key) const;
  // Returns all published tables of a dataset; the exact class's first.
  std::vector<std::shared_ptr<const Assignment>> Of(
      std::string_view dataset_id) const;
  bool Uses(std::string_view dataset_id) const;
  // Returns the first dataset after `after` that has a published table; empty:
  // none.
  std::string DatasetAfter(const std::string& after) const;
  // Returns the number of shards with `worker` as primary owner, over all
  // tables.
  uint64_t Load(std::string_view worker) const;

 private:
  struct Table {
    std::shared_ptr<TableBuilder> builder;
    std::shared_ptr<const Assignment> published;
    size_t users = 0;
  };
  void AddLoads(const Assignment& table, bool add);

  std::map<TableKey, Table> tables_;
  std::set<TableKey> new_;  // never computed
  absl::flat_hash_map<std::string, uint64_t> loads_;
};

}  // namespace leat::server
