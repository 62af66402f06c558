// SPDX-License-Identifier: Apache-2.0
#include "worker/sample/stored_bytes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "core/shapes/field_type.h"

namespace leat::worker {
namespace {

constexpr uint32_t kRecordMagic = 0x3152654c;  // "LeR1"

template <class Number>
void PutRecordNumber(Number number, std::vector<std::byte>* to) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  to->insert(to->end(), bytes.begin(), bytes.end());
}

// False: there are not so many bytes left.
template <class Number>
bool TakeRecordNumber(std::span<const std::byte>* from, Number* number) {
  if (from->size() < sizeof *number) return false;
  std::memcpy(number, from->data(), sizeof *number);
  *from = from->subspan(sizeof *number);
  return true;
}

}  // namespace

std::vector<std::byte> PackSample(const StoredSample& sample) {
  if (sample.fields.size() > kMaxStoredFields) return {};
  std::vector<std::byte> bytes;
  PutRecordNumber(kRecordMagic, &bytes);
  PutRecordNumber(static_cast<uint32_t>(sample.fields.size()), &bytes);
  size_t sum = 0;
  for (const StoredField& field : sample.fields) {
    sum += field.bytes.size();
    if (field.shape.size() > kMaxStoredAxes || sum > UINT32_MAX) return {};
    PutRecordNumber(static_cast<uint32_t>(field.bytes.size()), &bytes);
    PutRecordNumber(static_cast<uint32_t>(field.shape.size()), &bytes);
    for (const int64_t size : field.shape) PutRecordNumber(size, &bytes);
  }
  bytes.reserve(bytes.size() + sum);
  for (const StoredField& field : sample.fields)
    bytes.insert(bytes.end(), field.bytes.begin(), field.bytes.end());
  return bytes;
}

std::optional<StoredSample> UnpackSample(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  std::span<const std::byte> left(*owner);
  uint32_t magic = 0, fields = 0;
  if (!TakeRecordNumber(&left, &magic) || magic != kRecordMagic ||
      !TakeRecordNumber(&left, &fields) || fields > kMaxStoredFields)
    return std::nullopt;
  StoredSample sample;
  sample.fields.resize(fields);
  std::vector<uint32_t> sizes(fields);
  for (uint32_t i = 0; i < fields; ++i) {
    uint32_t axes = 0;
    if (!TakeRecordNumber(&left, &sizes[i]) ||
        !TakeRecordNumber(&left, &axes) || axes > kMaxStoredAxes)
      return std::nullopt;
    for (uint32_t axis = 0; axis < axes; ++axis) {
      int64_t size = 0;
      if (!TakeRecordNumber(&left, &size)) return std::nullopt;
      sample.fields[i].shape.push_back(size);
    }
  }
  for (uint32_t i = 0; i < fields; ++i) {
    if (left.size() < sizes[i]) return std::nullopt;
    sample.fields[i].bytes = left.first(sizes[i]);
    left = left.subspan(sizes[i]);
  }
  if (!left.empty()) return std::nullopt;
  sample.owner = std::move(owner);
  return sample;
}

bool FitsTypes(const StoredSample& sample, std::span<const ValueType> types) {
  return std::ranges::equal(
      sample.fields, types,
      [](const StoredField& field, const ValueType& type) {
        return CheckStored(type, field.bytes, field.shape).ok();
      });
}

}  // namespace leat::worker
