// SPDX-License-Identifier: Apache-2.0
#include "core/operators/augmentation.h"

#include <utility>

namespace leat {
namespace {

using enum Augmentation;

constexpr double kMostFactor = 1e6;  // of brightness, contrast, ...

constexpr AugmentationInfo kInfos[] = {
    {kAutoContrast, "auto_contrast", 0, 0},
    {kBrightness, "brightness", -kMostFactor, kMostFactor},
    {kColor, "color", -kMostFactor, kMostFactor},
    {kContrast, "contrast", -kMostFactor, kMostFactor},
    {kEqualize, "equalize", 0, 0},
    {kIdentity, "identity", 0, 0},
    {kInvert, "invert", 0, 0},
    {kPosterize, "posterize", 0, 8},
    {kRotate, "rotate", -1e6, 1e6},
    {kSharpness, "sharpness", -kMostFactor, kMostFactor},
    {kShearX, "shear_x", -1e3, 1e3},
    {kShearY, "shear_y", -1e3, 1e3},
    {kSolarize, "solarize", 0, 256},
    {kSolarizeAdd, "solarize_add", 0, 127},
    {kTranslateX, "translate_x", -1e6, 1e6},
    {kTranslateY, "translate_y", -1e6, 1e6},
};

AugmentationRange Of(Augmentation operation) { return {operation}; }
AugmentationRange Of(Augmentation operation, double first, double last) {
  return {operation, first, last};
}
AugmentationRange Signed(Augmentation operation, double last) {
  return {operation, 0, last, true};
}
// Brightness, contrast, ...: the parameter is 1 - magnitude or 1 + magnitude.
AugmentationRange AroundOne(Augmentation operation, double first, double last) {
  return {operation, first, last, true, true};
}

// Draws an index below `count`.
size_t OneOf(size_t count, SampleRng* rng) {
  return static_cast<size_t>((uint64_t{rng->NextU32()} * count) >> 32);
}
bool Flip(SampleRng* rng) { return rng->NextU32() >> 31 != 0; }

// --- Policies ---------------------------------------------------------------

// The ranges that the policies of AutoAugment share.
class Ranges {
 public:
  explicit Ranges(TranslationRange translation) : translation_(translation) {}

  AugmentationRange Range(Augmentation operation) const {
    switch (operation) {
      case kShearX:
      case kShearY:
        return Signed(operation, 0.3);
      case kTranslateX:
        return Signed(operation, translation_.width);
      case kTranslateY:
        return Signed(operation, translation_.height);
      case kRotate:
        return Signed(operation, 30);
      case kBrightness:
      case kColor:
      case kContrast:
      case kSharpness:
        return Of(operation, 0.1, 1.9);
      case kPosterize:
        return Of(operation, 0, 4);
      case kSolarize:
        return Of(operation, 0, 256);
      case kSolarizeAdd:
        return Of(operation, 0, 110);
      default:
        return Of(operation);
    }
  }

 private:
  const TranslationRange translation_;
};

// An entry of the tables below: the bin is absent if the operation has no
// magnitude, and a missing stage is kIdentity.
struct StageEntry {
  Augmentation operation = kIdentity;
  float probability = 0;
  int bin = 0;
};
struct PolicyEntry {
  StageEntry first, second;
};

constexpr PolicyEntry kImageNet[] = {
    {{kEqualize, .8f}, {kShearY, .8f, 4}},
    {{kColor, .4f, 9}, {kEqualize, .6f}},
    {{kColor, .4f, 1}, {kRotate, .6f, 8}},
    {{kSolarize, .8f, 3}, {kEqualize, .4f}},
    {{kSolarize, .4f, 2}, {kSolarize, .6f, 2}},
    {{kColor, .2f, 0}, {kEqualize, .8f}},
    {{kEqualize, .4f}, {kSolarizeAdd, .8f, 3}},
    {{kShearX, .2f, 9}, {kRotate, .6f, 8}},
    {{kColor, .6f, 1}, {kEqualize, 1}},
    {{kInvert, .4f}, {kRotate, .6f, 0}},
    {{kEqualize, 1}, {kShearY, .6f, 3}},
    {{kColor, .4f, 7}, {kEqualize, .6f}},
    {{kPosterize, .4f, 6}, {kAutoContrast, .4f}},
    {{kSolarize, .6f, 8}, {kColor, .6f, 9}},
    {{kSolarize, .2f, 4}, {kRotate, .8f, 9}},
    {{kRotate, 1, 7}, {kTranslateY, .8f, 9}},
    {{kSolarize, .8f, 4}, {}},
    {{kShearY, .8f, 0}, {kColor, .6f, 4}},
    {{kColor, 1, 0}, {kRotate, .6f, 2}},
    {{kEqualize, .8f}, {}},
    {{kEqualize, 1}, {kAutoContrast, .6f}},
    {{kShearY, .4f, 7}, {kSolarizeAdd, .6f, 7}},
    {{kPosterize, .8f, 2}, {kSolarize, .6f, 10}},
    {{kSolarize, .6f, 8}, {kEqualize, .6f}},
    {{kColor, .8f, 6}, {kRotate, .4f, 5}},
};

constexpr PolicyEntry kReducedCifar10[] = {
    {{kInvert, .1f}, {kContrast, .2f, 6}},
    {{kRotate, .7f, 2}, {kTranslateX, .3f, 9}},
    {{kSharpness, .8f, 1}, {kSharpness, .9f, 3}},
    {{kShearY, .5f, 8}, {kTranslateY, .7f, 9}},
    {{kAutoContrast, .5f}, {kEqualize, .9f}},
    {{kShearY, .2f, 7}, {kPosterize, .3f, 7}},
    {{kColor, .4f, 3}, {kBrightness, .6f, 7}},
    {{kSharpness, .3f, 9}, {kBrightness, .7f, 9}},
    {{kEqualize, .6f}, {kEqualize, .5f}},
    {{kContrast, .6f, 7}, {kSharpness, .6f, 5}},
    {{kColor, .7f, 7}, {kTranslateX, .5f, 8}},
    {{kEqualize, .3f}, {kAutoContrast, .4f}},
    {{kTranslateY, .4f, 3}, {kSharpness, .2f, 6}},
    {{kBrightness, .9f, 6}, {kColor, .2f, 8}},
    {{kSolarize, .5f, 2}, {}},
    {{kEqualize, .2f}, {kAutoContrast, .6f}},
    {{kEqualize, .2f}, {kEqualize, .6f}},
    {{kColor, .9f, 9}, {kEqualize, .6f}},
    {{kAutoContrast, .8f}, {kSolarize, .2f, 8}},
    {{kBrightness, .1f, 3}, {kColor, .7f, 0}},
    {{kSolarize, .4f, 5}, {kAutoContrast, .9f}},
    {{kTranslateY, .9f, 9}, {kTranslateY, .7f, 9}},
    {{kAutoContrast, .9f}, {kSolarize, .8f, 3}},
    {{kEqualize, .8f}, {kInvert, .1f}},
    {{kTranslateY, .7f, 9}, {kAutoContrast, .9f}},
};

constexpr PolicyEntry kReducedImageNet[] = {
    {{kPosterize, .4f, 8}, {kRotate, .6f, 9}},
    {{kSolarize, .6f, 5}, {kAutoContrast, .6f}},
    {{kEqualize, .8f}, {kEqualize, .6f}},
    {{kPosterize, .6f, 7}, {kPosterize, .6f, 6}},
    {{kEqualize, .4f}, {kSolarize, .2f, 4}},
    {{kEqualize, .4f}, {kRotate, .8f, 8}},
    {{kSolarize, .6f, 3}, {kEqualize, .6f}},
    {{kPosterize, .8f, 5}, {kEqualize, 1}},
    {{kRotate, .2f, 3}, {kSolarize, .6f, 8}},
    {{kEqualize, .6f}, {kPosterize, .4f, 6}},
    {{kRotate, .8f, 8}, {kColor, .4f, 0}},
    {{kRotate, .4f, 9}, {kEqualize, .6f}},
    {{kEqualize, .8f}, {}},
    {{kInvert, .6f}, {kEqualize, 1}},
    {{kColor, .6f, 4}, {kContrast, 1, 8}},
    {{kRotate, .8f, 8}, {kColor, 1, 2}},
    {{kColor, .8f, 8}, {kSolarize, .8f, 7}},
    {{kSharpness, .4f, 7}, {kInvert, .6f}},
    {{kShearX, .6f, 5}, {kEqualize, 1}},
    {{kColor, .4f, 0}, {kEqualize, .6f}},
    {{kEqualize, .4f}, {kSolarize, .2f, 4}},
    {{kSolarize, .6f, 5}, {kAutoContrast, .6f}},
    {{kInvert, .6f}, {kEqualize, 1}},
    {{kColor, .6f, 4}, {kContrast, 1, 8}},
    {{kEqualize, .8f}, {kEqualize, .6f}},
};

constexpr PolicyEntry kSvhn[] = {
    {{kShearX, .9f, 4}, {kInvert, .2f}},
    {{kShearY, .9f, 8}, {kInvert, .7f}},
    {{kEqualize, .6f}, {kSolarize, .6f, 6}},
    {{kInvert, .9f}, {kEqualize, .6f}},
    {{kEqualize, .6f}, {kRotate, .9f, 3}},
    {{kShearX, .9f, 4}, {kAutoContrast, .8f}},
    {{kShearY, .9f, 8}, {kInvert, .4f}},
    {{kShearY, .9f, 5}, {kSolarize, .2f, 6}},
    {{kInvert, .9f}, {kAutoContrast, .8f}},
    {{kEqualize, .6f}, {kRotate, .9f, 3}},
    {{kShearX, .9f, 4}, {kSolarize, .3f, 3}},
    {{kShearY, .8f, 8}, {kInvert, .7f}},
    {{kEqualize, .9f}, {kTranslateY, .6f, 6}},
    {{kInvert, .9f}, {kEqualize, .6f}},
    {{kContrast, .3f, 3}, {kRotate, .8f, 4}},
    {{kInvert, .8f}, {}},
    {{kShearY, .7f, 6}, {kSolarize, .4f, 8}},
    {{kInvert, .6f}, {kRotate, .8f, 4}},
    {{kShearY, .3f, 7}, {kTranslateX, .9f, 3}},
    {{kShearX, .1f, 6}, {kInvert, .6f}},
    {{kSolarize, .7f, 2}, {kTranslateY, .6f, 7}},
    {{kShearY, .8f, 4}, {kInvert, .8f}},
    {{kShearX, .7f, 9}, {kTranslateY, .8f, 3}},
    {{kShearY, .8f, 5}, {kAutoContrast, .7f}},
    {{kShearX, .7f, 2}, {kInvert, .1f}},
};

constexpr std::string_view kPolicyNames[] = {"image_net", "reduced_cifar10",
                                             "reduced_image_net", "svhn"};

std::span<const PolicyEntry> EntriesOf(std::string_view policy) {
  if (policy == kPolicyNames[0]) return kImageNet;
  if (policy == kPolicyNames[1]) return kReducedCifar10;
  if (policy == kPolicyNames[2]) return kReducedImageNet;
  return kSvhn;
}

}  // namespace

std::span<const AugmentationInfo> Augmentations() { return kInfos; }

const AugmentationInfo& InfoOf(Augmentation operation) {
  return kInfos[static_cast<size_t>(operation)];
}

std::optional<Augmentation> ParseAugmentation(std::string_view name) {
  for (const AugmentationInfo& info : kInfos)
    if (info.name == name) return info.operation;
  return std::nullopt;
}

AugmentationStep AugmentationRange::At(int64_t bin, int64_t bins,
                                       bool negative) const {
  // The same as numpy.linspace, converted to float.
  double exact = first;
  if (bins > 1)
    exact = bin == bins - 1
                ? last
                : static_cast<double>(bin) *
                          ((last - first) / static_cast<double>(bins - 1)) +
                      first;
  auto magnitude = static_cast<float>(exact);
  if (negative && signed_at_random) magnitude = -magnitude;
  return {operation, around_one ? 1 + magnitude : magnitude};
}

std::vector<AugmentationRange> RandAugmentSuite(bool monotonic,
                                                TranslationRange translation) {
  std::vector<AugmentationRange> suite = {
      Signed(kTranslateX, translation.width),
      Signed(kTranslateY, translation.height),
      Signed(kShearX, 0.3),
      Signed(kShearY, 0.3),
      Signed(kRotate, 30),
  };
  for (const Augmentation enhance :
       {kBrightness, kContrast, kColor, kSharpness})
    suite.push_back(monotonic ? AroundOne(enhance, 0, 0.9)
                              : Of(enhance, 0.1, 1.9));
  suite.push_back(monotonic ? Of(kPosterize, 8, 4) : Of(kPosterize, 0, 4));
  suite.push_back(monotonic ? Of(kSolarize, 256, 0) : Of(kSolarize, 0, 256));
  for (const Augmentation plain : {kEqualize, kAutoContrast, kIdentity})
    suite.push_back(Of(plain));
  return suite;
}

std::vector<AugmentationRange> TrivialAugmentSuite(
    TranslationRange translation) {
  return {
      Signed(kTranslateX, translation.width),
      Signed(kTranslateY, translation.height),
      Signed(kShearX, 0.99),
      Signed(kShearY, 0.99),
      Signed(kRotate, 135),
      AroundOne(kBrightness, 0.01, 0.99),
      AroundOne(kContrast, 0.01, 0.99),
      AroundOne(kColor, 0.01, 0.99),
      AroundOne(kSharpness, 0.01, 0.99),
      Of(kPosterize, 8, 2),
      Of(kSolarize, 256, 0),
      Of(kEqualize),
      Of(kAutoContrast),
      Of(kIdentity),
  };
}

std::span<const std::string_view> AutoAugmentPolicies() { return kPolicyNames; }

bool HasTranslations(std::string_view policy) {
  for (const PolicyEntry& entry : EntriesOf(policy))
    for (const StageEntry& stage : {entry.first, entry.second})
      if (stage.operation == kTranslateX || stage.operation == kTranslateY)
        return true;
  return false;
}

std::vector<SubPolicy> AutoAugmentPolicy(std::string_view policy,
                                         TranslationRange translation) {
  const Ranges ranges(translation);
  const auto stage = [&](const StageEntry& entry) {
    return PolicyStage{ranges.Range(entry.operation), entry.probability,
                       entry.bin};
  };
  std::vector<SubPolicy> result;
  for (const PolicyEntry& entry : EntriesOf(policy))
    result.push_back({{stage(entry.first), stage(entry.second)}});
  return result;
}

AugmentationSteps DrawRandAugment(std::span<const AugmentationRange> suite,
                                  int64_t count, int64_t bin, int64_t bins,
                                  SampleRng* rng) {
  AugmentationSteps steps;
  for (int64_t i = 0; i < count; ++i) {
    const AugmentationRange& range = suite[OneOf(suite.size(), rng)];
    steps.push_back(range.At(bin, bins, Flip(rng)));
  }
  return steps;
}

AugmentationStep DrawTrivialAugment(std::span<const AugmentationRange> suite,
                                    int64_t bins, SampleRng* rng) {
  const AugmentationRange& range = suite[OneOf(suite.size(), rng)];
  const auto bin = static_cast<int64_t>(OneOf(static_cast<size_t>(bins), rng));
  return range.At(bin, bins, Flip(rng));
}

AugmentationSteps DrawAutoAugment(std::span<const SubPolicy> policy,
                                  SampleRng* rng) {
  AugmentationSteps steps;
  const SubPolicy& chosen = policy[OneOf(policy.size(), rng)];
  for (const PolicyStage& stage : chosen.stages) {
    const bool done = rng->NextFloat() < stage.probability;
    const bool negative = Flip(rng);
    if (done) steps.push_back(stage.range.At(stage.bin, kPolicyBins, negative));
  }
  return steps;
}

}  // namespace leat
