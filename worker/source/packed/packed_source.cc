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

void PackedSource::Fill(std::span<absl::StatusOr<Pending>> pending) const {
  std::vector<PackedRead> reads;
  for (const absl::StatusOr<Pending>& each : pending) {
    if (!each.ok()) continue;
    for (const ReadRange& range : each->ranges)
      reads.push_back({.file = each->file, .range = range});
  }
  reader_.ReadMany(reads);
  auto read = reads.begin();
  for (absl::StatusOr<Pending>& each : pending) {
    if (!each.ok()) continue;
    absl::Status status;
    for (size_t left = each->ranges.size(); left > 0; --left)
      status.Update((read++)->status);
    if (!status.ok()) each = std::move(status);
  }
}

std::vector<absl::StatusOr<StoredSample>> PackedSource::ReadMany(
    std::span<const uint64_t> samples) const {
  std::vector<absl::StatusOr<Pending>> pending;
  for (const uint64_t sample : samples) pending.push_back(Begin(sample));
  Fill(pending);
  std::vector<absl::StatusOr<StoredSample>> stored;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (pending[i].ok())
      stored.push_back(End(samples[i], std::move(pending[i]->memory)));
    else
      stored.push_back(pending[i].status());
  }
  return stored;
}

std::vector<absl::StatusOr<StoredPart>> PackedSource::ReadParts(
    std::span<const RecordPart> parts) const {
  std::vector<absl::StatusOr<Pending>> pending;
  for (const RecordPart& part : parts) {
    pending.push_back(BeginPart(part));
    if (absl::IsUnimplemented(pending.back().status()))
      return FormatSource::ReadParts(parts);
  }
  Fill(pending);
  std::vector<absl::StatusOr<StoredPart>> stored;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (pending[i].ok())
      stored.push_back(EndPart(parts[i], std::move(pending[i]->memory)));
    else
      stored.push_back(pending[i].status());
  }
  return stored;
}

absl::StatusOr<PackedSource::Pending> PackedSource::BeginPart(
    const RecordPart&) const {
  return Unimplemented("records are read whole");
}
// Formats that override it keep the memory.
absl::StatusOr<StoredPart> PackedSource::EndPart(
    const RecordPart&,
    // NOLINTNEXTLINE(performance-unnecessary-value-param)
    SampleBytes) const {
  return Unimplemented("records are read whole");
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
