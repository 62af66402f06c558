// SPDX-License-Identifier: Apache-2.0
#include "worker/source/mds/column.h"

#include <charconv>
#include <cstring>

#include "core/pipeline/shape_inference.h"
#include "core/shapes/field_type.h"
#include "core/status.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxColumnBytes = uint64_t{1}
                                     << 32;  // of a sample: offsets' end
constexpr size_t kMaxColumnRank = 32;

struct Known {
  std::string_view name;
  MdsElement element;
  uint64_t bytes;
  DType dtype;
};
constexpr Known kKnown[] = {
    {"uint8", MdsElement::kUint8, 1, DType::kUint8},
    {"int8", MdsElement::kInt8, 1, DType::kInt8},
    {"int16", MdsElement::kInt16, 2, DType::kInt16},
    {"uint16", MdsElement::kUint16, 2, DType::kUint16},
    {"int32", MdsElement::kInt32, 4, DType::kInt32},
    {"uint32", MdsElement::kUint32, 4, DType::kUint32},
    {"int64", MdsElement::kInt64, 8, DType::kInt64},
    {"int", MdsElement::kInt64, 8, DType::kInt64},
    {"float16", MdsElement::kFloat16, 2, DType::kFloat16},
    {"float32", MdsElement::kFloat32, 4, DType::kFloat32},
    {"float64", MdsElement::kFloat64, 8, DType::kFloat32},
};

const Known* Find(std::string_view name) {
  for (const Known& known : kKnown)
    if (known.name == name) return &known;
  return nullptr;
}

// Parses for example "28,28".
absl::StatusOr<Shape> ParseShape(std::string_view text) {
  Shape shape;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    int64_t side = 0;
    const auto [end, error] =
        std::from_chars(part.data(), part.data() + part.size(), side);
    if (error != std::errc() || end != part.data() + part.size() || side < 1 ||
        shape.size() == kMaxColumnRank)
      return DataLoss("want a shape such as 28,28");
    shape.push_back(side);
    if (part.size() == text.size()) return shape;
    text.remove_prefix(part.size() + 1);
  }
}

// `rest`: the text after "ndarray", for example ":uint8:28,28".
absl::StatusOr<MdsColumn> ParseArray(std::string_view rest) {
  const size_t colon = rest.find(':', 1);
  if (colon == std::string_view::npos)
    return Unimplemented(
        "arrays whose type and shape are not declared: want such as "
        "ndarray:uint8:28,28");
  const std::string_view dtype = rest.substr(1, colon - 1);
  const Known* const known = Find(dtype);
  if (known == nullptr || dtype == "int")
    return Unimplemented("elements of this type have no tensor");
  ASSIGN_OR_RETURN(Shape shape, ParseShape(rest.substr(colon + 1)));
  MdsColumn column;
  column.element = known->element;
  for (const int64_t side : shape) {
    if (static_cast<uint64_t>(side) > kMaxColumnBytes / column.elements)
      return DataLoss("over {} bytes", kMaxColumnBytes);
    column.elements *= static_cast<uint64_t>(side);
  }
  if (column.elements > kMaxColumnBytes / known->bytes)
    return DataLoss("over {} bytes", kMaxColumnBytes);
  column.stored_bytes = column.elements * known->bytes;
  column.type = {ValueType::Kind::kTensor, known->dtype, std::move(shape)};
  return column;
}

absl::StatusOr<MdsColumn> Parse(std::string_view encoding) {
  MdsColumn column;
  if (encoding == "jpeg" || encoding == "png") {
    column.type = {ValueType::Kind::kEncoded, DType::kUint8, {}};
    return column;
  }
  if (encoding == "bytes" || encoding == "str") {
    column.type = {ValueType::Kind::kTensor, DType::kUint8, {-1}};
    return column;
  }
  if (encoding == "ndarray" || encoding.starts_with("ndarray:"))
    return ParseArray(encoding.substr(7));
  if (encoding == "pkl")
    return Unimplemented("pickles are never opened: they would run code");
  const Known* const known = Find(encoding);
  if (known == nullptr)
    return Unimplemented(
        "want jpeg, png, bytes, str, int, int8 to int64, uint8 to uint32, "
        "float16 to float64, or ndarray with type and shape");
  column.element = known->element;
  column.stored_bytes = known->bytes;
  column.type = {ValueType::Kind::kTensor, known->dtype, {}};
  return column;
}

// Values beyond float32 become infinite, as in NumPy.
void Narrow(std::span<const std::byte> from, std::byte* to) {
  for (size_t at = 0; at < from.size(); at += 8, to += 4) {
    double value = 0;
    std::memcpy(&value, from.data() + at, sizeof value);
    const float narrow = static_cast<float>(value);
    std::memcpy(to, &narrow, sizeof narrow);
  }
}

}  // namespace

absl::StatusOr<MdsColumn> ParseMdsColumn(std::string_view encoding,
                                         uint64_t size,
                                         const ValueType* declared) {
  absl::StatusOr<MdsColumn> column = Parse(encoding);
  const auto named = [&](const absl::Status& status) {
    return Annotate(status,
                    fmt::format("encoding \"{}\"", encoding.substr(0, 80)));
  };
  if (!column.ok()) return named(column.status());
  if (size != column->stored_bytes)
    return named(DataLoss("has a size of {} bytes, want {}", size,
                          column->stored_bytes));
  if (declared == nullptr || *declared == column->type) return column;
  if (encoding != "bytes")
    return named(
        InvalidArgument("it holds {}, and the reader's arguments say {}: want "
                        "bytes, or what it "
                        "holds",
                        TypeText(column->type), TypeText(*declared)));
  column->type = *declared;
  return column;
}

uint64_t ConvertedBytes(const MdsColumn& column, uint64_t stored_bytes) {
  if (column.element == MdsElement::kBytes) return stored_bytes;
  return column.elements * SizeOf(column.type.dtype);
}

void ConvertMds(const MdsColumn& column, std::span<const std::byte> from,
                std::span<std::byte> to) {
  if (column.element == MdsElement::kFloat64) return Narrow(from, to.data());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

absl::Status SetShapeOfBytes(const MdsColumn& column,
                             std::span<const std::byte> bytes, Shape* shape) {
  const ValueType& type = column.type;
  if (column.element != MdsElement::kBytes ||
      type.kind != ValueType::Kind::kTensor)
    return absl::OkStatus();
  if (IsOpen(type)) {
    *shape = type.shape;
    shape->front() = static_cast<int64_t>(
        bytes.size() / (StoredElements(type) * SizeOf(type.dtype)));
  }
  return CheckStored(type, bytes, *shape);
}

}  // namespace leat::worker
