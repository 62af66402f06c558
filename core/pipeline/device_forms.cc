// SPDX-License-Identifier: Apache-2.0
//
// Each node's value gets a place, by its operator and the places of its inputs.
// Then the table is searched for a reason why the node cannot be there.
//
//   readers.image_folder   0: nowhere  1: host
//   decode(%0)             view
//   resize(%1)             view
//   brightness(%2)         stage
//   normalize(%3)          stage
//   one_hot(%0.1)          host
#include "core/pipeline/device_forms.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/pipeline/reduction.h"
#include "core/status.h"

namespace leat {
namespace {

enum class Place : uint8_t {
  kNowhere,  // stored, and not a value that the host passes to kernels
  kHost,     // the host computes it
  kView,     // geometry of the decoded image, computed by the fused kernel
  // A kernel computes it from a view, or from other values. After a view,
  // normalize, cast and transpose are part of the fused kernel, too.
  kStage
};

// A node for which the table is searched.
struct Site {
  const Node& node;
  Place place;
  std::vector<Place> inputs, args;      // of references
  std::vector<const ValueType*> types;  // of the inputs
  const ValueType& type;                // of its value
  bool decoded;                         // an earlier node decodes
  bool continues = false;  // computed together with its input, in one pass
};

bool IsGeometric(std::string_view op) {
  return op == "random_resized_crop" || op == "resize" || op == "crop" ||
         op == "random_crop" || op == "window" || op == "flip";
}
bool Resamples(std::string_view op) {
  return op == "random_resized_crop" || op == "resize";
}
// True if the GPU's kernels have to convert the whole image before they make
// views of it.
bool IsYcbcr(const Node& decode) {
  return std::get<std::string>(decode.args.at("output")) == "ycbcr";
}
// Views of the smaller image; the kernels cannot make these in YCbCr.
bool IsReducedYcbcr(const Site& site) {
  return IsYcbcr(site.node) && IsReduced(site.node);
}
// True for operators that use only the sizes of their inputs.
bool IsOfShapes(std::string_view op) {
  return op == "length" || op == "cutmix_share";
}

bool HasOneSize(const ValueType& type) {
  return type.kind == ValueType::Kind::kTensor &&
         std::ranges::all_of(type.shape, [](int64_t n) { return n > 0; });
}
bool FitsHost(const ValueType& type) {
  if (!HasOneSize(type)) return false;
  uint64_t bytes = SizeOf(type.dtype);
  for (const int64_t size : type.shape)
    if ((bytes *= static_cast<uint64_t>(size)) > kMostHostValueBytes)
      return false;
  return true;
}

// --- Conditions of the table ------------------------------------------------

bool Always(const Site&) { return true; }
bool InAStage(const Site& site) { return site.place == Place::kStage; }
bool TakesAnArgumentOfPixels(const Site& site) {
  return std::ranges::any_of(site.args,
                             [](Place place) { return place != Place::kHost; });
}
bool IsSecondDecode(const Site& site) { return site.decoded; }
bool IsTooMuchForTheHost(const Site& site) {
  return site.place == Place::kHost && !FitsHost(site.type);
}
bool IsNowhere(const Site& site) { return site.place == Place::kNowhere; }
bool TakesWhatIsNowhere(const Site& site) {
  return site.node.op != "decode" &&
         std::ranges::find(site.inputs, Place::kNowhere) != site.inputs.end();
}
bool TakesAnySize(const Site& site) {
  return InAStage(site) && !site.continues &&
         std::ranges::any_of(site.types, [](const ValueType* type) {
           return !HasOneSize(*type);
         });
}
bool IsOfAnySize(const Site& site) { return !HasOneSize(site.type); }
// True if a flag from pixels chooses between values of sizes of the sample's
// own: the host must know the result's sizes. If one side has a fixed size for
// all samples, both sides are considered, and must fit.
bool ChoosesASizeByPixels(const Site& site) {
  if (HasOneSize(site.type)) return false;
  if (!site.types[0]->shape.empty() || site.inputs[0] == Place::kHost)
    return false;
  const Shape& joined = site.type.shape;
  const auto own =
      std::ranges::count_if(joined, [](int64_t n) { return n < 0; });
  for (const ValueType* side : {site.types[1], site.types[2]}) {
    // From the last axis on, since all values have it.
    const auto both = std::transform_reduce(
        side->shape.rbegin(), side->shape.rend(), joined.rbegin(), int64_t{0},
        std::plus<>(), [](int64_t of_side, int64_t of_both) {
          return int64_t{of_side < 0 && of_both < 0};
        });
    if (both != own) return false;
  }
  return true;
}
bool DividesByPixels(const Site& site) {
  return site.inputs[1] != Place::kHost;
}
bool FillsWithALongPattern(const Site& site) {
  if (!InAStage(site)) return false;
  size_t numbers = 1;
  for (const char* name : {"fill_value", "fill_values"}) {
    const auto it = site.node.args.find(name);
    if (it == site.node.args.end()) continue;
    if (const auto* list = std::get_if<std::vector<double>>(&it->second))
      numbers = std::max(numbers, list->size());
  }
  return numbers * SizeOf(site.types[0]->dtype) > kMostPatternBytes;
}

// --- The table --------------------------------------------------------------

struct Gap {
  std::string_view op;  // empty: any
  bool (*applies)(const Site& site);
  std::string_view why;
};

constexpr std::string_view kNoForm = "has no device form";
constexpr std::string_view kOfAnySize =
    "is computed of a value whose size differs from sample to sample";

// The first row that applies gives the message. When an operator is implemented
// for a condition, its row is removed.
constexpr Gap kGaps[] = {
    {"", TakesAnArgumentOfPixels,
     "takes an argument that the host does not compute"},
    {"partner", IsNowhere, "gives another row's stored value"},
    {"partner", IsOfAnySize,
     "gives another row's value, whose size differs from sample to sample"},
    {"decode", IsSecondDecode, "is a second decode"},
    {"decode", IsReducedYcbcr, "makes YCbCr of an image of a smaller scale"},
    {"", IsTooMuchForTheHost, "gives more than the host computes for a GPU"},
    {"peek_shape", Always, kNoForm},
    {"stored_bytes", Always, kNoForm},
    {"jpeg_compression_distortion", InAStage, kNoForm},
    {"length", InAStage, kOfAnySize},
    {"cutmix_share", InAStage, kOfAnySize},
    {"", TakesWhatIsNowhere,
     "takes a stored value that is no image and over 16 KiB, or of any size"},
    {"where", ChoosesASizeByPixels,
     "chooses between sizes by what the host does not compute"},
    {"erase", FillsWithALongPattern, "fills with more than 4096 bytes"},
    {"slice", FillsWithALongPattern, "fills with more than 4096 bytes"},
};

// Gaps of pipelines that kernels compute, but not after the GPU's decoder: it
// makes one image per row, and if an image's values find no room, or a kernel
// finds it bad, the host decodes it.
constexpr std::string_view kMayFindNoRoom =
    "has values whose size differs from sample to sample, and a sample whose "
    "values find no room on a GPU is decoded by the host";
constexpr std::string_view kMayFail =
    "may fail by a sample's pixels, and such a sample is decoded by the host";
constexpr Gap kDecoderGaps[] = {
    {"partner", Always,
     "gives another row's value, and the GPU's decoder makes one image a row"},
    {"", TakesAnySize, kMayFindNoRoom},
    {"floordiv", DividesByPixels, kMayFail},
    {"one_hot", InAStage, kMayFail},
};

// --- Places -----------------------------------------------------------------

class FormChecker {
 public:
  FormChecker(const CheckedGraph& graph, std::span<const Gap> gaps)
      : graph_(graph),
        gaps_(gaps),
        states_(graph.graph.nodes.size()),
        uses_(states_.size()),
        user_(states_.size()) {
    for (uint32_t i = 0; i < states_.size(); ++i) {
      for (const NodeRef& ref : At(i).inputs) Use(ref, i);
      for (const auto& [name, value] : At(i).args)
        if (const auto* ref = std::get_if<NodeRef>(&value)) Use(*ref, i);
    }
    for (const auto& [name, ref] : graph.graph.outputs) ++uses_[ref.node];
  }

  absl::Status Run() {
    for (uint32_t i = 0; i < states_.size(); ++i)
      if (i != graph_.reader && i != graph_.stored) RETURN_IF_ERROR(Visit(i));
    for (const auto& [name, ref] : graph_.graph.outputs) {
      const Place place = PlaceOf(ref);
      if (place == Place::kNowhere)
        return Unimplemented("output \"{}\" is stored, and over {} bytes", name,
                             kMostHostValueBytes);
      launched_ |= place == Place::kView;
    }
    if (!launched_) return Unimplemented("no output is made of an image");
    return absl::OkStatus();
  }

 private:
  struct NodeState {
    Place place = Place::kHost;
    // For consecutive geometric operators: in one pass an image is resampled
    // once, and not after it is mirrored.
    bool resampled = false, mirrored = false;
  };

  const Node& At(uint32_t node) const { return graph_.graph.nodes[node]; }
  void Use(const NodeRef& ref, uint32_t by) {
    ++uses_[ref.node];
    user_[ref.node] = by;
  }
  const ValueType& TypeOf(const NodeRef& ref) const {
    return graph_.types[ref.node][ref.output];
  }
  Place PlaceOf(const NodeRef& ref) const {
    if (ref.node != graph_.stored) return states_[ref.node].place;
    return FitsHost(TypeOf(ref)) ? Place::kHost : Place::kNowhere;
  }

  // Returns whether the geometric operator `op` can be added to the pass that
  // ends with `from`.
  static bool Extends(std::string_view op, const NodeState& from) {
    return !Resamples(op) || (!from.resampled && !from.mirrored);
  }
  // Returns whether the node's only user is computed in the same pass.
  bool IsContinued(uint32_t node) const {
    return IsGeometric(At(node).op) && uses_[node] == 1 &&
           IsGeometric(At(user_[node]).op) &&
           Extends(At(user_[node]).op, states_[node]);
  }

  bool IsTheHosts(const Node& node) const {
    if (IsGeometric(node.op)) return false;
    return std::ranges::all_of(node.inputs, [&](const NodeRef& ref) {
      const Place place = PlaceOf(ref);
      return place == Place::kHost ||
             (IsOfShapes(node.op) && place != Place::kNowhere &&
              HasOneSize(TypeOf(ref)));
    });
  }

  NodeState StateOf(const Node& node) const {
    if (node.op == "decode")
      return {IsYcbcr(node) ? Place::kStage : Place::kView};
    if (node.op == "partner") return {PlaceOf(node.inputs[0])};
    if (IsTheHosts(node)) return {Place::kHost};
    NodeState state{Place::kStage};
    if (!IsGeometric(node.op)) return state;
    const NodeRef& input = node.inputs[0];
    const bool extends =
        PlaceOf(input) == Place::kView && Extends(node.op, states_[input.node]);
    if (extends || IsContinued(input.node)) state = states_[input.node];
    state.resampled |= Resamples(node.op);
    state.mirrored |= node.op == "flip";
    return state;
  }

  absl::Status Visit(uint32_t i) {
    const Node& node = At(i);
    states_[i] = StateOf(node);
    Site site{.node = node,
              .place = states_[i].place,
              .inputs = {},
              .args = {},
              .types = {},
              .type = graph_.types[i][0],
              .decoded = decoded_};
    for (const NodeRef& ref : node.inputs) {
      site.inputs.push_back(PlaceOf(ref));
      site.types.push_back(&TypeOf(ref));
    }
    for (const auto& [name, value] : node.args)
      if (const auto* ref = std::get_if<NodeRef>(&value))
        site.args.push_back(PlaceOf(*ref));
    if (site.place == Place::kStage) {
      site.continues = IsContinued(node.inputs[0].node);
      // Its inputs from the fused kernel cause that kernel to run.
      launched_ |= node.op == "decode";
      for (const Place place : site.inputs) launched_ |= place == Place::kView;
    }
    for (const Gap& gap : gaps_)
      if ((gap.op.empty() || gap.op == node.op) && gap.applies(site))
        return Unimplemented("node {} ({}) {}", i, node.op, gap.why);
    decoded_ |= node.op == "decode";
    return absl::OkStatus();
  }

  const CheckedGraph& graph_;
  const std::span<const Gap> gaps_;
  std::vector<NodeState> states_;  // by node
  std::vector<uint32_t> uses_, user_;
  bool decoded_ = false;
  bool launched_ = false;  // the fused kernel has something to write
};

}  // namespace

absl::Status CheckDeviceForms(const CheckedGraph& graph) {
  return FormChecker(graph, kGaps).Run();
}

absl::Status CheckDecoderForms(const CheckedGraph& graph) {
  if (const absl::Status forms = CheckDeviceForms(graph); !forms.ok())
    return Unimplemented("no GPU can compute this pipeline: {}",
                         Message(forms));
  return FormChecker(graph, kDecoderGaps).Run();
}

}  // namespace leat
