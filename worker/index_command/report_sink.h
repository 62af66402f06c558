// SPDX-License-Identifier: Apache-2.0
//
// ReportSink takes an index from a listing, and keeps its head and a few blocks
// that are spread evenly, however many come: every 2^k-th one, and k grows when
// there are too many, which drops every second one:
//
//   0 1 2 3 4 5 6 7  ─► 0 . 2 . 4 . 6 . 8 . ─► 0 . . . 4 . . . 8 . . . 12
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/index_command/dataset_report.h"
#include "worker/source/source.h"

namespace leat::worker {

class ReportSink final : public IndexSink {
 public:
  // Takes each block with samples, in order, before it may be dropped. An error
  // ends the listing.
  using Use = std::function<absl::Status(std::string_view head,
                                         std::string_view block)>;

  // `use` may be null.
  ReportSink(uint64_t max_whole_bytes, ReportProgress* progress, Use use)
      : max_whole_bytes_(max_whole_bytes),
        progress_(progress),
        use_(std::move(use)) {}

  struct Block {
    uint64_t number = 0;
    uint64_t first = 0, samples = 0;
    std::string bytes;
  };

  // kResourceExhausted: an index without blocks of samples that is too large.
  absl::Status Add(std::string bytes, uint64_t samples) override;

  // Returns the head, or the whole of an index without blocks of samples.
  const std::string& whole() const { return whole_; }
  const std::vector<Block>& kept() const { return kept_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t blocks() const { return blocks_; }

 private:
  const uint64_t max_whole_bytes_;
  ReportProgress* const progress_;
  const Use use_;
  std::string whole_;
  std::vector<Block> kept_;
  uint64_t every_ = 1;
  uint64_t with_samples_ = 0, blocks_ = 0, samples_ = 0, bytes_ = 0;
};

}  // namespace leat::worker
