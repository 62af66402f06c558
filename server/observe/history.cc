// SPDX-License-Identifier: Apache-2.0
#include "server/observe/history.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat::server {
namespace {

constexpr double kWholeShare = 200;  // the stored value of 1

}  // namespace

void History::Sample::Set(size_t index, double share) {
  shares.at(index) = static_cast<uint8_t>(
      std::lround(kWholeShare * std::clamp(share, 0.0, 1.0)));
}

double History::Sample::Get(size_t index) const {
  return shares.at(index) / kWholeShare;
}

int64_t History::SlotOf(MonotonicTime time) {
  return time.time_since_epoch() / kSlot;
}

uint32_t History::NumberOf(std::string_view series) const {
  const auto found =
      numbers_.find(absl::string_view(series.data(), series.size()));
  return found == numbers_.end() ? 0 : found->second;
}

std::string_view History::NameOf(uint32_t number) const {
  const auto found = names_.find(number);
  return found == names_.end() ? std::string_view() : found->second.name;
}

uint32_t History::Number(std::string_view series) {
  if (const uint32_t known = NumberOf(series); known != 0) return known;
  if (numbers_.size() >= config_.max_series) return 0;
  const uint32_t number = next_number_++;
  numbers_.emplace(std::string(series), number);
  names_[number].name = series;
  return number;
}

void History::DropOldest() {
  const Chunk& oldest = chunks_.front();
  for (const auto& [number, samples] : oldest.samples) {
    const auto known = names_.find(number);
    if (known->second.last_chunk != oldest.number) continue;
    numbers_.erase(known->second.name);
    names_.erase(known);
  }
  arrays_ -= oldest.samples.size();
  chunks_.pop_front();
}

// Returns nullptr if it is older than the kept period.
History::Chunk* History::ChunkFor(int64_t number) {
  const auto kept =
      std::max<int64_t>(1, config_.keep / kSlot / int64_t{kChunkSlots});
  while (!chunks_.empty() && chunks_.front().number <= number - kept)
    DropOldest();
  for (auto it = chunks_.rbegin(); it != chunks_.rend(); ++it) {
    if (it->number == number) return &*it;
    if (it->number > number) continue;
    if (it == chunks_.rbegin()) break;
    return nullptr;  // a chunk without a sample in its time
  }
  if (!chunks_.empty() && chunks_.front().number > number) return nullptr;
  chunks_.push_back({.number = number, .samples = {}});
  return &chunks_.back();
}

void History::Add(std::string_view series, const Sample& sample,
                  MonotonicTime now) {
  const int64_t slot = SlotOf(now);
  const int64_t number = slot / int64_t{kChunkSlots};
  if (ChunkFor(number) == nullptr) return;
  while (bytes() + kArrayBytes > config_.max_bytes && chunks_.size() > 1)
    DropOldest();
  Chunk* const chunk = ChunkFor(number);
  if (chunk == nullptr) return;
  const uint32_t id = Number(series);
  if (id == 0) return;
  std::unique_ptr<Samples>& samples = chunk->samples[id];
  if (samples == nullptr) {
    samples = std::make_unique<Samples>();
    ++arrays_;
  }
  (*samples)[static_cast<size_t>(slot % int64_t{kChunkSlots})] = sample;
  int64_t& last = names_[id].last_chunk;
  last = std::max(last, number);
}

void History::ForEach(std::string_view series, MonotonicTime since,
                      const std::function<void(const Sample&)>& visit) const {
  ForEach(series, since, [&](int64_t, const Sample& each) { visit(each); });
}

void History::ForEach(
    std::string_view series, MonotonicTime since,
    const std::function<void(int64_t, const Sample&)>& visit) const {
  const uint32_t id = NumberOf(series);
  if (id == 0) return;
  const int64_t first = SlotOf(since);
  for (const Chunk& chunk : chunks_) {
    const int64_t begin = chunk.number * int64_t{kChunkSlots};
    if (begin + int64_t{kChunkSlots} <= first) continue;
    const auto found = chunk.samples.find(id);
    if (found == chunk.samples.end()) continue;
    for (size_t i = 0; i < kChunkSlots; ++i) {
      const Sample& sample = (*found->second)[i];
      const int64_t slot = begin + static_cast<int64_t>(i);
      if (slot >= first && sample.rows_per_s != Sample::kNone)
        visit(slot, sample);
    }
  }
}

}  // namespace leat::server
