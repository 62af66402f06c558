// SPDX-License-Identifier: Apache-2.0
//
// augment, auto_augment, rand_augment, trivial_augment_wide and equalize: apply
// operations, drawn per sample or given, to its image.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/status.h"
#include "worker/image/operators/args.h"
#include "worker/image/operators/augmenter.h"

namespace leat::worker {
namespace {

using Floats = std::vector<double>;

Augmenter::Options OptionsOf(const CheckedGraph& graph, uint32_t node) {
  Augmenter::Options options;
  const auto is = [&](const char* name, std::string_view value) {
    return ConstantArg<std::string>(graph, node, name) == value;
  };
  if (is("interpolation", "nearest")) options.filter = WarpFilter::kNearest;
  options.dali = is("rule", "dali");
  if (is("border", "fill"))
    options.fill =
        static_cast<float>(ConstantArg<double>(graph, node, "fill_value"));
  else
    options.fill.reset();
  return options;
}

// Returns "rotate(14.5), posterize(4)"; "none" if there is no operation.
std::string TextOf(const AugmentationSteps& steps) {
  std::string text;
  for (const AugmentationStep& step : steps) {
    const AugmentationInfo& info = InfoOf(step.operation);
    text += text.empty() ? "" : ", ";
    text += info.name;
    if (info.least < info.most) text += fmt::format("({})", step.parameter);
  }
  return text.empty() ? "none" : text;
}

// Maps an image to one of the same shape. `call` has the draws and arguments.
class AugmentKernel : public OperatorKernel {
 public:
  explicit AugmentKernel(const Augmenter::Options& options)
      : augmenter_(options) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    RETURN_IF_ERROR(OperatorKernel::Shape(call, result));
    return Augmenter::CheckSize(*result);
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const AugmentationSteps steps, StepsOf(call));
    return augmenter_.Run(steps, *call.inputs[0], result);
  }

  absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const override {
    const Tensor& image = *call.inputs[0];
    RETURN_IF_ERROR(Augmenter::CheckSize(image));
    ASSIGN_OR_RETURN(const AugmentationSteps steps, StepsOf(call));
    AugmentForm form;
    for (const AugmentationStep& step : steps) {
      ASSIGN_OR_RETURN(AugmentationForm one, augmenter_.FormOf(step, image));
      form.operations.push_back(std::move(one));
    }
    return form;
  }

 private:
  virtual absl::StatusOr<AugmentationSteps> StepsOf(
      const OperatorCall& call) const = 0;

  const Augmenter augmenter_;
};

class Augment final : public AugmentKernel {
 public:
  Augment(const CheckedGraph& graph, uint32_t node)
      : AugmentKernel(OptionsOf(graph, node)),
        info_(InfoOf(*ParseAugmentation(
            ConstantArg<std::string>(graph, node, "operation")))),
        magnitude_(FloatArg::Of(graph, node, "magnitude")) {}

 private:
  absl::StatusOr<AugmentationSteps> StepsOf(
      const OperatorCall& call) const override {
    ASSIGN_OR_RETURN(const double magnitude, magnitude_.In(call));
    if (info_.least < info_.most &&
        !(magnitude >= info_.least && magnitude <= info_.most))
      return InvalidArgument(
          "argument \"magnitude\" is {}, want {} to {} for operation \"{}\"",
          magnitude, info_.least, info_.most, info_.name);
    return AugmentationSteps{{info_.operation, static_cast<float>(magnitude)}};
  }

  const AugmentationInfo& info_;
  const FloatArg magnitude_;
};

// --- At random --------------------------------------------------------------

// The distances by which the operations of a policy move.
struct Translations {
  TranslationRange range;
  bool relative;

  static Translations Of(const CheckedGraph& graph, uint32_t node,
                         double pixels) {
    const auto& abs = ConstantArg<Floats>(graph, node, "max_translate_abs");
    const auto& rel = ConstantArg<Floats>(graph, node, "max_translate_rel");
    if (!rel.empty()) return {{rel[0], rel[1]}, true};
    if (!abs.empty()) return {{abs[0], abs[1]}, false};
    return {{pixels, pixels}, false};
  }
};

Augmenter::Options OptionsOf(const CheckedGraph& graph, uint32_t node,
                             const Translations& translations) {
  Augmenter::Options options = OptionsOf(graph, node);
  options.relative = translations.relative;
  return options;
}

std::vector<AugmentationRange> Without(
    std::vector<AugmentationRange> suite,
    const std::vector<std::string>& excluded) {
  std::erase_if(suite, [&](const AugmentationRange& range) {
    return std::find(excluded.begin(), excluded.end(),
                     InfoOf(range.operation).name) != excluded.end();
  });
  return suite;
}

// Applies operations that are drawn for the sample.
class DrawnAugment final : public AugmentKernel {
 public:
  using Draw = std::function<AugmentationSteps(SampleRng*)>;

  DrawnAugment(const Augmenter::Options& options, Draw draw)
      : AugmentKernel(options), draw_(std::move(draw)) {}

  // Two operations may need a second image.
  uint64_t WorkBytes(const OperatorCall& call) const override {
    return call.inputs[0]->bytes();
  }

  std::string Drawn(const OperatorCall& call) const override {
    SampleRng rng = call.rng;
    return TextOf(draw_(&rng));
  }

 private:
  absl::StatusOr<AugmentationSteps> StepsOf(
      const OperatorCall& call) const override {
    SampleRng rng = call.rng;
    return draw_(&rng);
  }

  const Draw draw_;
};

KernelOr MakeAutoAugment(const CheckedGraph& graph, uint32_t node) {
  const auto translations = Translations::Of(graph, node, 250);
  return std::make_shared<DrawnAugment>(
      OptionsOf(graph, node, translations),
      [policy =
           AutoAugmentPolicy(ConstantArg<std::string>(graph, node, "policy"),
                             translations.range)](SampleRng* rng) {
        return DrawAutoAugment(policy, rng);
      });
}

KernelOr MakeRandAugment(const CheckedGraph& graph, uint32_t node) {
  const auto translations = Translations::Of(graph, node, 100);
  return std::make_shared<DrawnAugment>(
      OptionsOf(graph, node, translations),
      [suite = Without(
           RandAugmentSuite(ConstantArg<bool>(graph, node, "monotonic_mag"),
                            translations.range),
           ConstantArg<std::vector<std::string>>(graph, node, "excluded")),
       count = ConstantArg<int64_t>(graph, node, "n"),
       bin = ConstantArg<int64_t>(graph, node, "m"),
       bins = ConstantArg<int64_t>(graph, node, "num_magnitude_bins")](
          SampleRng* rng) {
        return DrawRandAugment(suite, count, bin, bins, rng);
      });
}

KernelOr MakeTrivialAugment(const CheckedGraph& graph, uint32_t node) {
  const auto translations = Translations::Of(graph, node, 32);
  return std::make_shared<DrawnAugment>(
      OptionsOf(graph, node, translations),
      [suite = Without(
           TrivialAugmentSuite(translations.range),
           ConstantArg<std::vector<std::string>>(graph, node, "excluded")),
       bins = ConstantArg<int64_t>(graph, node, "num_magnitude_bins")](
          SampleRng* rng) {
        return AugmentationSteps{DrawTrivialAugment(suite, bins, rng)};
      });
}

class EqualizeKernel final : public OperatorKernel {
 public:
  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    Equalize(*call.inputs[0], result);
    return absl::OkStatus();
  }
  absl::StatusOr<DeviceForm> FormOf(const OperatorCall&) const override {
    return AugmentForm{{ByteTableForm{.kind = ByteMap::kEqualize}}};
  }
};

constexpr KernelMaker kAugmentMakers[] = {
    {"augment", Make<Augment>},
    {"auto_augment", MakeAutoAugment},
    {"equalize", Make<EqualizeKernel>},
    {"rand_augment", MakeRandAugment},
    {"trivial_augment_wide", MakeTrivialAugment},
};

}  // namespace

constinit const KernelTable kAugmentKernels = kAugmentMakers;

}  // namespace leat::worker
