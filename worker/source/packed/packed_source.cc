// SPDX-License-Identifier: Apache-2.0
#include "worker/source/packed/packed_source.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::worker {

absl::StatusOr<StoredSample> PackedSource::Read(uint64_t sample) const {
  ASSIGN_OR_RETURN(Pending pending, Begin(sample));
  for (const ReadRange& range : pending.ranges)
    RETURN_IF_ERROR(reader_.Read(pending.file, range.offset, range.into));
  return End(sample, std::move(pending.memory));
}

std::vector<absl::StatusOr<StoredSample>> PackedSource::ReadMany(
    std::span<const uint64_t> samples) const {
  std::vector<absl::StatusOr<Pending>> pending;
  std::vector<PackedRead> reads;
  for (const uint64_t sample : samples) {
    pending.push_back(Begin(sample));
    if (!pending.back().ok()) continue;
    for (const ReadRange& range : pending.back()->ranges)
      reads.push_back({.file = pending.back()->file, .range = range});
  }
  reader_.ReadMany(reads);
  std::vector<absl::StatusOr<StoredSample>> stored;
  auto read = reads.begin();
  for (size_t i = 0; i < samples.size(); ++i) {
    absl::Status status = pending[i].status();
    if (status.ok())
      for (size_t left = pending[i]->ranges.size(); left > 0; --left)
        status.Update((read++)->status);
    if (status.ok())
      stored.push_back(End(samples[i], std::move(pending[i]->memory)));
    else
      stored.push_back(std::move(status));
  }
  return stored;
}

size_t PackedSource::Nearby(std::span<const uint64_t> samples,
                            const NearbyLimits& limits) const {
  if (samples.empty()) return 0;
  const Extent first = ExtentOf(samples.front());
  Extent all = first;
  size_t count = 1;
  for (; count < samples.size(); ++count) {
    const Extent next = ExtentOf(samples[count]);
    const uint64_t end = std::max(all.end, next.end);
    if (next.file != first.file || next.begin < all.begin ||
        (next.begin > all.end && next.begin - all.end > limits.gap_bytes) ||
        end - first.begin > limits.total_bytes)
      break;
    all = {first.file, next.begin, end};
  }
  return count;
}

}  // namespace leat::worker
