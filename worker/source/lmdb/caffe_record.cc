// SPDX-License-Identifier: Apache-2.0
#include "worker/source/lmdb/caffe_record.h"

#include <array>
#include <optional>
#include <vector>

#include "core/status.h"
#include "worker/source/packed/wire_reader.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxDims = 8;

absl::Status Malformed(std::string_view what) {
  return DataLoss("malformed {}", what);
}

// Returns the bytes of the pixels from height, width and channels; 0: none, or
// too many.
uint64_t PixelBytes(const CaffeRecord& record) {
  uint64_t bytes = 1;
  for (const int64_t size : {record.height, record.width, record.channels}) {
    if (size < 1 || size > static_cast<int64_t>(kMaxRowBytes)) return 0;
    bytes *= static_cast<uint64_t>(size);
    if (bytes > kMaxRowBytes) return 0;
  }
  return bytes;
}

// int32 fields are written as 64-bit varints.
int64_t Signed(uint64_t varint) {
  return static_cast<int32_t>(static_cast<uint32_t>(varint));
}

// The parts of a caffe2.TensorProto that images and labels need.
struct Tensor {
  enum Type : uint32_t { kFloat = 1, kInt32 = 2, kByte = 3, kString = 4 };
  uint32_t type = kFloat;
  std::vector<int64_t> dims;
  size_t numbers = 0;                                // of the type
  uint32_t first = 0;                                // of the numbers
  std::optional<std::span<const std::byte>> bytes;   // if kByte
  std::optional<std::span<const std::byte>> string;  // the first, if kString
};

// Adds the numbers of a field, packed or not.
bool AddInts(const WireReader::Field& field, Tensor* tensor) {
  const auto add = [&](uint64_t value) {
    if (tensor->numbers++ == 0) tensor->first = static_cast<uint32_t>(value);
  };
  if (field.type == WireReader::kVarint) {
    add(field.value);
    return true;
  }
  if (field.type != WireReader::kBytes) return false;
  WireReader numbers(field.bytes);
  for (uint64_t value = 0; numbers.NextPacked(&value);) add(value);
  return !numbers.malformed();
}

bool AddFloats(const WireReader::Field& field, Tensor* tensor) {
  uint32_t value = static_cast<uint32_t>(field.value);
  size_t count = 1;
  if (field.type == WireReader::kBytes) {
    if (field.bytes.size() % sizeof value != 0) return false;
    count = field.bytes.size() / sizeof value;
    if (count > 0) std::memcpy(&value, field.bytes.data(), sizeof value);
  } else if (field.type != WireReader::kFixed32) {
    return false;
  }
  if (tensor->numbers == 0 && count > 0) tensor->first = value;
  tensor->numbers += count;
  return true;
}

bool AddDims(const WireReader::Field& field, Tensor* tensor) {
  const auto add = [&](uint64_t value) {
    tensor->dims.push_back(static_cast<int64_t>(value));
    return tensor->dims.size() <= kMaxDims;
  };
  if (field.type == WireReader::kVarint) return add(field.value);
  if (field.type != WireReader::kBytes) return false;
  WireReader numbers(field.bytes);
  for (uint64_t value = 0; numbers.NextPacked(&value);)
    if (!add(value)) return false;
  return !numbers.malformed();
}

// Returns false if it is malformed.
bool ParseTensor(std::span<const std::byte> bytes, Tensor* tensor) {
  // Only numbers of the kind that fits the type count.
  Tensor floats, ints;
  WireReader reader(bytes);
  for (WireReader::Field field; reader.Next(&field);) {
    const bool is_bytes = field.type == WireReader::kBytes;
    bool fine = true;
    switch (field.number) {
      case 1:
        fine = AddDims(field, tensor);
        break;
      case 2:
        fine = field.type == WireReader::kVarint;
        tensor->type = static_cast<uint32_t>(field.value);
        break;
      case 3:
        fine = AddFloats(field, &floats);
        break;
      case 4:
        fine = AddInts(field, &ints);
        break;
      case 5:
        fine = is_bytes;
        tensor->bytes = field.bytes;
        break;
      case 6:
        fine = is_bytes;
        if (!tensor->string) tensor->string = field.bytes;
        break;
      default:
        break;
    }
    if (!fine) return false;
  }
  const Tensor& numbers = tensor->type == Tensor::kFloat ? floats : ints;
  tensor->numbers = numbers.numbers;
  tensor->first = numbers.first;
  return !reader.malformed();
}

absl::Status SetImage(const Tensor& tensor, CaffeRecord* record) {
  if (tensor.type == Tensor::kString) {
    if (!tensor.string) return DataLoss("an image tensor without a string");
    record->encoded = true;
    record->image = *tensor.string;
    return absl::OkStatus();
  }
  if (tensor.type != Tensor::kByte)
    return Unimplemented(
        "an image tensor of type {}, want STRING (encoded) or BYTE (raw)",
        tensor.type);
  if (!tensor.bytes || tensor.dims.size() < 2 || tensor.dims.size() > 3)
    return DataLoss("an image tensor of {} axes, want height, width, channels",
                    tensor.dims.size());
  record->image = *tensor.bytes;
  record->height = tensor.dims[0];
  record->width = tensor.dims[1];
  record->channels = tensor.dims.size() == 3 ? tensor.dims[2] : 1;
  if (const uint64_t bytes = PixelBytes(*record);
      bytes > 0 && bytes == record->image.size())
    return absl::OkStatus();
  return DataLoss("{} bytes of pixels for {} x {} x {}", record->image.size(),
                  record->height, record->width, record->channels);
}

absl::Status SetLabel(const Tensor& tensor, CaffeRecord* record) {
  if (tensor.type != Tensor::kInt32 && tensor.type != Tensor::kFloat)
    return Unimplemented("a label tensor of type {}, want INT32 or FLOAT",
                         tensor.type);
  if (tensor.numbers != 1) return DataLoss("{} labels, want 1", tensor.numbers);
  record->label_type =
      tensor.type == Tensor::kInt32 ? DType::kInt32 : DType::kFloat32;
  record->label = tensor.first;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CaffeRecord> ParseDatum(std::span<const std::byte> value) {
  CaffeRecord record;
  record.planes = true;
  std::optional<bool> encoded;
  bool floats = false;
  WireReader reader(value);
  for (WireReader::Field field; reader.Next(&field);) {
    if (field.number < 1 || field.number > 7) continue;
    const bool is_data = field.number == 4, is_float = field.number == 6;
    if (is_float) {
      floats = true;
      continue;
    }
    if (field.type != (is_data ? WireReader::kBytes : WireReader::kVarint))
      return Malformed("Datum");
    if (field.number == 1) record.channels = Signed(field.value);
    if (field.number == 2) record.height = Signed(field.value);
    if (field.number == 3) record.width = Signed(field.value);
    if (is_data) record.image = field.bytes;
    if (field.number == 5) record.label = static_cast<uint32_t>(field.value);
    if (field.number == 7) encoded = field.value != 0;
  }
  if (reader.malformed()) return Malformed("Datum");
  if (record.image.empty())
    return floats ? Unimplemented("a Datum of floats, want bytes")
                  : DataLoss("a Datum without data");
  const bool fits = PixelBytes(record) == record.image.size();
  record.encoded = encoded.value_or(!fits);
  if (record.encoded || fits) return record;
  return DataLoss("{} bytes of pixels for {} x {} x {}", record.image.size(),
                  record.channels, record.height, record.width);
}

absl::StatusOr<CaffeRecord> ParseTensorProtos(
    std::span<const std::byte> value) {
  std::array<std::span<const std::byte>, 2> protos;
  size_t count = 0;
  WireReader reader(value);
  for (WireReader::Field field; reader.Next(&field);) {
    if (field.number != 1) continue;
    if (field.type != WireReader::kBytes) return Malformed("TensorProtos");
    if (count < protos.size()) protos[count] = field.bytes;
    ++count;
  }
  if (reader.malformed()) return Malformed("TensorProtos");
  if (count < protos.size())
    return DataLoss("{} tensors, want 2: image and label", count);
  Tensor image, label;
  if (!ParseTensor(protos[0], &image) || !ParseTensor(protos[1], &label))
    return Malformed("TensorProto");
  CaffeRecord record;
  RETURN_IF_ERROR(SetImage(image, &record));
  RETURN_IF_ERROR(SetLabel(label, &record));
  return record;
}

}  // namespace leat::worker
