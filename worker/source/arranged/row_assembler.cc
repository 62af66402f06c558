// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/row_assembler.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kFieldAlignment = 64;

size_t RoundedUp(size_t bytes) {
  return (bytes + kFieldAlignment - 1) / kFieldAlignment * kFieldAlignment;
}

// Writes `count` elements of `fill`.
void FillWith(std::span<const std::byte> fill, uint64_t count, std::byte* to) {
  const bool zero = std::ranges::all_of(
      fill, [](std::byte byte) { return byte == std::byte{0}; });
  if (zero) {
    std::memset(to, 0, count * fill.size());
    return;
  }
  for (uint64_t i = 0; i < count; ++i, to += fill.size())
    std::memcpy(to, fill.data(), fill.size());
}

}  // namespace

RowAssembler::RowAssembler(const PackNode& pack,
                           std::span<const ValueType> types)
    : length_(pack.packing.length) {
  const auto place = [&](size_t element_bytes) {
    const size_t offset = row_bytes_;
    row_bytes_ = RoundedUp(offset + length_ * element_bytes);
    return offset;
  };
  for (size_t i = 0; i < pack.outputs.size(); ++i) {
    const ValueType& type = types[pack.outputs[i]];
    Value value{.output = pack.outputs[i],
                .element_bytes = PackedElementBytes(type)};
    value.offset = place(value.element_bytes);
    const std::vector<std::byte> fill = pack.FillBytes(i, type.dtype);
    while (value.fill.size() < value.element_bytes)
      value.fill.insert(value.fill.end(), fill.begin(), fill.end());
    values_.push_back(std::move(value));
  }
  segments_ = place(sizeof(int32_t));
  positions_ = place(sizeof(int32_t));
}

RowAssembler::Row::Row(const RowAssembler& assembler)
    : assembler_(assembler),
      bytes_(std::make_shared<std::vector<std::byte>>(assembler.row_bytes_)) {}

absl::Status RowAssembler::Row::Add(const Piece& piece, const StoredPart& part,
                                    uint64_t listed) {
  for (const Value& value : assembler_.values_) {
    // The index says which outputs are packed, and may be of another reader.
    if (value.output >= part.stored.fields.size())
      return DataLoss(
          "document {} has {} values, and the index packs output {} of its "
          "reader",
          piece.document, part.stored.fields.size(), value.output);
    const std::span<const std::byte> from =
        part.stored.fields[value.output].bytes;
    const uint64_t there = from.size() / value.element_bytes;
    const uint64_t elements = part.elements.value_or(there);
    const uint64_t begin = part.elements ? 0 : piece.begin;
    if (from.size() % value.element_bytes != 0 || elements != listed ||
        there < begin + piece.size)
      return DataLoss(
          "document {} has {} elements in output {} of its reader, and the "
          "index says {}",
          piece.document, elements, value.output, listed);
    std::memcpy(bytes_->data() + value.offset + filled_ * value.element_bytes,
                from.data() + begin * value.element_bytes,
                piece.size * value.element_bytes);
  }
  ++pieces_;
  auto* const segments =
      reinterpret_cast<int32_t*>(bytes_->data() + assembler_.segments_);
  auto* const positions =
      reinterpret_cast<int32_t*>(bytes_->data() + assembler_.positions_);
  std::fill_n(segments + filled_, piece.size, pieces_);
  std::iota(positions + filled_, positions + filled_ + piece.size, 0);
  filled_ += piece.size;
  return absl::OkStatus();
}

StoredSample RowAssembler::Row::Finish() {
  const uint64_t length = assembler_.length_;
  StoredSample sample;
  for (const Value& value : assembler_.values_) {
    std::byte* const begin = bytes_->data() + value.offset;
    FillWith(value.fill, length - filled_,
             begin + filled_ * value.element_bytes);
    sample.fields.push_back({{begin, length * value.element_bytes}, {}});
  }
  for (const size_t offset : {assembler_.segments_, assembler_.positions_})
    sample.fields.push_back(
        {{bytes_->data() + offset, length * sizeof(int32_t)}, {}});
  sample.owner = std::move(bytes_);
  return sample;
}

}  // namespace leat::worker
