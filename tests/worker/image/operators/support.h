// SPDX-License-Identifier: Apache-2.0
//
// Runs one operator on tensors, as a pipeline of a reader and that operator.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "core/tensor/pointwise.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"

namespace leat::worker::testing {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Args = std::map<std::string, Value>;

inline Value Text(const char* text) { return Value(std::string(text)); }

template <class T>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kUint8;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kInt64;
  return DType::kFloat32;
}

// A tensor by itself.
struct Array {
  DType dtype = DType::kUint8;
  Shape shape;
  std::vector<std::byte> bytes;
  bool open = false;  // its type does not say the sizes of its axes

  template <class T>
  static Array Of(Shape shape, const std::vector<T>& values) {
    Array array{DTypeOf<T>(), std::move(shape),
                std::vector<std::byte>(values.size() * sizeof(T))};
    std::byte* to = array.bytes.data();
    for (const T value : values) {
      memcpy(to, &value, sizeof value);
      to += sizeof value;
    }
    return array;
  }
  static Array Scalar(float value) {
    return Of<float>({}, std::vector<float>{value});
  }
  static Array Flag(bool value) {
    return Of<uint8_t>({}, {value}).As(DType::kBool);
  }
  Array As(DType other) && {
    dtype = other;
    return std::move(*this);
  }
  Array Open() && {
    open = true;
    return std::move(*this);
  }

  template <class T>
  std::vector<T> Values() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  ValueType Type() const {
    ValueType type{ValueType::Kind::kTensor, dtype, shape};
    for (size_t i = 0; open && i + 1 < shape.size(); ++i) type.shape[i] = -1;
    return type;
  }
  friend bool operator==(const Array& a, const Array& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
  }
};

// The operator's argument that is field `i` of the sample.
inline Value FieldOf(uint32_t i) { return NodeRef{0, i}; }

// Applies the operators one after the other to stored[0]; the other arrays are
// for arguments.
inline absl::StatusOr<Array> Apply(std::vector<Node> nodes,
                                   const std::vector<Array>& stored) {
  Graph graph;
  graph.nodes = {{"readers.numpy", {}, {{"path", Text("/none.npy")}}}};
  for (Node& node : nodes) {
    node.inputs = {{static_cast<uint32_t>(graph.nodes.size()) - 1, 0}};
    graph.nodes.push_back(std::move(node));
  }
  graph.outputs = {
      {"result", {static_cast<uint32_t>(graph.nodes.size()) - 1, 0}}};
  std::vector<ValueType> types;
  StoredSample sample;
  for (const Array& array : stored) {
    types.push_back(array.Type());
    sample.fields.push_back({array.bytes, array.open ? array.shape : Shape{}});
  }
  ASSIGN_OR_RETURN(const CheckedGraph checked, Check(graph, types));
  ASSIGN_OR_RETURN(const auto program, RowProgram::Compile(checked));
  const Field& field = checked.schema.fields[0];
  Array result{field.dtype, field.shape,
               std::vector<std::byte>(field.row_bytes, std::byte{0xa5})};
  const std::span<std::byte> output(result.bytes);
  Scratch scratch({});
  RETURN_IF_ERROR(program->Run({.seed = 1, .fields = sample.fields}, scratch,
                               std::span(&output, 1)));
  return result;
}

inline absl::StatusOr<Array> Apply(const char* op, Args args,
                                   const std::vector<Array>& stored) {
  return Apply({Node{op, {}, std::move(args)}}, stored);
}

}  // namespace leat::worker::testing
