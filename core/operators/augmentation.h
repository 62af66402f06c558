// SPDX-License-Identifier: Apache-2.0
//
// Automatic augmentation: the operations, how strong each is at a magnitude,
// and which of them a policy draws for a sample. Only numbers are computed
// here: worker/image/ computes the pixels.
//
// All tables are from DALI's nvidia.dali.auto_aug, which follows AutoAugment
// (arXiv 1805.09501), RandAugment (1909.13719) and TrivialAugment (2103.10158).
// The magnitudes of an operation are `bins` numbers at equal distances over a
// range; a magnitude determines the operation's parameter, which fn.augment
// calls `magnitude`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/random/philox.h"

namespace leat {

// Operations are named in pipelines.
enum class Augmentation : uint8_t {
  kAutoContrast,
  kBrightness,
  kColor,
  kContrast,
  kEqualize,
  kIdentity,
  kInvert,
  kPosterize,
  kRotate,
  kSharpness,
  kShearX,
  kShearY,
  kSolarize,
  kSolarizeAdd,
  kTranslateX,
  kTranslateY,
};

struct AugmentationInfo {
  Augmentation operation;
  std::string_view name;
  // The range of the parameter, inclusive. Both 0: the operation has no
  // parameter.
  double least, most;
};

// Returns all operations, in the order of the enumeration.
std::span<const AugmentationInfo> Augmentations();
const AugmentationInfo& InfoOf(Augmentation operation);
std::optional<Augmentation> ParseAugmentation(std::string_view name);

// One operation on a sample's image.
struct AugmentationStep {
  Augmentation operation = Augmentation::kIdentity;
  float parameter = 0;
  friend bool operator==(const AugmentationStep&,
                         const AugmentationStep&) = default;
};
using AugmentationSteps = absl::InlinedVector<AugmentationStep, 4>;

// An operation of a policy, with the range of its magnitudes.
struct AugmentationRange {
  Augmentation operation;
  double first = 0, last = 0;  // magnitudes of the first and the last bin
  bool signed_at_random = false;
  bool around_one = false;  // the parameter is 1 + magnitude

  // REQUIRES: 0 ≤ bin < bins.
  AugmentationStep At(int64_t bin, int64_t bins, bool negative) const;
};

// The largest translations, in pixels or as fractions of the image's sides.
struct TranslationRange {
  double height, width;
};

// The operations of RandAugment. `monotonic`: a larger bin is a stronger
// operation.
std::vector<AugmentationRange> RandAugmentSuite(bool monotonic,
                                                TranslationRange translation);
std::vector<AugmentationRange> TrivialAugmentSuite(
    TranslationRange translation);

struct PolicyStage {
  AugmentationRange range;
  float probability = 0;  // of applying the operation
  int64_t bin = 0;
};
struct SubPolicy {
  PolicyStage stages[2];  // applied in this order
};
inline constexpr int64_t kPolicyBins = 11;
// "image_net", "reduced_cifar10", "reduced_image_net", "svhn".
std::span<const std::string_view> AutoAugmentPolicies();
// Returns false for a policy without translations.
bool HasTranslations(std::string_view policy);
// REQUIRES: a name of AutoAugmentPolicies().
std::vector<SubPolicy> AutoAugmentPolicy(std::string_view policy,
                                         TranslationRange translation);

// --- Draws ------------------------------------------------------------------
//
// The number of random words per sample is constant, whatever is drawn. The
// index among `count` things is word · count / 2^32: probabilities are equal to
// within count / 2^32.

// Draws `count` operations of the suite, all at `bin`: two words each.
AugmentationSteps DrawRandAugment(std::span<const AugmentationRange> suite,
                                  int64_t count, int64_t bin, int64_t bins,
                                  SampleRng* rng);
// Draws one operation of the suite at one of the bins: three words.
AugmentationStep DrawTrivialAugment(std::span<const AugmentationRange> suite,
                                    int64_t bins, SampleRng* rng);
// Draws one sub-policy, and whether each stage is applied: five words.
AugmentationSteps DrawAutoAugment(std::span<const SubPolicy> policy,
                                  SampleRng* rng);

}  // namespace leat
