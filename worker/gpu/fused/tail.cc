// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/tail.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <variant>

namespace leat::worker {
namespace {

constexpr int kAxes = 3;            // y, x, channel
constexpr int64_t kMostPlaces = 4;  // the longest axis that normalize may use
constexpr uint32_t kBytes = 256;

using Axes = std::array<int64_t, kAxes>;

// Runs the path on a small tensor; `memory` holds the value.
Tensor RunPath(std::span<const Step* const> path, Tensor value,
               std::array<std::vector<std::byte>, 2>* memory) {
  size_t turn = 0;
  for (const Step* step : path) {
    Tensor next = value;
    next.dtype = step->dtype;
    if (const auto* transpose = std::get_if<TransposeStep>(&step->what))
      for (int i = 0; i < kAxes; ++i)
        next.dims[i] = value.dims[transpose->perm[i]];
    std::vector<std::byte>& out = (*memory)[turn ^= 1];
    out.resize(next.bytes());
    next.data = out.data();
    if (const auto* normalize = std::get_if<NormalizeStep>(&step->what))
      normalize->normalizer.Run(value, next.data);
    else if (const auto* transpose = std::get_if<TransposeStep>(&step->what))
      Transpose(value, transpose->perm, next.data);
    else
      Cast(value, next.dtype, next.data);
    value = next;
  }
  return value;
}

// Returns the steps of dense memory whose axis i is axis order[i] of the view.
Axes StepsOf(const Axes& order, const Axes& dims) {
  Axes steps{};
  int64_t step = 1;
  for (int i = kAxes - 1; i >= 0; --i) {
    steps[order[i]] = step;
    step *= dims[order[i]];
  }
  return steps;
}

bool ChangesElements(const Step& step) {
  return !std::holds_alternative<TransposeStep>(step.what) &&
         !(std::holds_alternative<CastStep>(step.what) &&
           step.dtype == DType::kUint8);
}

// Axes that are too long for normalize to use them have one place.
Axes PlacesOf(const Axes& dims) {
  Axes places = dims;
  for (int64_t& count : places)
    if (count > kMostPlaces) count = 1;
  return places;
}

void FillTable(std::span<const Step* const> path, const Axes& places,
               const Axes& order, size_t element_bytes,
               std::vector<std::byte>* table) {
  const Axes from = StepsOf(order, places);
  const auto count = static_cast<size_t>(places[0] * places[1] * places[2]);
  table->resize(count * kBytes * element_bytes);
  std::vector<std::byte> image(count);
  std::array<std::vector<std::byte>, 2> memory;
  for (uint32_t byte = 0; byte < kBytes; ++byte) {
    std::fill(image.begin(), image.end(), static_cast<std::byte>(byte));
    Tensor value{DType::kUint8, kAxes, {}, image.data()};
    std::copy(places.begin(), places.end(), value.dims.begin());
    value = RunPath(path, value, &memory);
    size_t place = 0;
    for (int64_t y = 0; y < places[0]; ++y)
      for (int64_t x = 0; x < places[1]; ++x)
        for (int64_t c = 0; c < places[2]; ++c, ++place)
          memcpy(table->data() + (place * kBytes + byte) * element_bytes,
                 value.data + (y * from[0] + x * from[1] + c * from[2]) *
                                  static_cast<int64_t>(element_bytes),
                 element_bytes);
  }
}

}  // namespace

uint32_t InputOf(const Step& step) {
  if (const auto* normalize = std::get_if<NormalizeStep>(&step.what))
    return normalize->input;
  if (const auto* cast = std::get_if<CastStep>(&step.what)) return cast->input;
  return std::get<TransposeStep>(step.what).input;
}

FusedTail CompileTail(std::span<const Step* const> path, ImageSize size,
                      int channels) {
  const Axes dims = {size.height, size.width, channels};
  Axes order = {0, 1, 2};
  for (const Step* step : path)
    if (const auto* transpose = std::get_if<TransposeStep>(&step->what)) {
      const Axes before = order;
      for (int i = 0; i < kAxes; ++i) order[i] = before[transpose->perm[i]];
    }
  FusedTail tail;
  FusedField& field = tail.field;
  const DType dtype = path.empty() ? DType::kUint8 : path.back()->dtype;
  field.element_bytes = static_cast<uint32_t>(SizeOf(dtype));
  const Axes out = StepsOf(order, dims);
  field.out_y = static_cast<uint32_t>(out[0]) * field.element_bytes;
  field.out_x = static_cast<uint32_t>(out[1]) * field.element_bytes;
  field.out_c = static_cast<uint32_t>(out[2]) * field.element_bytes;
  const bool same =
      std::none_of(path.begin(), path.end(),
                   [](const Step* step) { return ChangesElements(*step); });
  if (same) return tail;

  field.kind = FusedKind::kTable;
  const Axes places = PlacesOf(dims);
  FillTable(path, places, order, field.element_bytes, &tail.table);
  const Axes steps = StepsOf({0, 1, 2}, places);
  const auto step = [&](int axis) {
    return places[axis] == 1 ? 0 : static_cast<uint32_t>(steps[axis]) * kBytes;
  };
  field.table_y = step(0);
  field.table_x = step(1);
  field.table_c = step(2);
  return tail;
}

}  // namespace leat::worker
