// SPDX-License-Identifier: Apache-2.0
//
// A tf.Example, and each of its features alone: the number of values that are
// written is the declared one.
#include <vector>

#include "tests/fuzz/target.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "worker/source/tfrecord/tf_example.h"

namespace leat::worker::tf_example_fuzz {
namespace {

void Run(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  const std::vector<std::string> names = {"a", "b", "", "label"};
  std::vector<FeatureBytes> features(names.size());
  (void)FindFeatures(bytes, names, features);
  features.push_back(bytes);
  for (const FeatureBytes& feature : features) {
    if (feature.data() == nullptr) continue;
    const auto values = ParseFeature(feature);
    if (!values.ok()) continue;
    fuzz::Require(values->count <= bytes.size());
    using Kind = FeatureValues::Kind;
    const size_t each = values->kind == Kind::kInts     ? 8
                        : values->kind == Kind::kFloats ? 4
                                                        : 0;
    std::vector<std::byte> into(values->count * each);
    if (values->kind == Kind::kInts) CopyInts(*values, into);
    if (values->kind == Kind::kFloats) CopyFloats(*values, into);
  }
}

std::vector<std::string> Seeds() {
  const std::string floats_apart =
      FieldOf(2, VarintOf(1 << 3 | 5) + LittleEndian(1.f) +
                     VarintOf(1 << 3 | 5) + LittleEndian(2.f));
  return {ExampleOf({{"a", BytesFeature({"one", "two"})},
                     {"label", IntFeature({1, -1, 300})},
                     {"b", FloatFeature({0.5f, -1.f})}}),
          ExampleOf({{"", floats_apart}, {"b", IntFeature({})}}),
          FieldOf(3, VarintOf(1 << 3) + VarintOf(7))};
}

const fuzz::Target kTarget(
    {.name = "tf_example", .run = Run, .seeds = Seeds, .runs = 5000});

}  // namespace
}  // namespace leat::worker::tf_example_fuzz
