// SPDX-License-Identifier: Apache-2.0
//
// History: one sample per two seconds of what workers and consumers did, for an
// hour, so that questions about the past need no other program.
//
// Samples are stored in chunks of a minute, and in a chunk by series, so that
// memory follows the data, and old data is dropped at once:
//
//   chunks_   12:00 {1: 30 samples, 2: 30 samples}   12:01 {1: …}   …
//
// The oldest chunk is dropped when it is an hour old, or when `max_bytes` are
// exceeded: the default holds an hour of 8,000 workers and consumers, or a
// quarter of an hour of 30,000. A series without a sample in any chunk is
// forgotten.
//
// Thread-compatible; the owner locks. Time: callers pass `now`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "core/clock.h"

namespace leat::server {

class History {
 public:
  static constexpr Duration kSlot = std::chrono::seconds(2);
  static constexpr size_t kChunkSlots = 30;
  static constexpr size_t kShares = 8;

  struct Config {
    Duration keep = std::chrono::hours(1);
    size_t max_bytes = 256 << 20;
    size_t max_series = 65'536;  // further new series are left out
  };
  // Sample holds one slot of a series. The history's owner defines the whole
  // of each share.
  struct Sample {
    static constexpr float kNone = -1;
    float rows_per_s = kNone;  // kNone: there is no sample
    uint32_t other = 0;        // number of another series; 0: none
    std::array<uint8_t, kShares> shares{};

    // Shares are 0 to 1, in steps of half a per cent; larger values become 1.
    void Set(size_t index, double share);
    double Get(size_t index) const;
  };

  explicit History(const Config& config) : config_(config) {}

  // Numbers begin with 1. Returns 0 if the series is unknown.
  uint32_t NumberOf(std::string_view series) const;
  // Returns an empty name if no series has the number.
  std::string_view NameOf(uint32_t number) const;
  // Replaces the sample in the slot of `now`, which may go back by at most a
  // chunk.
  void Add(std::string_view series, const Sample& sample, MonotonicTime now);
  // Visits the samples of the slots since then, oldest first. `slot`: as
  // SlotOf.
  void ForEach(
      std::string_view series, MonotonicTime since,
      const std::function<void(int64_t slot, const Sample&)>& visit) const;
  void ForEach(std::string_view series, MonotonicTime since,
               const std::function<void(const Sample&)>& visit) const;
  static int64_t SlotOf(MonotonicTime time);
  static MonotonicTime BeginOf(int64_t slot) {
    return MonotonicTime(slot * kSlot);
  }

  size_t bytes() const { return arrays_ * kArrayBytes; }
  size_t num_series() const { return numbers_.size(); }

 private:
  using Samples = std::array<Sample, kChunkSlots>;
  // Includes its entry in a chunk's map.
  static constexpr size_t kArrayBytes = sizeof(Samples) + 48;
  struct Chunk {
    int64_t number = 0;  // its first slot / kChunkSlots
    absl::flat_hash_map<uint32_t, std::unique_ptr<Samples>> samples;
  };

  Chunk* ChunkFor(int64_t number);
  void DropOldest();
  uint32_t Number(std::string_view series);

  const Config config_;
  std::deque<Chunk> chunks_;  // by number
  size_t arrays_ = 0;
  uint32_t next_number_ = 1;
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  struct Known {
    std::string name;
    int64_t last_chunk = 0;  // the last with a sample of it
  };
  absl::flat_hash_map<uint32_t, Known> names_;
};

}  // namespace leat::server
