// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "core/status.h"
#include "worker/image/program/program.h"

namespace leat::worker {

absl::Status SetInputValues(const RowInput& input,
                            std::span<const ValueType> types, size_t nodes,
                            std::vector<Tensor>* values,
                            std::vector<std::vector<std::byte>>* copies,
                            WorkingMemory* memory) {
  if (input.fields.size() != types.size())
    return Internal("a stored sample of {} fields, want {}",
                    input.fields.size(), types.size());
  alignas(8) static std::byte nothing[8];
  if (copies->size() < types.size()) copies->resize(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const StoredField& field = input.fields[i];
    const ValueType& type = types[i];
    const Shape& shape = field.shape.empty() ? type.shape : field.shape;
    if (shape.size() != type.shape.size())
      return DataLoss("output {} of the reader has {} axes, want {}", i,
                      shape.size(), type.shape.size());
    const bool encoded = type.kind == ValueType::Kind::kEncoded;
    Tensor& value = (*values)[nodes + i];
    value = {type.dtype,
             encoded ? 1 : static_cast<int>(shape.size()),
             {},
             const_cast<std::byte*>(field.bytes.data())};
    // A value without elements has an address, too.
    if (field.bytes.empty()) value.data = nothing;
    if (encoded)
      value.dims[0] = static_cast<int64_t>(field.bytes.size());
    else
      std::copy(shape.begin(), shape.end(), value.dims.begin());
    if (value.bytes() != field.bytes.size())
      return DataLoss("output {} of the reader has {} bytes, want {}", i,
                      field.bytes.size(), value.bytes());
    if (reinterpret_cast<uintptr_t>(value.data) % SizeOf(type.dtype) != 0) {
      RETURN_IF_ERROR(memory->Reserve(field.bytes.size(), &(*copies)[i]));
      std::copy(field.bytes.begin(), field.bytes.end(), (*copies)[i].begin());
      value.data = (*copies)[i].data();
    }
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
