// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/stages/value_places.h"

#include <random>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

TEST(ValuePlaces, ValuesThatAreNeededTogetherShareNoMemory) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    ValuePlaces places;
    const uint32_t count = 1 + random() % 30;
    uint64_t sum = 0;
    for (uint32_t value = 0; value < count; ++value) {
      const uint64_t bytes = 1 + random() % (random() % 3 == 0 ? 100'000 : 999);
      ASSERT_EQ(places.Add(bytes), value);
      const uint32_t first = random() % 20;
      places.Use(value, first);
      places.Use(value, first + random() % 6);
      sum += places.bytes(value);
    }
    places.Place();
    EXPECT_LE(places.row_bytes(), sum);
    EXPECT_EQ(places.row_bytes() % kValueAlignment, 0u);
    for (uint32_t a = 0; a < count; ++a) {
      EXPECT_EQ(places.at(a) % kValueAlignment, 0u);
      EXPECT_LE(places.at(a) + places.bytes(a), places.row_bytes());
      for (uint32_t b = 0; b < a; ++b)
        EXPECT_TRUE(!places.Meet(a, b) ||
                    places.at(a) + places.bytes(a) <= places.at(b) ||
                    places.at(b) + places.bytes(b) <= places.at(a))
            << a << " " << b;
    }
  }
}

TEST(ValuePlaces, AChainTakesTheMemoryOfTwoValues) {
  ValuePlaces places;
  for (uint32_t value = 0; value < 12; ++value) {
    places.Add(1000);
    places.Use(value, value);
    places.Use(value, value + 1);
  }
  places.Place();
  EXPECT_EQ(places.row_bytes(), 2 * 1024u);
}

}  // namespace
}  // namespace leat::worker
