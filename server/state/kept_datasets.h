// SPDX-License-Identifier: Apache-2.0
//
// KeptDatasets: the datasets of a State.
//
// A reader may have several listings, each a dataset: jobs go on with the
// listing that they have. The last is what the reader names now.
//
//   Apply(DatasetIndexed d1 of reader r)    listings of r: d1
//   Apply(DatasetIndexed d2 of reader r)    d1, d2: d2 is current
//   Apply(DatasetListedAgain d1)            d2, d1: d1 is current
//
// Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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
  SharedBlocks blocks{};  // of DatasetIndexed
  std::optional<IndexBlock> look{};
  std::vector<PassedOver> passed_over{};
  WallTime listed_at{};   // last
  std::string reader_id;  // of the reader, as in PreparedJob
};

class KeptDatasets {
 public:
  // Whether Apply may be called. kAlreadyExists, kNotFound.
  absl::Status Check(const DatasetIndexed& indexed) const;
  absl::Status Check(const DatasetListedAgain& again) const;
  absl::Status Check(const DatasetDeleted& deleted) const;
  void Apply(WallTime at, const DatasetIndexed& indexed);
  void Apply(WallTime at, const DatasetListedAgain& again);
  void Apply(WallTime at, const DatasetDeleted& deleted);
  // Appends the shortest list of events that makes these.
  void AddEvents(std::vector<Event>* events) const;

  // See State's functions of these names.
  const std::map<std::string, DatasetRecord>& all() const { return datasets_; }
  const DatasetRecord* Find(std::string_view id) const;
  const DatasetRecord* Current(std::string_view reader_id) const;
  bool IsCurrent(const DatasetRecord& dataset) const;
  const DatasetRecord* FindListing(std::string_view reader_id,
                                   const Digest& fingerprint) const;
  absl::StatusOr<const DatasetRecord*> Resolve(std::string_view key) const;

 private:
  std::map<std::string, DatasetRecord> datasets_;  // by id
  // Ids of a reader's listings, by its id; the last is what it names now.
  std::map<std::string, std::vector<std::string>, std::less<>> listings_;
};

}  // namespace leat::server
