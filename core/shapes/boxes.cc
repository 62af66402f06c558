// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/boxes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

// Maximum of a size or position; sums of some of these are exact.
constexpr double kMost = 1e15;

int64_t Nearest(double x) {
  return std::llround(std::clamp(x, -kMost, kMost));  // halves away from zero
}

// Calls `use(axis, value)` for each value of a list argument.
template <class List, class Use>
absl::Status Each(const Node& node, const char* name, size_t axes, Use use) {
  const List& list = ArgOf<List>(node, name);
  if (list.empty()) return absl::OkStatus();
  if (list.size() != axes)
    return InvalidArgument(
        "argument \"{}\" has {} numbers, want {}, one for each of the axes",
        name, list.size(), axes);
  for (size_t i = 0; i < axes; ++i) use(i, list[i]);
  return absl::OkStatus();
}

absl::Status AtMostOne(const Node& node,
                       std::initializer_list<const char*> ints,
                       std::initializer_list<const char*> floats) {
  std::vector<const char*> given;
  for (const char* name : ints)
    if (!ArgOf<Ints>(node, name).empty()) given.push_back(name);
  for (const char* name : floats)
    if (!ArgOf<Floats>(node, name).empty()) given.push_back(name);
  if (given.size() < 2) return absl::OkStatus();
  return InvalidArgument("arguments \"{}\" are all given, want one of them",
                         fmt::join(given, "\", \""));
}

}  // namespace

Interval SliceRule::Of(int64_t n, double offset) const {
  const auto size = static_cast<double>(n);
  const auto share = [&](double of) {
    return static_cast<double>(static_cast<float>(of) * static_cast<float>(n));
  };
  const double from = start + offset;
  const double begin = relative ? share(from) : from;
  double end = size;
  switch (length) {
    case Length::kRest:
      break;
    case Length::kShape: {
      // The result's size is fixed, independent of the rounding of the start.
      const int64_t first = Nearest(begin);
      return {first, first + static_cast<int64_t>(extent)};
    }
    case Length::kRelShape:
      // DALI's products are floats, except this one.
      end = relative ? (from + extent) * size : begin + share(extent);
      break;
    case Length::kEnd:
      end = extent;
      break;
    case Length::kRelEnd:
      end = share(extent);
      break;
  }
  return {Nearest(begin), Nearest(end)};
}

std::optional<int64_t> SliceRule::Fixed() const {
  if (length == Length::kShape) return static_cast<int64_t>(extent);
  return std::nullopt;
}

absl::StatusOr<std::vector<int>> AxesOf(const Node& node, int rank, int all) {
  std::vector<int> axes;
  const Ints& given = ArgOf<Ints>(node, "axes");
  for (const int64_t axis : given) {
    const bool again = std::find(axes.begin(), axes.end(),
                                 static_cast<int>(axis)) != axes.end();
    if (axis < 0 || axis >= rank || again)
      return InvalidArgument(
          "argument \"axes\" is [{}], want distinct axes of {}",
          fmt::join(given, ", "), rank);
    axes.push_back(static_cast<int>(axis));
  }
  for (int axis = 0; given.empty() && axis < all; ++axis) axes.push_back(axis);
  return axes;
}

absl::StatusOr<std::vector<SliceRule>> SliceRules(const Node& node, int rank) {
  using Length = SliceRule::Length;
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(node, rank, rank));
  RETURN_IF_ERROR(AtMostOne(node, {"start"}, {"rel_start"}));
  RETURN_IF_ERROR(AtMostOne(node, {"shape", "end"}, {"rel_shape", "rel_end"}));
  std::vector<SliceRule> rules(axes.size());
  const size_t count = axes.size();
  for (size_t i = 0; i < count; ++i) rules[i].axis = axes[i];
  RETURN_IF_ERROR(Each<Ints>(node, "start", count, [&](size_t i, int64_t v) {
    rules[i].start = static_cast<double>(v);
  }));
  RETURN_IF_ERROR(
      Each<Floats>(node, "rel_start", count, [&](size_t i, double v) {
        rules[i].relative = true;
        rules[i].start = static_cast<float>(v);
      }));
  const auto length = [&](Length kind) {
    return [&rules, kind](size_t i, auto v) {
      rules[i].length = kind;
      // Fractions are floats, as in DALI.
      rules[i].extent = std::is_same_v<decltype(v), double>
                            ? static_cast<float>(v)
                            : static_cast<double>(v);
    };
  };
  RETURN_IF_ERROR(Each<Ints>(node, "shape", count, length(Length::kShape)));
  RETURN_IF_ERROR(Each<Ints>(node, "end", count, length(Length::kEnd)));
  RETURN_IF_ERROR(
      Each<Floats>(node, "rel_shape", count, length(Length::kRelShape)));
  RETURN_IF_ERROR(
      Each<Floats>(node, "rel_end", count, length(Length::kRelEnd)));
  return rules;
}

int64_t PadRule::Of(int64_t n) const {
  const int64_t least = std::max(n, shape);
  return (least + align - 1) / align * align;
}

absl::StatusOr<std::vector<PadRule>> PadRules(const Node& node, int rank) {
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(node, rank, rank));
  std::vector<PadRule> rules(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) rules[i].axis = axes[i];
  RETURN_IF_ERROR(Each<Ints>(node, "shape", axes.size(),
                             [&](size_t i, int64_t v) { rules[i].shape = v; }));
  const Ints& align = ArgOf<Ints>(node, "align");
  if (align.size() == 1)
    for (PadRule& rule : rules) rule.align = align[0];
  else
    RETURN_IF_ERROR(
        Each<Ints>(node, "align", axes.size(),
                   [&](size_t i, int64_t v) { rules[i].align = v; }));
  return rules;
}

Shape WithSizesOf(Shape shape, const Ints& axes,
                  std::span<const int64_t> input) {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] >= 0) shape[i] = input[static_cast<size_t>(axes[i])];
  return shape;
}

absl::StatusOr<Shape> Reshaped(const Shape& shape, int64_t elements) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Shape result = shape;
  int64_t* open = nullptr;
  int64_t count = 1;
  bool good = true;
  for (int64_t& side : result) {
    if (side == -1) {
      good = good && open == nullptr;
      open = &side;
    } else {
      good = good && side >= 0 && (side == 0 || count <= kMost / side);
      if (good) count *= side;
    }
  }
  if (open != nullptr) {
    good = good && count > 0 && elements % count == 0;
    if (good) *open = elements / count;
  } else {
    good = good && count == elements;
  }
  if (good) return result;
  return InvalidArgument("{} elements do not fill the shape ({})", elements,
                         fmt::join(shape, ", "));
}

}  // namespace leat
