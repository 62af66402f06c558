// SPDX-License-Identifier: Apache-2.0
//
// KeptDatasets: the datasets of a State.
//
// A reader may have several listings, each of them a dataset: jobs keep the
// listing that they were created with. The last listing is the current one.
//
//   Apply(DatasetIndexed d1 of reader r)    listings of r: d1
//   Apply(DatasetIndexed d2 of reader r)    d1, d2: d2 is current
//   Apply(DatasetListedAgain d1)            d2, d1: d1 is current
//
// An arrangement of a dataset is a dataset, too, and has listings in the same
// way. It is listed over one listing of its base, which exists as long as it.
//
// Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/state/events.h"

namespace leat::server {

struct DatasetRecord {
  std::shared_ptr<const DatasetInfo> info;  // shared with views
  uint64_t index_bytes = 0;
  Digest index_sha256{};
  WallTime indexed_at{};
  SharedBlocks blocks{};  // as in DatasetIndexed
  std::optional<IndexBlock> look{};
  std::vector<PassedOver> passed_over{};
  WallTime listed_at{};   // last time
  std::string reader_id;  // PreparedSource::listing_id
};

class KeptDatasets {
 public:
  // Checks that Apply may be called. kAlreadyExists, kNotFound,
  // kFailedPrecondition: a dataset that others arrange is deleted (names them).
  absl::Status Check(const DatasetIndexed& indexed) const;
  absl::Status Check(const DatasetListedAgain& again) const;
  absl::Status Check(const DatasetDeleted& deleted) const;
  void Apply(WallTime at, const DatasetIndexed& indexed);
  void Apply(WallTime at, const DatasetListedAgain& again);
  void Apply(WallTime at, const DatasetDeleted& deleted);
  // Appends the shortest list of events that recreates these datasets.
  void AddEvents(std::vector<Event>* events) const;

  // These are the State functions with the same names.
  const std::map<std::string, DatasetRecord>& all() const { return datasets_; }
  const DatasetRecord* Find(std::string_view id) const;
  const DatasetRecord* Current(std::string_view reader_id) const;
  bool IsCurrent(const DatasetRecord& dataset) const;
  // Returns the IDs of the arrangements of a dataset; nullptr: there are none.
  const std::set<std::string>* ArrangementsOf(std::string_view id) const;
  const DatasetRecord* FindListing(std::string_view reader_id,
                                   const Digest& fingerprint) const;
  absl::StatusOr<const DatasetRecord*> Resolve(std::string_view key) const;

 private:
  void AddEvents(bool arranged, std::vector<Event>* events) const;

  std::map<std::string, DatasetRecord> datasets_;  // by id
  // IDs of a reader's listings, by reader ID; the last is the current one.
  std::map<std::string, std::vector<std::string>, std::less<>> listings_;
  // By the base's ID.
  std::map<std::string, std::set<std::string>, std::less<>> arrangements_;
};

}  // namespace leat::server
