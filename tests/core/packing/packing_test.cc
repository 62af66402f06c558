// SPDX-License-Identifier: Apache-2.0
#include "core/packing/packing.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using testing::HasSubstr;

Packing Fit(uint64_t length, PackLonger longer = PackLonger::kCut) {
  return {.how = PackHow::kFit, .length = length, .longer = longer};
}

TEST(PackingTest, ErrorsNameTheFieldItsValueAndWhatIsWanted) {
  const auto error = [](const Packing& packing) {
    return std::string(CheckPacking(packing).message());
  };
  EXPECT_EQ(error({.length = 4096}), "");
  EXPECT_EQ(error({.length = 0}), "pack: length is 0: want 1 to 16777216");
  EXPECT_EQ(error({.length = kMaxPackedLength + 1}),
            "pack: length is 16777217: want 1 to 16777216");
  EXPECT_EQ(error({.length = 8, .overlap = 8}),
            "pack: overlap is 8: want less than length, which is 8");
  EXPECT_EQ(error({.length = 8, .longer = PackLonger::kDrop}),
            "pack: longer is drop, but how=cut cuts every document: want "
            "how=fit with it");
  EXPECT_EQ(error({.length = 8, .max_documents = 3}),
            "pack: max_documents is 3, but how=cut fills every row: want "
            "how=fit with it");
  EXPECT_EQ(error({.how = PackHow::kFit, .length = 8, .max_documents = 65537}),
            "pack: max_documents is 65537: want at most 65536");
  EXPECT_EQ(error({.how = static_cast<PackHow>(2), .length = 8}),
            "pack: how is 2: want cut or fit");
  EXPECT_EQ(error({.how = PackHow::kFit,
                   .length = 8,
                   .longer = static_cast<PackLonger>(3)}),
            "pack: longer is 3: want cut, drop or error");
}

TEST(PackingTest, TheTextNamesEveryField) {
  EXPECT_EQ(PackingText({.how = PackHow::kFit,
                         .length = 4096,
                         .overlap = 1,
                         .longer = PackLonger::kError,
                         .max_documents = 32}),
            "pack(how=fit,length=4096,overlap=1,longer=error,"
            "max_documents=32)");
  EXPECT_EQ(PackingText({.length = 7}),
            "pack(how=cut,length=7,overlap=0,longer=cut,max_documents=0)");
}

TEST(PackingTest, PiecesOfALongDocumentOverlap) {
  Packing packing = Fit(5);
  packing.overlap = 2;
  const uint64_t expected[] = {0, 1, 1, 1, 1, 1, 2, 2, 2, 3};
  for (uint64_t elements = 0; elements < 10; ++elements) {
    EXPECT_EQ(PiecesOf(packing, 0, elements).value(), expected[elements])
        << elements;
  }
}

TEST(PackingTest, DocumentsThatAreTooLong) {
  EXPECT_EQ(PiecesOf(Fit(5, PackLonger::kDrop), 17, 6).value(), 0u);
  EXPECT_THAT(
      std::string(
          PiecesOf(Fit(5, PackLonger::kError), 17, 6).status().message()),
      HasSubstr("document 17 has 6 elements, more than length=5: want "
                "longer=\"cut\" or \"drop\""));
  EXPECT_EQ(PiecesOf(Fit(5), 17, 5 * kMaxDocumentPieces).value(),
            kMaxDocumentPieces);
  EXPECT_THAT(
      std::string(
          PiecesOf(Fit(5), 17, 5 * kMaxDocumentPieces + 1).status().message()),
      HasSubstr("which are 1048577 pieces of length=5: want at most "
                "1048576"));
}

}  // namespace
}  // namespace leat
