// SPDX-License-Identifier: Apache-2.0
//
// Turns a checked graph into a list of steps. Chains are found by walking from
// a decode, or from a geometric operator, to the only user of its value, as
// long as the chain can take it.
#include <algorithm>
#include <map>
#include <utility>

#include "core/pipeline/reduction.h"
#include "core/status.h"
#include "worker/image/formulas/exact_math.h"
#include "worker/image/program/program.h"
#include "worker/image/program/scales_check.h"

namespace leat::worker {
namespace {

class Compiler {
 public:
  Compiler(const CheckedGraph& checked, bool fuse)
      : checked_(checked),
        graph_(checked.graph),
        types_(checked.types),
        fuse_(fuse),
        uses_(graph_.nodes.size()),
        user_(graph_.nodes.size()),
        absorbed_(graph_.nodes.size()) {
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i)
      ForEachRef(i, [&](const NodeRef& ref) { Use(ref, i); });
    for (const auto& [name, ref] : graph_.outputs) Use(ref, 0);
  }

  absl::StatusOr<std::vector<Step>> Run() {
    // A fused step runs where its last operator would.
    std::map<uint32_t, Step> steps;
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (i == checked_.reader || i == checked_.stored || absorbed_[i])
        continue;
      ASSIGN_OR_RETURN(Step step, Compile(i));
      step.dtype = types_[step.node][0].dtype;
      step.needs = NeedsOf(i, step);
      steps.emplace(step.node, std::move(step));
    }
    std::vector<Step> list;
    for (auto& [node, step] : steps) list.push_back(std::move(step));
    return list;
  }

 private:
  template <class T>
  const T& Get(uint32_t node, const char* name) const {
    return std::get<T>(graph_.nodes[node].args.at(name));
  }
  template <class T>
  PerSampleArg<T> GetPerSample(uint32_t node, const char* name) const {
    const Value& value = graph_.nodes[node].args.at(name);
    if (const auto* ref = std::get_if<NodeRef>(&value))
      return {T{}, ValueIndex(checked_, *ref)};
    return {std::get<T>(value), std::nullopt};
  }

  const ValueType& TypeOf(const NodeRef& ref) const {
    return types_[ref.node][ref.output];
  }

  template <class Function>
  void ForEachRef(uint32_t node, Function function) const {
    for (const NodeRef& ref : graph_.nodes[node].inputs) function(ref);
    for (const auto& [name, value] : graph_.nodes[node].args)
      if (const auto* ref = std::get_if<NodeRef>(&value)) function(*ref);
  }

  // The step consists of `first` and the operators that it absorbed.
  std::vector<uint32_t> NeedsOf(uint32_t first, const Step& step) const {
    std::vector<uint32_t> needs;
    if (std::holds_alternative<WhereStep>(step.what) ||
        std::holds_alternative<PartnerStep>(step.what))
      return needs;
    for (uint32_t node = first, before = kNoValue;; node = user_[node]) {
      ForEachRef(node, [&](const NodeRef& ref) {
        if (ref.node != before) needs.push_back(ValueIndex(checked_, ref));
      });
      if (node == step.node) return needs;
      before = node;
    }
  }

  // True if node i is a `where` whose condition is one flag per sample, and
  // every size of the result that is not known before is a size of the chosen
  // value.
  bool ChoosesOne(uint32_t i) const {
    const Node& node = graph_.nodes[i];
    if (node.op != "where" || !TypeOf(node.inputs[0]).shape.empty())
      return false;
    const Shape& shape = types_[i][0].shape;
    for (const NodeRef& side : {node.inputs[1], node.inputs[2]}) {
      const Shape& own = TypeOf(side).shape;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] >= 0) continue;
        const size_t missing = shape.size() - own.size();
        if (axis < missing || own[axis - missing] >= 0) return false;
      }
    }
    return true;
  }

  absl::StatusOr<KernelStep> MakeKernel(uint32_t i) const {
    const Node& node = graph_.nodes[i];
    KernelStep kernel;
    kernel.op = node.op;
    for (const NodeRef& ref : node.inputs)
      kernel.inputs.push_back(ValueIndex(checked_, ref));
    for (const ArgInfo& arg : FindOperator(node.op)->args) {
      if (!arg.per_sample) continue;
      const auto* ref = std::get_if<NodeRef>(&node.args.at(arg.name));
      kernel.args.push_back(ref ? ValueIndex(checked_, *ref) : kNoValue);
    }
    const auto per = node.args.find("per");
    kernel.per_batch =
        per != node.args.end() && std::get<std::string>(per->second) == "batch";
    ASSIGN_OR_RETURN(kernel.kernel, MakeOperatorKernel(checked_, i));
    if (kernel.kernel == nullptr)
      return Unimplemented("operator {} has no kernel on the CPU", node.op);
    return kernel;
  }

  void Use(const NodeRef& ref, uint32_t by) {
    ++uses_[ref.node];
    user_[ref.node] = by;
  }

  static bool IsImageOp(const std::string& op) {
    return op == "random_resized_crop" || op == "resize" || op == "crop" ||
           op == "random_crop" || op == "window" || op == "flip";
  }

  absl::StatusOr<Step> Compile(uint32_t i) {
    const Node& node = graph_.nodes[i];
    Step step;
    step.node = i;
    const uint32_t input =
        node.inputs.empty() ? 0 : ValueIndex(checked_, node.inputs[0]);
    if (node.op == "decode") {
      const Colours colours = *ParseColours(Get<std::string>(i, "output"));
      DecodeStep decode{.input = input,
                        .gray = colours == Colours::kGray,
                        .orient = Get<bool>(i, "orient"),
                        .partial = fuse_,
                        .reduce = IsReduced(node),
                        .ops = {}};
      if (decode.colours() != colours)
        decode.ops.push_back(
            {.kind = ImageOp::Kind::kColours, .node = i, .colours = colours});
      step.node = Chain(i, decode.reduce, &decode.ops);
      step.what = std::move(decode);
    } else if (IsImageOp(node.op)) {
      ImageStep image{input, {MakeImageOp(i)}};
      step.node = Chain(i, false, &image.ops);
      step.what = std::move(image);
    } else if (node.op == "normalize") {
      step.what = NormalizeStep{
          input, Normalizer(Get<std::vector<double>>(i, "mean"),
                            Get<std::vector<double>>(i, "std"),
                            Get<double>(i, "scale"), Get<double>(i, "shift"),
                            static_cast<int>(TypeOf(node.inputs[0]).shape[2]),
                            types_[i][0].dtype)};
    } else if (node.op == "cast") {
      step.what = CastStep{input};
    } else if (node.op == "transpose") {
      step.what = TransposeStep{input, Get<std::vector<int64_t>>(i, "perm")};
    } else if (node.op == "coin_flip") {
      step.what = CoinFlipStep{Get<double>(i, "probability")};
    } else if (node.op == "uniform") {
      step.what = UniformStep{Get<double>(i, "low"), Get<double>(i, "high")};
    } else if (node.op == "partner") {
      step.what = PartnerStep{input};
    } else {
      ASSIGN_OR_RETURN(KernelStep kernel, MakeKernel(i));
      if (ChoosesOne(i))
        step.what =
            WhereStep{kernel.inputs[0], kernel.inputs[1], kernel.inputs[2],
                      types_[i][0].shape, std::move(kernel.kernel)};
      else
        step.what = std::move(kernel);
    }
    return step;
  }

  Filters FiltersOf(uint32_t i) const {
    const auto& both = Get<std::string>(i, "interpolation");
    const auto& args = graph_.nodes[i].args;
    const auto filter = [&](const char* name) {
      const bool own =
          args.contains(name) && Get<std::string>(i, name) != "same";
      return *ParseFilter(own ? Get<std::string>(i, name) : both);
    };
    return {filter("min_filter"), filter("mag_filter"),
            Get<bool>(i, "antialias"), Get<std::string>(i, "rule") == "dali"};
  }

  RandomWindow RandomWindowOf(uint32_t i) const {
    const auto& area = Get<std::vector<double>>(i, "area");
    const auto& aspect = Get<std::vector<double>>(i, "aspect");
    return {.least_area = area[0],
            .greatest_area = area[1],
            .least_aspect = aspect[0],
            .greatest_aspect = aspect[1],
            .log_least_aspect = ExactLog(aspect[0]),
            .log_greatest_aspect = ExactLog(aspect[1]),
            .attempts = static_cast<int>(Get<int64_t>(i, "attempts"))};
  }

  ImageOp MakeImageOp(uint32_t i) const {
    const Node& node = graph_.nodes[i];
    ImageOp op;
    op.node = i;
    if (node.op == "flip") {
      op.kind = ImageOp::Kind::kFlip;
      op.horizontal = GetPerSample<bool>(i, "horizontal");
      op.vertical = GetPerSample<bool>(i, "vertical");
      return op;
    }
    if (node.op == "resize") {
      op.kind = ImageOp::Kind::kResize;
      op.resize = *ResizeRuleOf(node);  // Check() has made it before
      if (const char* side = ResizeSideArg(node))
        op.side = GetPerSample<double>(i, side);
      op.filters = FiltersOf(i);
      return op;
    }
    if (node.op == "window") {
      op.kind = ImageOp::Kind::kWindow;
      op.place = WindowRule::Of(node);
      op.pos_y = GetPerSample<double>(i, "y");
      op.pos_x = GetPerSample<double>(i, "x");
      op.height = GetPerSample<double>(i, "height");
      op.width = GetPerSample<double>(i, "width");
      return op;
    }
    if (node.op == "random_crop") {
      op.kind = ImageOp::Kind::kRandomCrop;
      op.window = RandomWindowOf(i);
      return op;
    }
    const auto& size = Get<std::vector<int64_t>>(i, "size");
    op.size = {size[0], size[1]};
    if (node.op == "crop") {
      op.kind = ImageOp::Kind::kCrop;
      op.pos_y = GetPerSample<double>(i, "pos_y");
      op.pos_x = GetPerSample<double>(i, "pos_x");
      return op;
    }
    op.filters = FiltersOf(i);
    op.kind = ImageOp::Kind::kRandomResizedCrop;
    op.window = RandomWindowOf(i);
    return op;
  }

  // Absorbs the operators after `first` that use only its value; without
  // `fuse_`, those up to the resize, if the decode needs it. Returns the last
  // one.
  uint32_t Chain(uint32_t first, bool needs_resize, std::vector<ImageOp>* ops) {
    bool resampled = false, mirrored = false;
    const auto note = [&](const ImageOp& op) {
      resampled |= op.Resamples();
      mirrored |= op.kind == ImageOp::Kind::kFlip;
    };
    for (const ImageOp& op : *ops) note(op);
    uint32_t last = first;
    while ((fuse_ || (needs_resize && !resampled)) && uses_[last] == 1) {
      const uint32_t next = user_[last];
      if (next <= last || !IsImageOp(graph_.nodes[next].op)) break;
      const ImageOp op = MakeImageOp(next);
      if (!op.Extends(resampled, mirrored)) break;
      note(op);
      ops->push_back(op);
      absorbed_[next] = true;
      last = next;
    }
    return last;
  }

  const CheckedGraph& checked_;
  const Graph& graph_;
  const std::vector<std::vector<ValueType>>& types_;
  const bool fuse_;
  std::vector<uint32_t> uses_, user_;
  std::vector<bool> absorbed_;
};

}  // namespace

uint32_t ValueIndex(const CheckedGraph& graph, const NodeRef& ref) {
  if (ref.node != graph.stored) return ref.node;
  return static_cast<uint32_t>(graph.graph.nodes.size()) + ref.output;
}

size_t NumValues(const CheckedGraph& graph) {
  return graph.graph.nodes.size() + graph.types[graph.stored].size();
}

absl::StatusOr<std::vector<Step>> CompileSteps(const CheckedGraph& graph,
                                               bool fuse) {
  return Compiler(graph, fuse).Run();
}

namespace {

// Returns the nodes that the outputs need whatever is chosen, in the order of
// the steps: if a row has several errors, every program reports the same one.
std::vector<uint32_t> NeededAlways(const RowProgram::State& program) {
  std::vector<uint32_t> nodes, values = program.field_values;
  std::vector<bool> met(program.step_of.size());
  while (!values.empty()) {
    const uint32_t value = values.back();
    values.pop_back();
    if (value >= met.size() || met[value]) continue;
    met[value] = true;
    nodes.push_back(value);
    const Step& step = program.steps[program.step_of[value]];
    values.insert(values.end(), step.needs.begin(), step.needs.end());
  }
  std::ranges::sort(nodes, {},
                    [&](uint32_t node) { return program.step_of[node]; });
  return nodes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowProgram>> RowProgram::Compile(
    const CheckedGraph& graph, bool fuse) {
  auto state = std::make_unique<State>();
  state->stored = graph.types[graph.stored];
  state->fields = graph.schema.fields;
  state->places.assign(graph.graph.nodes.size(), -1);
  for (size_t f = 0; f < graph.graph.outputs.size(); ++f) {
    const NodeRef& ref = graph.graph.outputs[f].second;
    state->field_values.push_back(ValueIndex(graph, ref));
    if (ref.node != graph.stored && state->places[ref.node] < 0)
      state->places[ref.node] = static_cast<int>(f);
  }
  ASSIGN_OR_RETURN(state->steps, CompileSteps(graph, fuse));
  state->step_of.assign(graph.graph.nodes.size(), kNoValue);
  for (uint32_t i = 0; i < state->steps.size(); ++i) {
    const Step& step = state->steps[i];
    const auto* const decode = std::get_if<DecodeStep>(&step.what);
    if (decode != nullptr && decode->reduce) RETURN_IF_ERROR(CheckScales());
    state->step_of[step.node] = i;
    if (const auto* partner = std::get_if<PartnerStep>(&step.what))
      state->partnered.push_back(partner->input);
  }
  state->always = NeededAlways(*state);
  state->random = RandomNodes(graph, state->steps);
  return std::unique_ptr<RowProgram>(new RowProgram(std::move(state)));
}

}  // namespace leat::worker
