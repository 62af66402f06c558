// SPDX-License-Identifier: Apache-2.0
//
// RandomKeeper: a keeper of forms for tests.
#pragma once

#include <cstddef>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "worker/image/jpeg/forms/keeper.h"

namespace leat::worker {

// Keeps all forms that are made, and answers at random.
class RandomKeeper final : public FormKeeper {
 public:
  explicit RandomKeeper(uint32_t seed) : random_(seed) {}

  FormWish Begin(std::span<const std::byte> file, DecodeClass) override {
    file_ = file.data();
    FormWish wish;
    wish.max_bytes = random_() % 4 == 0 ? 100 : size_t{1} << 30;
    const std::vector<KeptForm>& kept = kept_[file_];
    if (random_() % 2 == 0 && !kept.empty())
      wish.use = kept[random_() % kept.size()];
    else if (random_() % 3 == 0)
      wish.make = {.pixels = true};
    else if (random_() % 2 == 0)
      wish.grow = true;
    else
      wish.make = {.seek_index = random_() % 2 == 0,
                   .coefficients = random_() % 2 == 0};
    if (wish.use.form != nullptr && wish.use.kind == JpegFormKind::kSeekIndex)
      wish.grow = random_() % 4 != 0;
    wished_ = wish;
    return wish;
  }
  void End(FormAnswer answer) override {
    if (wished_.use.form != nullptr &&
        wished_.use.kind == JpegFormKind::kPixels && !answer.used) {
      ++other_colours;
    } else if (!wished_.use.whole && !answer.used) {
      EXPECT_TRUE(!wished_.grow || answer.refused.seek_index)
          << "below what is known the file is damaged";
    } else if (wished_.use.form != nullptr) {
      EXPECT_EQ(answer.used, wished_.use.kind);
      ++used;
    } else {
      EXPECT_FALSE(answer.used.has_value());
    }
    for (const JpegFormKind kind : kJpegFormKinds) {
      size_t answers = answer.refused.Has(kind);
      for (const KeptForm& form : answer.made) answers += form.kind == kind;
      if (wished_.grow && kind == JpegFormKind::kSeekIndex)
        EXPECT_LE(answers, 1u);
      else
        EXPECT_EQ(answers, wished_.make.Has(kind) ? 1u : 0u);
      refused += answer.refused.Has(kind);
    }
    for (KeptForm& form : answer.made) {
      EXPECT_GT(form.bytes, 48u);
      ++made;
      grown += wished_.grow;
      kept_[file_].push_back(std::move(form));
    }
  }

  int used = 0, made = 0, grown = 0, refused = 0, other_colours = 0;

 private:
  std::mt19937 random_;
  std::map<const std::byte*, std::vector<KeptForm>> kept_;
  const std::byte* file_ = nullptr;
  FormWish wished_;
};

}  // namespace leat::worker
