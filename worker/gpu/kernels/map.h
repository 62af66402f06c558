// SPDX-License-Identifier: Apache-2.0
//
// Stages element by element: copies, conversions, arithmetic, choices.
//
// An element is loaded as a whole number or as a float, so that not every pair
// of types needs its own code; conversions are those of
// core/tensor/pointwise.h. C++ and CUDA compile this file.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/tensor/pointwise.h"
#include "worker/gpu/kernels/block_access.h"
#include "worker/gpu/layout/stage_descriptor.h"
#include "worker/image/formulas/arithmetic.h"
#include "worker/image/formulas/color.h"

namespace leat::worker {

// StageValue holds one element of any type while a thread computes with it.
struct StageValue {
  bool whole = true;
  int64_t integer = 0;
  float real = 0;
};

// An element has 1 << StageShiftOf bytes.
LEAT_PIXEL uint32_t StageShiftOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUint8:
    case DType::kInt8:
      return 0;
    case DType::kFloat16:
    case DType::kInt16:
    case DType::kUint16:
    case DType::kBfloat16:
      return 1;
    case DType::kInt64:
      return 3;
    default:
      return 2;
  }
}
LEAT_PIXEL uint32_t StageSizeOf(DType dtype) {
  return 1u << StageShiftOf(dtype);
}

template <class T>
LEAT_PIXEL T ElementAt(uint64_t address) {
  T value;
  memcpy(&value, AtAddress(address), sizeof value);
  return value;
}

// Loads the value at an address that is aligned to its size.
LEAT_PIXEL StageValue LoadValue(uint64_t at, DType dtype) {
  switch (dtype) {
    case DType::kInt32:
      return {true, *reinterpret_cast<const int32_t*>(AtAddress(at)), 0};
    case DType::kInt64:
      return {true, *reinterpret_cast<const int64_t*>(AtAddress(at)), 0};
    case DType::kFloat32:
      return {false, 0, *reinterpret_cast<const float*>(AtAddress(at))};
    case DType::kFloat16:
      return {false, 0,
              FloatOfHalf(*reinterpret_cast<const uint16_t*>(AtAddress(at)))};
    case DType::kInt8:
      return {true, *reinterpret_cast<const int8_t*>(AtAddress(at)), 0};
    case DType::kInt16:
      return {true, *reinterpret_cast<const int16_t*>(AtAddress(at)), 0};
    case DType::kUint16:
      return {true, *reinterpret_cast<const uint16_t*>(AtAddress(at)), 0};
    case DType::kUint32:
      return {true, *reinterpret_cast<const uint32_t*>(AtAddress(at)), 0};
    case DType::kBfloat16:
      return {
          false, 0,
          FloatOfBfloat16(*reinterpret_cast<const uint16_t*>(AtAddress(at)))};
    default:
      return {true, *AtAddress(at), 0};
  }
}

template <class T>
LEAT_PIXEL T ValueAs(const StageValue& value) {
  return value.whole ? Converted<T>(value.integer) : Converted<T>(value.real);
}

template <class T>
LEAT_PIXEL StageValue ValueOf(T value) {
  if constexpr (std::is_same_v<T, float>)
    return {false, 0, value};
  else
    return {true, static_cast<int64_t>(value), 0};
}

// `to` need not be aligned: it may be in a field.
template <class T>
LEAT_PIXEL void StoreStored(T value, uint64_t to) {
  StoreElement<T>(reinterpret_cast<const uint8_t*>(&value), AtAddress(to));
}
LEAT_PIXEL void StoreValue(const StageValue& value, DType dtype, uint64_t to) {
  switch (dtype) {
    case DType::kBool:
      *AtAddress(to) = ValueAs<bool>(value) ? 1 : 0;
      return;
    case DType::kUint8:
      *AtAddress(to) = ValueAs<uint8_t>(value);
      return;
    case DType::kInt32:
      return StoreStored(ValueAs<int32_t>(value), to);
    case DType::kInt64:
      return StoreStored(ValueAs<int64_t>(value), to);
    case DType::kFloat16:
      return StoreStored(ValueAs<Half>(value).bits, to);
    case DType::kFloat32:
      return StoreStored(ValueAs<float>(value), to);
    case DType::kInt8:
      return StoreStored(ValueAs<int8_t>(value), to);
    case DType::kInt16:
      return StoreStored(ValueAs<int16_t>(value), to);
    case DType::kUint16:
      return StoreStored(ValueAs<uint16_t>(value), to);
    case DType::kUint32:
      return StoreStored(ValueAs<uint32_t>(value), to);
    case DType::kBfloat16:
      return StoreStored(ValueAs<Bfloat16>(value).bits, to);
  }
}

// Copies an element's bytes unchanged.
LEAT_PIXEL void CopyStored(uint64_t from, DType dtype, uint64_t to) {
  switch (StageSizeOf(dtype)) {
    case 1:
      *AtAddress(to) = *AtAddress(from);
      return;
    case 2:
      return StoreElement<uint16_t>(AtAddress(from), AtAddress(to));
    case 4:
      return StoreElement<uint32_t>(AtAddress(from), AtAddress(to));
    default:
      return StoreElement<uint64_t>(AtAddress(from), AtAddress(to));
  }
}

// Only floats are divided, and only whole numbers are floor-divided or combined
// bit by bit: the stages' compiler ensures that.
template <class T>
LEAT_PIXEL StageValue Arithmetic(MapOp op, T a, T b) {
  switch (op) {
    case MapOp::kAdd:
      return ValueOf(Sum::Of(a, b));
    case MapOp::kSub:
      return ValueOf(Difference::Of(a, b));
    case MapOp::kMul:
      return ValueOf(Product::Of(a, b));
    case MapOp::kMin:
      return ValueOf(Least::Of(a, b));
    case MapOp::kMax:
      return ValueOf(Greatest::Of(a, b));
    case MapOp::kNeg:
      return ValueOf(Negative::Of(a, b));
    case MapOp::kAbs:
      return ValueOf(Magnitude::Of(a, b));
    case MapOp::kLess:
      return ValueOf(IsLess::Of(a, b));
    case MapOp::kLessOrEqual:
      return ValueOf(IsLessOrEqual::Of(a, b));
    case MapOp::kEqual:
      return ValueOf(IsEqual::Of(a, b));
    case MapOp::kNotEqual:
      return ValueOf(IsNotEqual::Of(a, b));
    default:
      break;
  }
  if constexpr (std::is_same_v<T, float>) {
    return ValueOf(Quotient::Of(a, b));
  } else {
    if (op == MapOp::kFloorDiv) return ValueOf(WholeQuotient::Of(a, b));
    if (op == MapOp::kBitAnd) return ValueOf(BitsAnd::Of(a, b));
    if (op == MapOp::kBitOr) return ValueOf(BitsOr::Of(a, b));
    return ValueOf(BitsXor::Of(a, b));
  }
}

LEAT_PIXEL StageValue ArithmeticAs(MapOp op, DType type, const StageValue& a,
                                   const StageValue& b) {
  switch (type) {
    case DType::kFloat32:
      return Arithmetic(op, ValueAs<float>(a), ValueAs<float>(b));
    case DType::kInt64:
      return Arithmetic(op, ValueAs<int64_t>(a), ValueAs<int64_t>(b));
    case DType::kInt32:
      return Arithmetic(op, ValueAs<int32_t>(a), ValueAs<int32_t>(b));
    default:
      return Arithmetic(op, ValueAs<uint8_t>(a), ValueAs<uint8_t>(b));
  }
}

// Where the operands' elements are for one of the result's.
struct MapPlace {
  uint32_t position[kStageAxes];
  uint64_t at[3];
};

LEAT_PIXEL MapPlace PlaceOf(const MapRow& row, uint32_t element) {
  MapPlace place;
  int64_t steps[3] = {0, 0, 0};
  const auto add = [&](uint32_t axis, uint32_t position) {
    place.position[axis] = position;
    for (int k = 0; k < 3; ++k)
      steps[k] += int64_t{position} * row.in[k].steps[axis];
  };
  // The remainder is the position on the first axis: so dense operands, which
  // have one axis, need no division.
  for (uint32_t axis = row.rank; axis-- > 1;) {
    add(axis, element % row.dims[axis]);
    element /= row.dims[axis];
  }
  if (row.rank > 0) add(0, element);
  for (int k = 0; k < 3; ++k)
    place.at[k] = row.in[k].at + (static_cast<uint64_t>(steps[k])
                                  << StageShiftOf(row.in[k].dtype));
  return place;
}

LEAT_PIXEL bool IsInBoxes(const MapRow& row, const MapPlace& place) {
  const auto* boxes = reinterpret_cast<const StageBox*>(AtAddress(row.table));
  for (uint64_t box = 0; box < row.count; ++box) {
    bool inside = true;
    for (uint32_t axis = 0; axis < row.rank; ++axis) {
      const auto at = static_cast<int32_t>(place.position[axis]);
      inside =
          inside && at >= boxes[box].begin[axis] && at < boxes[box].end[axis];
    }
    if (inside) return true;
  }
  return false;
}

// Several threads may set it at the same time: they write the same value.
LEAT_PIXEL void SetFault(const MapRow& row) {
  *reinterpret_cast<uint32_t*>(AtAddress(row.fault)) = 1;
}

LEAT_PIXEL void StoreArithmetic(const MapRow& row, const MapPlace& place,
                                uint64_t to) {
  const StageValue a = LoadValue(place.at[0], row.in[0].dtype);
  const StageValue b = LoadValue(place.at[1], row.in[1].dtype);
  // The type in which it divides holds all of the divisor's values.
  if (row.fault != 0 && b.integer == 0) {
    SetFault(row);
    return StoreValue({}, row.head.dtype, to);
  }
  const StageValue value = ArithmeticAs(row.op, row.type, a, b);
  // Computed bytes already are valid bools.
  if (row.head.dtype == DType::kBool && row.computed == DType::kUint8)
    *AtAddress(to) = static_cast<uint8_t>(value.integer);
  else
    StoreValue(value, row.head.dtype, to);
}

LEAT_PIXEL void StoreWhere(const MapRow& row, const MapPlace& place,
                           uint64_t to) {
  const StageValue which = LoadValue(place.at[0], row.in[0].dtype);
  const int k = ValueAs<uint8_t>(which) != 0 ? 1 : 2;
  if ((row.count >> k & 1) != 0)
    CopyStored(place.at[k], row.head.dtype, to);
  else
    StoreValue(LoadValue(place.at[k], row.in[k].dtype), row.head.dtype, to);
}

// Runs thread `thread` of a row: computes one element.
LEAT_PIXEL void MapThread(uint64_t rows, uint32_t thread, uint32_t index) {
  const MapRow& row = reinterpret_cast<const MapRow*>(AtAddress(rows))[index];
  if (row.head.out == 0 || thread >= row.head.threads) return;
  const MapPlace place = PlaceOf(row, thread);
  const DType dtype = row.head.dtype;
  const uint64_t to = row.head.out + uint64_t{thread} * StageSizeOf(dtype);
  switch (row.op) {
    case MapOp::kCopy:
      if (row.in[0].dtype == dtype) return CopyStored(place.at[0], dtype, to);
      return StoreValue(LoadValue(place.at[0], row.in[0].dtype), dtype, to);
    case MapOp::kNormalize: {
      const float x = ValueAs<float>(LoadValue(place.at[0], row.in[0].dtype));
      const float value =
          Normalized(x, ElementAt<float>(place.at[1]),
                     ElementAt<float>(place.at[2]), row.constant);
      return StoreValue(ValueOf(value), dtype, to);
    }
    case MapOp::kLinear: {
      const float x = ValueAs<float>(LoadValue(place.at[0], row.in[0].dtype));
      return StoreValue(ValueOf(OneNan(Linear(x, row.factor, row.constant))),
                        dtype, to);
    }
    case MapOp::kLookup: {
      // Negative integers become huge.
      const auto key = static_cast<uint64_t>(
          LoadValue(place.at[0], row.in[0].dtype).integer);
      const uint64_t at = key < row.count ? key : row.count;
      return CopyStored(row.table + at * StageSizeOf(dtype), dtype, to);
    }
    case MapOp::kOneHot: {
      // Negative integers become huge.
      const auto key = static_cast<uint64_t>(
          LoadValue(place.at[0], row.in[0].dtype).integer);
      if (key >= row.count) SetFault(row);
      const uint64_t at = thread % row.count == key ? 1 : 0;
      return CopyStored(row.table + at * StageSizeOf(dtype), dtype, to);
    }
    case MapOp::kWhere:
      return StoreWhere(row, place, to);
    case MapOp::kInBoxes:
      return CopyStored(place.at[IsInBoxes(row, place) ? 0 : 1], dtype, to);
    default:
      return StoreArithmetic(row, place, to);
  }
}

}  // namespace leat::worker
