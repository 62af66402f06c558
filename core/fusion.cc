// SPDX-License-Identifier: Apache-2.0
#include "core/fusion.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/status.h"

namespace leat {
namespace {

// What a node's value is.
struct Place {
  enum Kind : uint8_t {
    kScalar,  // of the host's
    kView,    // of the decoded image
    kTail     // something else made of a view
  } kind = kScalar;
  bool resampled = false, mirrored = false;
};

bool IsGeometric(std::string_view op) {
  return op == "random_resized_crop" || op == "resize" || op == "crop" ||
         op == "random_crop" || op == "window" || op == "flip";
}
bool Resamples(std::string_view op) {
  return op == "random_resized_crop" || op == "resize";
}
bool IsTail(std::string_view op) {
  return op == "normalize" || op == "cast" || op == "transpose";
}
bool IsDraw(std::string_view op) {
  return op == "coin_flip" || op == "uniform";
}

class FusionChecker {
 public:
  explicit FusionChecker(const CheckedGraph& graph)
      : graph_(graph), places_(graph.graph.nodes.size()) {}

  absl::Status Run() {
    for (uint32_t node = 0; node < places_.size(); ++node)
      if (node != graph_.reader) RETURN_IF_ERROR(Visit(node));
    const auto& outputs = graph_.graph.outputs;
    if (std::none_of(outputs.begin(), outputs.end(), [&](const auto& output) {
          return places_[output.second.node].kind != Place::kScalar;
        }))
      return Unimplemented("no field is made of an image");
    return absl::OkStatus();
  }

 private:
  absl::Status CannotFuse(uint32_t node, std::string_view why) const {
    return Unimplemented("node {} ({}): {}", node, graph_.graph.nodes[node].op,
                         why);
  }

  absl::Status Visit(uint32_t node) {
    const Node& n = graph_.graph.nodes[node];
    Place& place = places_[node];
    if (n.op == "decode") {
      if (decoded_) return CannotFuse(node, "a second decode");
      const auto& colours = std::get<std::string>(n.args.at("output"));
      if (colours != "rgb" && colours != "gray")
        return CannotFuse(node, "colours that are neither RGB nor gray");
      decoded_ = true;
      place.kind = Place::kView;
      return absl::OkStatus();
    }
    if (IsDraw(n.op)) return absl::OkStatus();
    if (n.inputs.empty())
      return CannotFuse(node, "has no place in a GPU's launch");
    const Place from = places_[n.inputs[0].node];
    if (IsGeometric(n.op)) {
      if (from.kind != Place::kView)
        return CannotFuse(node, "its input is no view of the decoded image");
      place = from;
      if (Resamples(n.op)) {
        if (std::get<std::string>(n.args.at("rule")) != "pillow")
          return CannotFuse(node, "rule \"dali\" is computed on the host");
        if (from.resampled || from.mirrored)
          return CannotFuse(node, "its input was resampled or mirrored");
        place.resampled = true;
      }
      place.mirrored |= n.op == "flip";
      return absl::OkStatus();
    }
    if (!IsTail(n.op))
      return CannotFuse(node, "has no place in a GPU's launch");
    if (from.kind != Place::kScalar)
      place.kind = Place::kTail;
    else if (!graph_.types[node][0].shape.empty())
      return CannotFuse(node, "neither an image's nor a scalar");
    return absl::OkStatus();
  }

  const CheckedGraph& graph_;
  std::vector<Place> places_;  // by node
  bool decoded_ = false;
};

}  // namespace

absl::Status CheckFusable(const CheckedGraph& graph) {
  return FusionChecker(graph).Run();
}

}  // namespace leat
