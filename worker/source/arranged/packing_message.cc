// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/packing_message.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr int kMaxAxes = 8;

bool IsDType(uint32_t dtype) {
  return dtype >= static_cast<uint32_t>(kFirstDType) &&
         dtype <= static_cast<uint32_t>(kLastDType);
}

}  // namespace

stored::v1::StoredPacking ToStored(const PackNode& pack,
                                   std::span<const ValueType> types) {
  stored::v1::StoredPacking message;
  message.set_fit(pack.packing.how == PackHow::kFit);
  message.set_length(pack.packing.length);
  message.set_overlap(pack.packing.overlap);
  message.set_longer(static_cast<uint32_t>(pack.packing.longer));
  message.set_max_documents(pack.packing.max_documents);
  for (const uint32_t output : pack.outputs) message.add_outputs(output);
  for (const double fill : pack.fill_values) message.add_fill_values(fill);
  for (const ValueType& type : types) {
    stored::v1::StoredType* stored = message.add_types();
    stored->set_encoded(type.kind == ValueType::Kind::kEncoded);
    stored->set_dtype(static_cast<uint32_t>(type.dtype));
    for (const int64_t side : type.shape) stored->add_shape(side);
  }
  return message;
}

absl::StatusOr<StoredPack> FromStored(
    const stored::v1::StoredPacking& message) {
  StoredPack stored;
  PackNode& pack = stored.pack;
  pack.packing = {.how = message.fit() ? PackHow::kFit : PackHow::kCut,
                  .length = message.length(),
                  .overlap = message.overlap(),
                  .longer = static_cast<PackLonger>(
                      std::min<uint32_t>(message.longer(), UINT8_MAX)),
                  .max_documents = message.max_documents()};
  pack.outputs.assign(message.outputs().begin(), message.outputs().end());
  pack.fill_values.assign(message.fill_values().begin(),
                          message.fill_values().end());
  if (const absl::Status checked = CheckPackNode(pack); !checked.ok())
    return DataLoss("the index: {}", Message(checked));
  for (const stored::v1::StoredType& type : message.types()) {
    if (!type.encoded() &&
        (!IsDType(type.dtype()) || type.shape_size() > kMaxAxes))
      return DataLoss("the index has a type of number {} and {} axes",
                      type.dtype(), type.shape_size());
    ValueType value{.kind = type.encoded() ? ValueType::Kind::kEncoded
                                           : ValueType::Kind::kTensor};
    if (!type.encoded()) value.dtype = static_cast<DType>(type.dtype());
    value.shape.assign(type.shape().begin(), type.shape().end());
    stored.types.push_back(std::move(value));
  }
  std::vector<ValueType> packed;
  for (const uint32_t output : pack.outputs) {
    if (output >= stored.types.size())
      return DataLoss("the index packs output {} of {}", output,
                      stored.types.size());
    packed.push_back(stored.types[output]);
  }
  if (const absl::Status checked = CheckPackedTypes(pack, packed);
      !checked.ok())
    return DataLoss("the index: {}", Message(checked));
  return stored;
}

}  // namespace leat::worker
