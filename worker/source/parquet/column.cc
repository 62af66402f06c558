// SPDX-License-Identifier: Apache-2.0
//
// The types that a column's values may become: exactly, except float64, which
// is rounded to float32.
#include <algorithm>
#include <cstring>

#include "core/pipeline/shape_inference.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "core/tensor/pointwise.h"
#include "fmt/ranges.h"
#include "worker/source/parquet/parquet.h"

namespace leat::worker {
namespace {

using Element = ParquetElement;

constexpr size_t kMaxShown = 20;
constexpr size_t kMaxName = 100;

std::string Shown(std::string_view name) {
  std::string shown(name.substr(0, kMaxName));
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return shown;
}

// Returns the element types that hold all of its values; none for kBytes and
// kOther.
std::vector<DType> Wide(Element element) {
  switch (element) {
    case Element::kBool:
      return {DType::kBool};
    case Element::kUint8:
      return {DType::kUint8, DType::kInt32,  DType::kInt64,
              DType::kInt16, DType::kUint16, DType::kUint32};
    case Element::kInt8:
      return {DType::kInt32, DType::kInt64, DType::kInt8, DType::kInt16};
    case Element::kInt16:
      return {DType::kInt32, DType::kInt64, DType::kInt16};
    case Element::kUint16:
      return {DType::kInt32, DType::kInt64, DType::kUint16, DType::kUint32};
    case Element::kInt32:
      return {DType::kInt32, DType::kInt64};
    case Element::kUint32:
      return {DType::kInt64, DType::kUint32};
    case Element::kInt64:
      return {DType::kInt64};
    case Element::kFloat16:
      return {DType::kFloat16, DType::kFloat32};
    case Element::kFloat32:
    case Element::kFloat64:
      return {DType::kFloat32};
    case Element::kBytes:
    case Element::kOther:
      break;
  }
  return {};
}

template <class From>
From Stored(const uint8_t* at) {
  From value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class To>
void Put(To value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

// Returns a whole number with the column's type: files keep 8 bits in 32.
int64_t Whole(Element element, uint32_t width, const uint8_t* at) {
  if (width == 8) return Stored<int64_t>(at);
  const auto bits = Stored<uint32_t>(at);
  switch (element) {
    case Element::kInt8:
      return static_cast<int8_t>(bits);
    case Element::kUint8:
      return static_cast<uint8_t>(bits);
    case Element::kInt16:
      return static_cast<int16_t>(bits);
    case Element::kUint16:
      return static_cast<uint16_t>(bits);
    case Element::kUint32:
      return bits;
    default:
      return static_cast<int32_t>(bits);
  }
}

void PutOne(Element element, uint32_t width, const uint8_t* at, DType dtype,
            std::byte* to) {
  switch (dtype) {
    case DType::kBool:
      return Put(static_cast<uint8_t>(*at != 0), to);
    case DType::kUint8:
      return Put(static_cast<uint8_t>(Whole(element, width, at)), to);
    case DType::kInt32:
      return Put(static_cast<int32_t>(Whole(element, width, at)), to);
    case DType::kInt64:
      return Put(Whole(element, width, at), to);
    case DType::kFloat16:
      return Put(Stored<uint16_t>(at), to);
    case DType::kFloat32:
      if (element == Element::kFloat16)
        return Put(FloatOfHalf(Stored<uint16_t>(at)), to);
      if (element == Element::kFloat64)
        return Put(static_cast<float>(Stored<double>(at)), to);
      return Put(Stored<float>(at), to);
    case DType::kInt8:
      return Put(static_cast<int8_t>(Whole(element, width, at)), to);
    case DType::kInt16:
      return Put(static_cast<int16_t>(Whole(element, width, at)), to);
    case DType::kUint16:
      return Put(static_cast<uint16_t>(Whole(element, width, at)), to);
    case DType::kUint32:
      return Put(static_cast<uint32_t>(Whole(element, width, at)), to);
    case DType::kBfloat16:
      break;  // no column holds it
  }
}

// True if elements are stored as a field has them.
bool AsTheyAre(Element element, DType dtype) {
  switch (element) {
    case Element::kBool:
      return true;
    case Element::kInt32:
      return dtype == DType::kInt32;
    case Element::kInt64:
      return dtype == DType::kInt64;
    case Element::kFloat16:
      return dtype == DType::kFloat16;
    case Element::kFloat32:
      return true;
    default:
      return false;
  }
}

// Returns the first element and the number of elements of a row.
std::pair<uint64_t, uint64_t> Elements(const ParquetUnit& unit, uint64_t row) {
  if (unit.ends.empty()) return {row, 1};
  const uint64_t begin = row == 0 ? 0 : unit.ends[row - 1];
  return {begin, unit.ends[row] - begin};
}

}  // namespace

absl::StatusOr<size_t> FindParquetColumn(const ParquetFooter& footer,
                                         std::string_view name) {
  const auto& columns = footer.columns;
  for (const auto member : {&ParquetColumn::name, &ParquetColumn::list_name}) {
    const auto is_it = [&](const ParquetColumn& each) {
      return each.*member == name;
    };
    const auto it = std::find_if(columns.begin(), columns.end(), is_it);
    if (it == columns.end()) continue;
    if (std::any_of(it + 1, columns.end(), is_it))
      return InvalidArgument("it has two columns \"{}\"", Shown(name));
    return static_cast<size_t>(it - columns.begin());
  }
  std::vector<std::string> known;
  for (const ParquetColumn& each : columns) {
    if (known.size() == kMaxShown) {
      known.emplace_back("...");
      break;
    }
    known.push_back(Shown(each.list_name.empty() ? each.name : each.list_name));
  }
  const std::string within = fmt::format("{}.", name);
  for (const ParquetColumn& each : columns)
    if (each.lists > 1 && each.name.starts_with(within))
      return Unimplemented(
          "column \"{}\" holds lists of lists, which are not supported: want "
          "one level of lists at most",
          Shown(name));
  return NotFound("no column \"{}\", it has: {}", Shown(name),
                  fmt::join(known, ", "));
}

absl::Status CheckParquetType(const ParquetColumn& column,
                              const ValueType& type) {
  const auto holds = [&] {
    return fmt::format("column \"{}\" holds {}{}", Shown(column.name),
                       column.lists > 0 ? "lists of " : "", Shown(column.type));
  };
  if (column.lists > 1)
    return Unimplemented(
        "{} in {} levels: nested lists are not supported, want one level at "
        "most",
        holds(), column.lists);
  if (column.element == Element::kOther)
    return Unimplemented("{}: want bytes, texts, booleans or numbers", holds());
  if (column.element == Element::kBytes) {
    if (column.lists > 0)
      return Unimplemented("{}: want lists of numbers only", holds());
    if (type.kind == ValueType::Kind::kEncoded ||
        (!type.shape.empty() && type.dtype != DType::kBool))
      return absl::OkStatus();
    return InvalidArgument(
        "{}, which cannot be read as {}: want \"encoded\", \"bytes\" or "
        "elements as "
        "\"uint8[28,28]\"",
        holds(), TypeText(type));
  }
  const std::vector<DType> wide = Wide(column.element);
  if (type.kind == ValueType::Kind::kTensor &&
      type.shape.empty() == (column.lists == 0) &&
      std::find(wide.begin(), wide.end(), type.dtype) != wide.end())
    return absl::OkStatus();
  std::vector<std::string> wanted;
  for (const DType each : wide)
    wanted.push_back(
        fmt::format("\"{}{}\"", Name(each), column.lists > 0 ? "[?]" : ""));
  return InvalidArgument("{}, which cannot be read as {}: want {}", holds(),
                         TypeText(type), fmt::join(wanted, " or "));
}

absl::StatusOr<uint64_t> ParquetBytes(const ParquetUnit& unit, uint64_t row,
                                      const ParquetColumn& column,
                                      const ValueType& type) {
  const ParquetRow state =
      unit.state.empty() ? ParquetRow::kValue : unit.state[row];
  if (state == ParquetRow::kNull) return InvalidArgument("null, want a value");
  if (state == ParquetRow::kNullElement)
    return InvalidArgument("an element is null, want values");
  if (type.kind == ValueType::Kind::kEncoded) return unit.items[row].size();
  const bool is_bytes = column.element == Element::kBytes;
  const uint64_t size = SizeOf(type.dtype);
  const uint64_t wanted = StoredElements(type);
  const uint64_t bytes =
      is_bytes ? unit.items[row].size() : Elements(unit, row).second * size;
  if (IsOpen(type) ? bytes % (wanted * size) == 0 : bytes == wanted * size)
    return bytes;
  return InvalidArgument("{} {}, want {}", is_bytes ? bytes : bytes / size,
                         is_bytes ? "bytes" : "elements", TypeText(type));
}

void ConvertParquet(const ParquetUnit& unit, uint64_t row,
                    const ParquetColumn& column, const ValueType& type,
                    std::span<std::byte> to) {
  if (to.empty()) return;
  if (column.element == Element::kBytes) {
    std::memcpy(to.data(), unit.items[row].data(), to.size());
    return;
  }
  const auto [begin, count] = Elements(unit, row);
  const uint8_t* from = unit.numbers.data() + begin * unit.width;
  if (AsTheyAre(column.element, type.dtype)) {
    std::memcpy(to.data(), from, to.size());
    return;
  }
  const size_t size = SizeOf(type.dtype);
  for (uint64_t i = 0; i < count; ++i)
    PutOne(column.element, unit.width, from + i * unit.width, type.dtype,
           to.data() + i * size);
}

ColumnValue ParquetValue(const ParquetUnit& unit, uint64_t row,
                         const ParquetColumn& column) {
  if (!unit.state.empty() && unit.state[row] != ParquetRow::kValue) return {};
  if (column.element == Element::kBytes)
    return std::string_view(
        reinterpret_cast<const char*>(unit.items[row].data()),
        unit.items[row].size());
  const uint8_t* const at = unit.numbers.data() + row * unit.width;
  switch (column.element) {
    case Element::kBool:
      return int64_t{*at != 0};
    case Element::kFloat16:
      return double{FloatOfHalf(Stored<uint16_t>(at))};
    case Element::kFloat32:
      return double{Stored<float>(at)};
    case Element::kFloat64:
      return Stored<double>(at);
    default:
      return Whole(column.element, unit.width, at);
  }
}

}  // namespace leat::worker
