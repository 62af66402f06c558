// SPDX-License-Identifier: Apache-2.0
//
// SequenceReport: the lengths of a dataset's documents, and how many rows they
// make when they are packed, for `leat inspect` and `leat index`.
//
// Lengths are taken one by one, as a listing finds them. Quantiles come from a
// histogram: up to 1,024 elements they are exact, and above within a part in
// 512. Packing is computed as for a job (core/packing/windows.h), how="fit".
//
// Not thread-safe. Memory: 250 KB, and the lengths of two windows for each
// length of a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/packing/windows.h"
#include "core/pipeline/operators.h"
#include "core/tensor/tensor.h"
#include "nlohmann/json.hpp"

namespace leat::worker {

// True for a tensor of integers whose only size is open.
bool IsSequence(const ValueType& type);
// Returns the whole numbers that little-endian `bytes` begin with.
std::vector<int64_t> WholeNumbers(std::span<const std::byte> bytes,
                                  DType dtype);

class SequenceReport {
 public:
  // `rows`: the lengths of rows that are tried.
  explicit SequenceReport(std::span<const uint64_t> rows);

  void Add(uint64_t elements);
  // Returns {"documents", "elements", "empty", "least", "mean", "most", "p1",
  // "p10", "p50", "p90", "p99", "packed": [{"how", "length", "rows", "fill"}]}. A
  // length that a document is too long for has an "error" in place of rows.
  // REQUIRES: called once, last.
  nlohmann::ordered_json Finish();

  uint64_t documents() const { return documents_; }

 private:
  struct Tried {
    uint64_t length = 0;
    uint64_t rows = 0;
    absl::Status status;
    std::unique_ptr<WindowCutter> cutter;
  };
  static size_t BucketOf(uint64_t elements);
  static uint64_t LeastOf(size_t bucket);
  // Returns the length that the share `of` of the documents do not exceed.
  uint64_t Quantile(double of) const;

  std::vector<uint64_t> buckets_;
  std::vector<Tried> tried_;
  uint64_t documents_ = 0, empty_ = 0, elements_ = 0;
  uint64_t least_ = UINT64_MAX, most_ = 0;
};

}  // namespace leat::worker
