// SPDX-License-Identifier: Apache-2.0
//
// Reads the contents of records without their neighbours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "worker/source/source.h"

namespace leat::worker {

// Returns the bytes of each record's fields. Each is read by a separate new
// source, in a random order.
inline std::vector<std::vector<std::string>> RecordsAlone(
    const Node& reader, const SourceLimits& limits) {
  const auto index = BuildIndex(reader, limits);
  EXPECT_TRUE(index.ok()) << index.status();
  if (!index.ok()) return {};
  std::vector<uint64_t> order(index->shards.num_samples());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::minstd_rand(3));
  std::vector<std::vector<std::string>> records(order.size());
  for (const uint64_t i : order) {
    const auto source = OpenSource(reader, index->blob, limits);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    const auto sample = (*source)->Read(i);
    EXPECT_TRUE(sample.ok()) << "record " << i << ": " << sample.status();
    if (!sample.ok()) continue;
    for (const StoredField& field : sample->fields)
      records[i].emplace_back(reinterpret_cast<const char*>(field.bytes.data()),
                              field.bytes.size());
  }
  return records;
}

}  // namespace leat::worker
