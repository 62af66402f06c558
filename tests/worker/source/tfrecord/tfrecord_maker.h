// SPDX-License-Identifier: Apache-2.0
//
// TFRecord files and tf.Examples, put together by hand.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/worker/source/varint.h"
#include "worker/source/tfrecord/framing.h"

namespace leat::worker {

template <class T>
std::string LittleEndian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string MaskedSumOf(std::string_view bytes) {
  return LittleEndian(
      MaskedCrc32c(std::as_bytes(std::span(bytes.data(), bytes.size()))));
}

inline std::string TfrecordOf(std::string_view data) {
  const std::string length = LittleEndian(uint64_t{data.size()});
  return length + MaskedSumOf(length) + std::string(data) + MaskedSumOf(data);
}

// Returns a field with a length.
inline std::string FieldOf(uint32_t number, std::string_view bytes) {
  return VarintOf(number << 3 | 2) + VarintOf(bytes.size()) +
         std::string(bytes);
}

inline std::string BytesFeature(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += FieldOf(1, value);
  return FieldOf(1, list);
}

inline std::string FloatFeature(const std::vector<float>& values) {
  std::string packed;
  for (const float value : values) packed += LittleEndian(value);
  return FieldOf(2, FieldOf(1, packed));
}

inline std::string IntFeature(const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values)
    packed += VarintOf(static_cast<uint64_t>(value));
  return FieldOf(3, FieldOf(1, packed));
}

using NamedFeatures = std::vector<std::pair<std::string, std::string>>;

inline std::string ExampleOf(const NamedFeatures& features) {
  std::string map;
  for (const auto& [name, feature] : features)
    map += FieldOf(1, FieldOf(1, name) + FieldOf(2, feature));
  return FieldOf(1, map);
}

// Returns an index as DALI's tfrecord2idx writes it.
inline std::string DaliIndexOf(const std::vector<std::string>& records) {
  std::string text;
  size_t offset = 0;
  for (const std::string& record : records) {
    text += std::to_string(offset) + " " + std::to_string(record.size()) + "\n";
    offset += record.size();
  }
  return text;
}

}  // namespace leat::worker
