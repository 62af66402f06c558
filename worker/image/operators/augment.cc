// SPDX-License-Identifier: Apache-2.0
//
// augment, auto_augment, rand_augment, trivial_augment_wide and equalize: apply
// operations, drawn per sample or given, to its image.
#include "worker/image/operators/augment.h"

#include <algorithm>
#include <cmath>
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

class RandAugment final : public AugmentKernel {
 public:
  RandAugment(const CheckedGraph& graph, uint32_t node,
              const Translations& translations)
      : AugmentKernel(OptionsOf(graph, node, translations)),
        suite_(Without(
            RandAugmentSuite(ConstantArg<bool>(graph, node, "monotonic_mag"),
                             translations.range),
            ConstantArg<std::vector<std::string>>(graph, node, "excluded"))),
        count_(ConstantArg<int64_t>(graph, node, "n")),
        bin_(ConstantArg<int64_t>(graph, node, "m")),
        bins_(ConstantArg<int64_t>(graph, node, "num_magnitude_bins")) {}

  std::string Drawn(const OperatorCall& call) const override {
    return TextOf(Draw(call.rng));
  }

 private:
  AugmentationSteps Draw(SampleRng rng) const {
    return DrawRandAugment(suite_, count_, bin_, bins_, &rng);
  }
  absl::StatusOr<AugmentationSteps> StepsOf(
      const OperatorCall& call) const override {
    return Draw(call.rng);
  }

  const std::vector<AugmentationRange> suite_;
  const int64_t count_, bin_, bins_;
};

class TrivialAugment final : public AugmentKernel {
 public:
  TrivialAugment(const CheckedGraph& graph, uint32_t node,
                 const Translations& translations)
      : AugmentKernel(OptionsOf(graph, node, translations)),
        suite_(Without(
            TrivialAugmentSuite(translations.range),
            ConstantArg<std::vector<std::string>>(graph, node, "excluded"))),
        bins_(ConstantArg<int64_t>(graph, node, "num_magnitude_bins")) {}

  std::string Drawn(const OperatorCall& call) const override {
    return TextOf(Draw(call.rng));
  }

 private:
  AugmentationSteps Draw(SampleRng rng) const {
    return AugmentationSteps{DrawTrivialAugment(suite_, bins_, &rng)};
  }
  absl::StatusOr<AugmentationSteps> StepsOf(
      const OperatorCall& call) const override {
    return Draw(call.rng);
  }

  const std::vector<AugmentationRange> suite_;
  const int64_t bins_;
};

class AutoAugment final : public AugmentKernel {
 public:
  AutoAugment(const CheckedGraph& graph, uint32_t node,
              const Translations& translations)
      : AugmentKernel(OptionsOf(graph, node, translations)),
        policy_(
            AutoAugmentPolicy(ConstantArg<std::string>(graph, node, "policy"),
                              translations.range)) {}

  std::string Drawn(const OperatorCall& call) const override {
    return TextOf(Draw(call.rng));
  }

 private:
  AugmentationSteps Draw(SampleRng rng) const {
    return DrawAutoAugment(policy_, &rng);
  }
  absl::StatusOr<AugmentationSteps> StepsOf(
      const OperatorCall& call) const override {
    return Draw(call.rng);
  }

  const std::vector<SubPolicy> policy_;
};

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

}  // namespace

KernelOr MakeAugment(const CheckedGraph& graph, uint32_t node) {
  return std::make_shared<Augment>(graph, node);
}
KernelOr MakeAutoAugment(const CheckedGraph& graph, uint32_t node) {
  return std::make_shared<AutoAugment>(graph, node,
                                       Translations::Of(graph, node, 250));
}
KernelOr MakeEqualize(const CheckedGraph&, uint32_t) {
  return std::make_shared<EqualizeKernel>();
}
KernelOr MakeRandAugment(const CheckedGraph& graph, uint32_t node) {
  return std::make_shared<RandAugment>(graph, node,
                                       Translations::Of(graph, node, 100));
}
KernelOr MakeTrivialAugment(const CheckedGraph& graph, uint32_t node) {
  return std::make_shared<TrivialAugment>(graph, node,
                                          Translations::Of(graph, node, 32));
}

}  // namespace leat::worker
