// SPDX-License-Identifier: Apache-2.0
//
// A scale is a fraction, wanted / present. Scales are compared without
// division, and a side is present × wanted / present of the axis that
// determines the scale, rounded once: for integers under 2^20 this is the exact
// result's nearest integer. Example: 480 × 640, not_smaller than 224 × 224: 224
// / 480 is larger than 224 / 640 and determines the scale; 640 × 224 / 480 =
// 298.7, so 224 × 299. With subpixel_scale, 299 / 298.7 of the width is resized
// to the 299 columns.
#include "core/shapes/resize_rule.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/pipeline/operator_table.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

using Pair = std::array<double, 2>;

// Maximum factor by which a region is stretched to keep the scale: for results
// smaller than a pixel.
constexpr double kMostStretch = 10;

// Maximum of each side of the result, including sides that were not requested.
constexpr double kMostPixels = 1 << 20;

struct Scale {
  double wanted = 0, present = 1;
  bool Under(const Scale& other) const {
    return wanted * other.present < other.wanted * present;
  }
  double Of(double side) const {
    return side == present ? wanted : side * wanted / present;
  }
};

bool KeepsAspect(ResizeMode mode) {
  return mode == ResizeMode::kNotSmaller || mode == ResizeMode::kNotLarger;
}

// Returns the scale of all axes in the modes that keep the aspect.
Scale CommonScale(const ResizeRule& rule, const Pair& present) {
  std::optional<Scale> ruling;
  for (size_t d = 0; d < 2; ++d) {
    if (rule.want[d] == 0) continue;
    const Scale scale{rule.want[d], present[d]};
    const bool rules = !ruling || (rule.mode == ResizeMode::kNotSmaller
                                       ? ruling->Under(scale)
                                       : scale.Under(*ruling));
    if (rules) ruling = scale;
  }
  for (size_t d = 0; d < 2; ++d) {
    const Scale limit{rule.most[d], present[d]};
    if (rule.most[d] > 0 && limit.Under(*ruling)) ruling = limit;
  }
  return *ruling;
}

// Returns the size before rounding.
Pair ExactSize(const ResizeRule& rule, const Pair& present) {
  if (KeepsAspect(rule.mode)) {
    const Scale scale = CommonScale(rule, present);
    return {scale.Of(present[0]), scale.Of(present[1])};
  }
  Pair size = rule.want;
  for (size_t d = 0; d < 2; ++d) {
    if (size[d] == 0)
      size[d] = rule.mode == ResizeMode::kStretch
                    ? present[d]
                    : Scale{rule.want[1 - d], present[1 - d]}.Of(present[d]);
    if (rule.most[d] > 0) size[d] = std::min(size[d], rule.most[d]);
  }
  return size;
}

// Returns the same in DALI's floats: a scale is a quotient of floats; in the
// modes that keep the aspect it is a float, and a limit's scale is a double.
Pair DaliSize(const ResizeRule& rule, const Pair& present) {
  const auto as_float = [](double x) { return static_cast<float>(x); };
  Pair size{}, scale{};
  for (size_t d = 0; d < 2; ++d) {
    size[d] = as_float(rule.want[d]);
    scale[d] = as_float(rule.want[d]) / as_float(present[d]);
  }
  if (!KeepsAspect(rule.mode)) {
    for (size_t d = 0; d < 2; ++d) {
      if (rule.want[d] == 0)
        size[d] = rule.mode == ResizeMode::kStretch
                      ? present[d]
                      : as_float(present[d] * scale[1 - d]);
      if (rule.most[d] > 0) size[d] = std::min(size[d], rule.most[d]);
    }
    return size;
  }
  std::optional<double> ruling;
  for (size_t d = 0; d < 2; ++d)
    if (rule.want[d] > 0 && (!ruling || (rule.mode == ResizeMode::kNotSmaller
                                             ? scale[d] > *ruling
                                             : scale[d] < *ruling)))
      ruling = scale[d];
  for (size_t d = 0; d < 2; ++d)
    if (rule.most[d] > 0) ruling = std::min(*ruling, rule.most[d] / present[d]);
  for (size_t d = 0; d < 2; ++d)
    if (rule.want[d] == 0 || scale[d] != *ruling)
      size[d] = as_float(present[d] * *ruling);
  return size;
}

// Written so that a NaN is rejected.
bool Inside(double begin, double end, double size) {
  return begin >= 0 && begin < end && end <= size;
}

// Returns the argument as two numbers; a single number is used for both.
// nullopt if it is empty.
template <class T>
absl::StatusOr<std::optional<Pair>> PairOf(const Node& node, const char* name) {
  const auto& list = ArgOf<std::vector<T>>(node, name);
  if (list.empty()) return std::nullopt;
  if (list.size() > 2)
    return InvalidArgument(
        "argument \"{}\" has {} numbers, want 1 or 2 (height, width)", name,
        list.size());
  return Pair{static_cast<double>(list.front()),
              static_cast<double>(list.back())};
}

absl::Status SetRegion(const Node& node, ResizeRule* rule) {
  ASSIGN_OR_RETURN(const auto start, PairOf<double>(node, "roi_start"));
  ASSIGN_OR_RETURN(const auto end, PairOf<double>(node, "roi_end"));
  rule->relative = ArgOf<bool>(node, "roi_relative");
  if (!start && !end) {
    if (rule->relative)
      return InvalidArgument(
          "argument \"roi_relative\" is true, but \"roi_start\" and "
          "\"roi_end\" are not given");
    return absl::OkStatus();
  }
  if (!start || !end)
    return InvalidArgument(
        "argument \"{}\" is given without \"{}\", want both or none",
        start ? "roi_start" : "roi_end", start ? "roi_end" : "roi_start");
  rule->has_region = true;
  rule->start = *start;
  rule->end = *end;
  for (size_t d = 0; d < 2; ++d)
    if (!((*start)[d] < (*end)[d]) || (rule->relative && (*end)[d] > 1))
      return InvalidArgument(
          "arguments \"roi_start\" and \"roi_end\" are ({}) and ({}), want "
          "the first to be less{}; flip mirrors",
          fmt::join(*start, ", "), fmt::join(*end, ", "),
          rule->relative ? ", and at most 1" : "");
  return absl::OkStatus();
}

// Returns the argument's length if it is a constant, 0 if it is not given;
// nullopt: it is given for each sample.
std::optional<double> SideOf(const Node& node, const char* name) {
  const auto* side = std::get_if<double>(&node.args.at(name));
  return side == nullptr ? std::nullopt : std::optional(*side);
}

}  // namespace

absl::Status CheckResized(ImageSize image) {
  if (image.height >= 1 && image.height <= kMaxResizedSide &&
      image.width >= 1 && image.width <= kMaxResizedSide)
    return absl::OkStatus();
  return InvalidArgument(
      "image of {} × {} (height × width) cannot be resized, want sides of 1 to "
      "{}",
      image.height, image.width, kMaxResizedSide);
}

std::optional<ResizeMode> ParseResizeMode(std::string_view name) {
  if (name == "stretch") return ResizeMode::kStretch;
  if (name == "default") return ResizeMode::kDefault;
  if (name == "not_smaller") return ResizeMode::kNotSmaller;
  if (name == "not_larger") return ResizeMode::kNotLarger;
  return std::nullopt;
}

absl::StatusOr<Resizing> ResizeRule::Of(ImageSize image) const {
  RETURN_IF_ERROR(CheckResized(image));
  const Pair whole{static_cast<double>(image.height),
                   static_cast<double>(image.width)};
  const auto kept = [&](double x) {
    return dali ? static_cast<double>(static_cast<float>(x)) : x;
  };
  Pair from{}, to = whole, present{}, rounded{};
  for (size_t d = 0; d < 2; ++d) {
    if (has_region) {
      const double unit = relative ? whole[d] : 1;
      from[d] = kept(kept(start[d]) * unit);
      to[d] = kept(kept(end[d]) * unit);
    }
    present[d] = kept(to[d] - from[d]);
  }
  if (!Inside(from[0], to[0], whole[0]) || !Inside(from[1], to[1], whole[1]))
    return InvalidArgument(
        "region from ({}) to ({}) is not inside the image of {} × {} (height × "
        "width)",
        fmt::join(from, ", "), fmt::join(to, ", "), image.height, image.width);
  const Pair exact =
      dali ? DaliSize(*this, present) : ExactSize(*this, present);
  for (size_t d = 0; d < 2; ++d) {
    rounded[d] = std::max(1.0, std::floor(exact[d] + 0.5));
    if (!(rounded[d] <= kMostPixels))
      return InvalidArgument(
          "resized to {:.0f} × {:.0f} (height × width), want at most {} a "
          "side; \"max_size\" limits it",
          exact[0], exact[1], kMostPixels);
    if (!subpixel_scale || rounded[d] == exact[d]) continue;
    const double stretch = std::min(rounded[d] / exact[d], kMostStretch);
    const double centre = kept(from[d] + to[d]) / 2;
    from[d] = kept(centre + (from[d] - centre) * stretch);
    to[d] = kept(centre + (to[d] - centre) * stretch);
  }
  return Resizing{
      {static_cast<int64_t>(rounded[0]), static_cast<int64_t>(rounded[1])},
      {from[0], to[0]},
      {from[1], to[1]}};
}

std::array<int64_t, 2> ResizeRule::OfAny() const {
  std::array<int64_t, 2> size{-1, -1};
  for (size_t d = 0; d < 2; ++d)
    if (!KeepsAspect(mode) && want[d] > 0)
      size[d] = static_cast<int64_t>(most[d] > 0 ? std::min(want[d], most[d])
                                                 : want[d]);
  return size;
}

const char* ResizeSideArg(const Node& node) {
  for (const char* name : {"shorter", "longer"})
    if (!SideOf(node, name)) return name;
  return nullptr;
}

absl::StatusOr<ResizeRule> ResizeRuleOf(const Node& node) {
  ResizeRule rule;
  rule.mode = *ParseResizeMode(ArgOf<std::string>(node, "mode"));
  rule.subpixel_scale = ArgOf<bool>(node, "subpixel_scale");
  rule.dali = ArgOf<std::string>(node, "rule") == "dali";
  ASSIGN_OR_RETURN(const auto size, PairOf<int64_t>(node, "size"));
  ASSIGN_OR_RETURN(const auto most, PairOf<int64_t>(node, "max_size"));
  const auto shorter = SideOf(node, "shorter"), longer = SideOf(node, "longer");
  const bool has_shorter = shorter != 0.0, has_longer = longer != 0.0;
  const int given = size.has_value() + has_shorter + has_longer;
  if (given != 1)
    return InvalidArgument(
        "arguments \"size\", \"shorter\", \"longer\": {} of them are given, "
        "want exactly one",
        given);
  if (size == Pair{0, 0})
    return InvalidArgument(
        "argument \"size\" is (0, 0), want at least one side over 0");
  if (!size && rule.mode != ResizeMode::kStretch)
    return InvalidArgument(
        "argument \"mode\" is \"{}\", which is for \"size\", not for \"{}\"",
        ArgOf<std::string>(node, "mode"), has_shorter ? "shorter" : "longer");
  if (most) rule.most = *most;
  RETURN_IF_ERROR(SetRegion(node, &rule));
  if (size) {
    rule.want = *size;
    return rule;
  }
  rule.mode = has_shorter ? ResizeMode::kNotSmaller : ResizeMode::kNotLarger;
  const auto side = has_shorter ? shorter : longer;
  if (side) rule.want = {*side, *side};
  return rule;
}

absl::StatusOr<ResizeRule> WithSide(const ResizeRule& rule, double side) {
  if (!(side > 0 && side <= kMaxSide))
    return InvalidArgument(
        "argument \"{}\" is {}, want more than 0 and at most {}",
        rule.mode == ResizeMode::kNotSmaller ? "shorter" : "longer", side,
        kMaxSide);
  ResizeRule sized = rule;
  sized.want = {side, side};
  return sized;
}

}  // namespace leat
