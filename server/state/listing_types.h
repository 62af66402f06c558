// SPDX-License-Identifier: Apache-2.0
//
// Directives of the coordinator to list a dataset, and the answers of workers.
// Fields mean the same as the fields of the same name
// in proto/leat/v1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/pipeline/graph.h"
#include "core/plan/arrangement.h"
#include "core/plan/index_blocks.h"
#include "core/plan/job.h"
#include "core/plan/passed_over.h"

namespace leat::server {

struct IndexDirective {
  std::string dataset_id;
  uint64_t request_id = 0;
  Node reader;
  uint64_t max_index_bytes = 0;
  uint64_t index_block_bytes = 0;
  // Is arranged of the base; without one the reader's dataset is listed.
  Arrangement arrangement{};
  std::shared_ptr<const DatasetInfo> base{};
  // As in v1::IndexDataset.
  std::optional<IndexBlock> look{};
  bool look_only = false;
  std::vector<IndexBlock> trail{};
};

struct IndexHeader {
  std::string dataset_id;
  uint64_t request_id = 0;
  Digest fingerprint{};
  Digest content{};  // zero: the reader has no storage
  ShardTable shards;
  uint64_t bytes = 0;
  std::vector<std::string> classes;
  std::vector<ValueType> types;
  std::vector<Group> groups;
  uint64_t index_bytes = 0;
  Digest index_sha256{};
  std::string name;
  std::vector<IndexBlock> blocks;
  // The state of storage as the listing saw it; nullopt: it cannot be checked.
  std::optional<IndexBlock> look;
  std::vector<std::string> changes;  // found by a look, for people
  std::vector<PassedOver> passed_over;
};

// v1::IndexLooked.
struct DatasetLooked {
  std::string reader_id;
  uint64_t request_id = 0;
  uint64_t entries = 0, total = 0;
  std::vector<std::string> changes;
  bool lists = false;
};

// v1::IndexProgress.
struct IndexProgress {
  std::string dataset_id;
  uint64_t request_id = 0;
  uint64_t walked = 0, total = 0;
  std::optional<IndexBlock> trail{};
  uint32_t part = 0;
};

// v1::ListingUnderWay.
struct ListingUnderWay {
  std::string dataset_id;
  uint64_t request_id = 0;
  uint64_t files = 0, samples = 0;
};

// SharedBlocks: the blocks of an index, shared with views; never null.
using SharedBlocks = std::shared_ptr<const std::vector<IndexBlock>>;
// The bytes of these blocks, concatenated, are the index.
struct IndexBlocks {
  SharedBlocks blocks;
  Digest identity{};
};

}  // namespace leat::server
