// SPDX-License-Identifier: Apache-2.0
//
// tf.Example: named features of a record, read in place.
//
// A protocol buffer (tensorflow/core/example/example.proto, feature.proto):
//
//   Example   { Features features = 1; }
//   Features  { map<string, Feature> feature = 1; }
//   Feature   { oneof { BytesList bytes_list = 1; FloatList float_list = 2;
//                       Int64List int64_list = 3; } }
//   BytesList { repeated bytes value = 1; }
//   FloatList { repeated float value = 1; }   Int64List the same of int64
//
// The rules of protocol buffers apply: numbers may be packed or not; parts of a
// message that occur twice are merged; among entries with one name, and among a
// oneof's members, the last counts; unknown fields are skipped. Groups, and
// entries with two values, which would have to be merged, are malformed here:
// no writer of this format makes them. Whatever the bytes, nothing outside them
// is read, and the work is linear in their number, for each wanted name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::worker {

// A Feature message in the record; data() is nullptr: there is none.
using FeatureBytes = std::span<const std::byte>;

// Finds features[i] of names[i]. kDataLoss: malformed. Thread-safe.
absl::Status FindFeatures(std::span<const std::byte> example,
                          const std::vector<std::string>& names,
                          std::span<FeatureBytes> features);

struct FeatureValues {
  enum class Kind : uint8_t { kNone, kBytes, kFloats, kInts };
  Kind kind = Kind::kNone;
  uint64_t count = 0;
  // kBytes: the first value. kFloats: all of them, if they are contiguous;
  // otherwise its data() is nullptr. Refers to the record.
  std::span<const std::byte> bytes;
  std::span<const std::byte> lists;  // where the values are
};

// Returns "bytes", "float32", "int64" or "nothing", for messages.
std::string_view NameOf(FeatureValues::Kind kind);

// kDataLoss: malformed.
absl::StatusOr<FeatureValues> ParseFeature(FeatureBytes feature);

// Write all values, little-endian. REQUIRES: of that kind, from ParseFeature;
// `into` has 4 or 8 bytes for each.
void CopyFloats(const FeatureValues& values, std::span<std::byte> into);
void CopyInts(const FeatureValues& values, std::span<std::byte> into);

}  // namespace leat::worker
