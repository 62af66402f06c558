// SPDX-License-Identifier: Apache-2.0
#include "worker/image/loops/augment.h"

#include "gtest/gtest.h"
#include "tests/worker/image/operators/augment_support.h"

namespace leat::worker::testing {
namespace {

using Bytes = std::vector<uint8_t>;

TEST(AugmentLoops, AreTheSameWithAndWithoutVectors) {
  const Bytes in = RandomImage({50, 1003, 1}, 9).Values<uint8_t>();
  Bytes a(in.size()), b(in.size());
  const AugmentLoops loops[] = {PlainAugmentLoops(), BestAugmentLoops()};
  const auto same = [&](const auto& run) {
    run(loops[0], a.data());
    run(loops[1], b.data());
    EXPECT_EQ(a, b);
  };
  const size_t count = in.size();
  same([&](const AugmentLoops& l, uint8_t* out) {
    l.mask(in.data(), count, 0xe0, out);
  });
  same([&](const AugmentLoops& l, uint8_t* out) {
    l.solarize(in.data(), count, 120, out);
  });
  same([&](const AugmentLoops& l, uint8_t* out) {
    l.solarize_add(in.data(), count, 90, out);
  });
  for (const float factor : {0.1f, 1.0f, 1.9f, -1e6f, 1e6f})
    same([&](const AugmentLoops& l, uint8_t* out) {
      l.sharpen(in.data() + 3, in.data() + 1006, in.data() + 2009, count - 2012,
                3, SharpnessOf(factor), out);
    });
}

}  // namespace
}  // namespace leat::worker::testing
