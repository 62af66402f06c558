// SPDX-License-Identifier: Apache-2.0
#include "client/batch/step.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/plan/plan.h"
#include "core/status.h"

namespace leat::client {

absl::StatusOr<std::shared_ptr<const RowMap>> RowMap::Create(
    std::vector<uint32_t> rows, uint32_t batch) {
  auto map = std::make_shared<RowMap>();
  if (rows.empty()) {
    rows.resize(batch);
    std::iota(rows.begin(), rows.end(), 0u);
  }
  map->positions_.assign(batch, kAbsent);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= batch)
      return NotFound("rows[{}]: row {}; the batch has rows 0 to {}", i,
                      rows[i], batch - 1);
    uint32_t& position = map->positions_[rows[i]];
    if (position != kAbsent)
      return InvalidArgument("rows[{}]: row {} is there already, at {}", i,
                             rows[i], position);
    position = static_cast<uint32_t>(i);
  }
  map->rows_ = std::move(rows);
  return map;
}

bool Row::AskedOf(uint16_t worker) const {
  return std::find(std::begin(asked), std::end(asked), worker) !=
         std::end(asked);
}

bool Row::FailedAt(uint16_t worker) const {
  return std::find(std::begin(failed), std::end(failed), worker) !=
         std::end(failed);
}

int Row::num_asked() const {
  return static_cast<int>(
      kMaxRequests - std::count(std::begin(asked), std::end(asked), kNobody));
}

bool Row::AddAsked(uint16_t worker) {
  uint16_t* free = std::find(std::begin(asked), std::end(asked), kNobody);
  if (free == std::end(asked)) return false;
  *free = worker;
  return true;
}

void Row::RemoveAsked(uint16_t worker) {
  std::replace(std::begin(asked), std::end(asked), worker, kNobody);
}

void Row::AddFailed(uint16_t worker) {
  if (FailedAt(worker)) return;
  // The oldest entry is forgotten.
  std::rotate(std::begin(failed), std::end(failed) - 1, std::end(failed));
  failed[0] = worker;
}

void Row::ForgetFailed() {
  std::fill(std::begin(failed), std::end(failed), kNobody);
}

Step::Step(uint64_t epoch_number, uint64_t step_number,
           std::shared_ptr<const RowMap> row_map,
           std::span<const uint64_t> plan_samples,
           std::shared_ptr<const BatchLayout> batch_layout,
           BatchPool::Buffer batch_buffer)
    : epoch(epoch_number),
      step(step_number),
      map(std::move(row_map)),
      layout(std::move(batch_layout)),
      memory(std::make_shared<StepMemory>(std::move(batch_buffer))) {
  if (memory->buffer.memory()->kind() == BatchMemory::Kind::kDevice)
    upload = Upload::kDue;
  const std::span<const uint32_t> wanted = map->rows();
  const bool whole = std::find(plan_samples.begin(), plan_samples.end(),
                               kNoSample) == plan_samples.end();
  if (!whole) compact.assign(wanted.size(), RowMap::kAbsent);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (plan_samples[i] == kNoSample) continue;
    if (!whole) compact[i] = static_cast<uint32_t>(globals.size());
    globals.push_back(wanted[i]);
    samples.push_back(plan_samples[i]);
  }
  rows.resize(globals.size());
  pending.resize(globals.size());
  std::iota(pending.begin(), pending.end(), 0u);
}

void Step::Fail(const absl::Status& status) {
  error = Annotate(status, fmt::format("epoch {} step {}", epoch, step));
  pending.clear();
}

uint32_t Step::IndexOf(uint32_t global_row) const {
  const uint32_t position = map->PositionOf(global_row);
  if (position == RowMap::kAbsent || compact.empty()) return position;
  return compact[position];
}

size_t Step::Scatter(const StepMemory& to, std::span<const uint32_t> indices,
                     std::span<const uint8_t> mine, uint64_t offset,
                     std::span<const std::byte> bytes) const {
  size_t written = 0;
  const size_t n = indices.size();
  uint64_t field_begin = 0;
  for (const BatchLayout::Part& part : layout->parts) {
    const uint64_t field_end = field_begin + part.row_bytes * n;
    while (!bytes.empty() && offset < field_end) {
      const uint64_t in_field = offset - field_begin;
      const size_t row = in_field / part.row_bytes;
      const size_t in_row = in_field % part.row_bytes;
      // Copies a run of rows that are adjacent on both sides at once.
      size_t last = row;
      while (last + 1 < n && indices[last + 1] == indices[last] + 1 &&
             mine[last + 1] == mine[row] &&
             (last + 1 - row) * part.row_bytes < bytes.size() + in_row)
        ++last;
      const size_t length = std::min<size_t>(
          bytes.size(), (last - row + 1) * part.row_bytes - in_row);
      if (mine[row] != 0) {
        to.buffer.memory()->Write(
            part.offset + size_t{indices[row]} * part.row_bytes + in_row,
            bytes.first(length));
        written += length;
      }
      offset += length;
      bytes = bytes.subspan(length);
    }
    field_begin = field_end;
  }
  return written;
}

void Step::CopyRows(const StepMemory& from, const StepMemory& to,
                    std::span<const uint32_t> indices,
                    std::span<const uint8_t> mine) const {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (mine[i] == 0) continue;
    size_t last = i;
    while (last + 1 < indices.size() && mine[last + 1] != 0 &&
           indices[last + 1] == indices[last] + 1)
      ++last;
    for (const BatchLayout::Part& part : layout->parts)
      to.buffer.memory()->CopyFrom(
          *from.buffer.memory(),
          part.offset + size_t{indices[i]} * part.row_bytes,
          (last - i + 1) * part.row_bytes);
    i = last;
  }
}

}  // namespace leat::client
