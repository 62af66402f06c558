// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/chosen_samples.h"

#include <random>
#include <string>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

std::string BytesOf(const std::vector<uint64_t>& samples) {
  std::string bytes;
  uint64_t before = 0;
  for (const uint64_t sample : samples) {
    ChosenSamples::Append(sample, before, &bytes);
    before = sample;
  }
  return bytes;
}

absl::Status ErrorOf(const std::string& bytes, uint64_t items) {
  return ChosenSamples::Parse(bytes, items, 1000).status();
}

TEST(ChosenSamples, TakeTheBytesThatTheHeaderSays) {
  EXPECT_EQ(BytesOf({5, 6, 9, 2}), "\x0a\x02\x06\x0d");
}

TEST(ChosenSamples, AreFoundAtAnyPlace) {
  std::mt19937_64 random(1);
  for (const size_t count : {1, 63, 64, 65, 1000}) {
    std::vector<uint64_t> samples;
    for (size_t i = 0; i < count; ++i)
      samples.push_back(random() >> (16 + random() % 48));
    const auto chosen =
        ChosenSamples::Parse(BytesOf(samples), count, uint64_t{1} << 48);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    ASSERT_EQ(chosen->size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(chosen->At(i), samples[i]);
  }
}

TEST(ChosenSamples, ThatAreMalformedAreAnError) {
  EXPECT_EQ(Message(ErrorOf(BytesOf({5, 1000}), 2)),
            "the index has sample 1000 of a dataset of 1000");
  EXPECT_EQ(Message(ErrorOf("\x09", 1)),  // -5
            "the index has sample 18446744073709551611 of a dataset of 1000");
  EXPECT_EQ(Message(ErrorOf(BytesOf({1, 2, 3}), 2)),
            "the index has 1 bytes behind 2 samples");
  EXPECT_EQ(Message(ErrorOf("\x02\x80", 2)), "the index ends at sample 1 of 2");
  EXPECT_EQ(Message(ErrorOf(std::string(11, '\x80'), 1)),
            "the index ends at sample 0 of 1");
  EXPECT_EQ(Message(ErrorOf("\x02", 1'000'000)),
            "the index claims 1000000 samples in 1 bytes");
  EXPECT_TRUE(absl::IsDataLoss(ErrorOf("", 1)));
  EXPECT_TRUE(ErrorOf("", 0).ok());
}

}  // namespace
}  // namespace leat::worker
