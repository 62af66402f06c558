// SPDX-License-Identifier: Apache-2.0
//
// IndexOpener: opens the index of a dataset that was listed: of one whose index
// is in blocks with samples only the head, and of one that arranges another
// over the opened base.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/job.h"
#include "worker/job/block_source.h"
#include "worker/job/index_cache.h"
#include "worker/source/source.h"

namespace leat::worker {

// The parts of an index, as the coordinator reports them.
struct FetchedBlocks {
  std::vector<IndexBlock> blocks;
  Digest identity{};
  std::string bytes;  // of all blocks, unchecked; empty: they are to be fetched
};

// Fetches indexes.
class IndexFetcher : public BlockFetcher {
 public:
  // Returns the parts of the indexes of the first of these datasets, or all: at
  // least one. kNotFound: no such dataset. kUnavailable, kDeadlineExceeded: try
  // again. REQUIRES: 1 to kMostTogether datasets.
  virtual std::vector<absl::StatusOr<FetchedBlocks>> FetchBlocks(
      std::span<const DatasetInfo* const> datasets) = 0;
  static constexpr size_t kMostTogether = 64;
};

// Thread-safe.
class IndexOpener {
 public:
  struct Uses {
    IndexFetcher* fetcher = nullptr;  // outlives the opened sources
    std::shared_ptr<IndexCache> cache;
    SourceLimits limits;
    Duration block_timeout = std::chrono::seconds(30);
  };
  // `pause` returns false to give up.
  IndexOpener(Uses uses, std::function<bool(Duration)> pause)
      : uses_(std::move(uses)), pause_(std::move(pause)) {}

  // Returns the source together with the storage that it reads by. `base`: the
  // opened base of an arrangement. `index`: what FetchBlocks returned; nullopt:
  // it is called. kDataLoss: an index that is not the dataset's. kUnavailable:
  // this worker cannot read the beginning of the dataset, or the coordinator
  // does not answer.
  absl::StatusOr<std::shared_ptr<const Source>> Open(
      const DatasetInfo& dataset, const Node& reader,
      std::shared_ptr<const Source> base = nullptr,
      std::optional<FetchedBlocks> index = std::nullopt) const;

 private:
  absl::StatusOr<std::shared_ptr<const Source>> OpenBlocks(
      const DatasetInfo& dataset, const Node& reader,
      const SourceLimits& limits, std::shared_ptr<const Source> base,
      FetchedBlocks index) const;
  absl::StatusOr<std::string> FetchWhole(
      const DatasetInfo& dataset, std::span<const IndexBlock> blocks) const;

  const Uses uses_;
  const std::function<bool(Duration)> pause_;
};

}  // namespace leat::worker
