// SPDX-License-Identifier: Apache-2.0
#include "core/packing/pack_node.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/value_types.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

template <class T>
const T& GivenArg(const Node& node, const char* name) {
  return std::get<T>(node.args.at(name));
}

}  // namespace

bool PackNode::FillFits(size_t value, DType dtype) const {
  const double fill = FillOf(value);
  if (IsFloat(dtype)) {
    bool finite = false;
    WithStorage(dtype, [&]<class T>(T) {
      finite = std::isfinite(ToFloat(Converted<T>(static_cast<float>(fill))));
    });
    return finite;
  }
  if (fill != std::floor(fill) || std::abs(fill) > 0x1p53) return false;
  bool same = false;
  WithStorage(dtype, [&]<class T>(T) {
    const auto whole = static_cast<int64_t>(fill);
    if constexpr (std::is_integral_v<T>)
      same = static_cast<int64_t>(Converted<T>(whole)) == whole;
  });
  return same;
}

std::vector<std::byte> PackNode::FillBytes(size_t value, DType dtype) const {
  std::vector<std::byte> bytes(SizeOf(dtype));
  WithStorage(dtype, [&]<class T>(T) {
    const T fill = std::is_integral_v<T>
                       ? Converted<T>(static_cast<int64_t>(FillOf(value)))
                       : Converted<T>(static_cast<float>(FillOf(value)));
    std::memcpy(bytes.data(), &fill, sizeof fill);
  });
  return bytes;
}

absl::StatusOr<PackNode> ReadPackNode(const Node& node) {
  PackNode read;
  const std::string& how = GivenArg<std::string>(node, "how");
  const std::string& longer = GivenArg<std::string>(node, "longer");
  read.packing = {
      .how = how == "fit" ? PackHow::kFit : PackHow::kCut,
      .length = static_cast<uint64_t>(GivenArg<int64_t>(node, "length")),
      .overlap = static_cast<uint64_t>(GivenArg<int64_t>(node, "overlap")),
      .longer = longer == "drop"    ? PackLonger::kDrop
                : longer == "error" ? PackLonger::kError
                                    : PackLonger::kCut,
      .max_documents =
          static_cast<uint32_t>(GivenArg<int64_t>(node, "max_documents"))};
  read.fill_values = GivenArg<std::vector<double>>(node, "fill_values");
  for (const NodeRef& input : node.inputs) read.outputs.push_back(input.output);
  RETURN_IF_ERROR(CheckPackNode(read));
  return read;
}

absl::Status CheckPackNode(const PackNode& node) {
  RETURN_IF_ERROR(CheckPacking(node.packing));
  const size_t fills = node.fill_values.size(), values = node.outputs.size();
  if (values == 0 || values > kMaxPackedValues)
    return InvalidArgument("pack has {} values, want 1 to {}", values,
                           kMaxPackedValues);
  if (fills != 1 && fills != values)
    return InvalidArgument(
        "argument \"fill_values\" has {} numbers, want 1, or {}: one for each "
        "input",
        fills, values);
  return absl::OkStatus();
}

size_t PackedElementBytes(const ValueType& type) {
  size_t bytes = SizeOf(type.dtype);
  for (size_t axis = 1; axis < type.shape.size(); ++axis)
    bytes *= static_cast<size_t>(type.shape[axis]);
  return bytes;
}

absl::Status CheckPackedTypes(const PackNode& node,
                              std::span<const ValueType> types) {
  // segment_ids and positions
  uint64_t row_bytes = 2 * sizeof(int32_t) * node.packing.length;
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueType& type = types[i];
    uint64_t bytes = SizeOf(type.dtype) * node.packing.length;
    bool open_once = type.kind == ValueType::Kind::kTensor &&
                     !type.shape.empty() && type.shape[0] < 0;
    for (size_t axis = 1; axis < type.shape.size() && open_once; ++axis) {
      const auto side = static_cast<uint64_t>(type.shape[axis]);
      open_once = type.shape[axis] > 0;
      bytes = side > kMaxRowBytes ? kMaxRowBytes + 1 : bytes * side;
      bytes = std::min<uint64_t>(bytes, kMaxRowBytes + 1);
    }
    if (!open_once)
      return InvalidArgument(
          "input {} is {}, want a tensor whose first size alone differs from "
          "sample to sample, such as int32[?]",
          i, TypeText(type));
    if (!node.FillFits(i, type.dtype))
      return InvalidArgument(
          "argument \"fill_values\" has {} for input {}, want a value of {}",
          node.FillOf(i), i, Name(type.dtype));
    row_bytes += bytes;
  }
  if (row_bytes <= kMaxRowBytes) return absl::OkStatus();
  return InvalidArgument(
      "rows of length={} have over {} bytes: want shorter ones",
      node.packing.length, kMaxRowBytes);
}

std::string CanonicalText(const PackNode& node) {
  std::string text = PackingText(node.packing);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    text += fmt::format(" {}:{:a}", node.outputs[i], node.FillOf(i));
  return text;
}

}  // namespace leat
