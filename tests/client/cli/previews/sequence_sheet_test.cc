// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/sequence_sheet.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"
#include "tests/client/cli/previews/packed_rows.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SequenceSheet, ItsStripHasTheColorsOfTheDocuments) {
  const RgbImage picture = DrawSequences(Made(nullptr), false);
  const auto at = [&](int x, int y) {
    const uint8_t* dot =
        &picture.rgb[static_cast<size_t>((y * picture.width + x) * 3)];
    return std::vector<int>{dot[0], dot[1], dot[2]};
  };
  ASSERT_EQ(picture.width, 1040);
  int y = 0;  // the middle of the first strip
  while (at(20 + 250, y) != std::vector<int>{86, 140, 200}) ++y;
  y += 10;
  EXPECT_EQ(at(20 + 499, y), at(20, y)) << "a document of three elements";
  EXPECT_EQ(at(20 + 500, y), at(20 + 832, y)) << "one of two elements";
  EXPECT_NE(at(20 + 499, y), at(20 + 500, y));
  EXPECT_NE(at(20 + 832, y), at(20 + 835, y)) << "padding";
}

TEST(SequencePage, EscapesNamesAndTexts) {
  const auto vocabulary = Vocabulary::Parse(kVocabulary, "v");
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  const std::string page = SequencePage(Made(&*vocabulary));
  EXPECT_THAT(page, HasSubstr("Hi &lt;there&gt;\\x1b[31m"));
  EXPECT_THAT(page, HasSubstr("a&lt;b&gt;.bin: record 3"));
  EXPECT_THAT(page, Not(HasSubstr("<there>")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, HasSubstr("&lt;id 60000&gt;"));
  EXPECT_THAT(page, HasSubstr("style=\"flex:3\""));
}

class SheetOfSequences : public ::testing::Test {
 protected:
  SheetOfSequences()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("leat-sequences-{}", getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "v.json") << kVocabulary;
    shell_.service.rows = PackedRows();
  }
  ~SheetOfSequences() override { std::filesystem::remove_all(folder_); }
  std::string At(const char* name) { return folder_ / name; }
  std::string Read(const char* name) {
    std::ostringstream bytes;
    bytes << std::ifstream(At(name), std::ios::binary).rdbuf();
    return bytes.str();
  }
  const std::filesystem::path folder_;
  Shell shell_;
};

TEST_F(SheetOfSequences, IsAPictureOrAPage) {
  EXPECT_EQ(shell_.Run({"sheet", "resnet50", "-o", At("s.png")}), 0)
      << shell_.err;
  EXPECT_THAT(Read("s.png"), HasSubstr("PNG"));
  EXPECT_THAT(shell_.err, HasSubstr("2 of 8 rows"));
  EXPECT_EQ(shell_.Run({"sheet", "resnet50", "--vocabulary", At("v.json"), "-o",
                        At("s.html")}),
            0)
      << shell_.err;
  EXPECT_THAT(Read("s.html"), HasSubstr("Hi &lt;there&gt;"));
}

TEST_F(SheetOfSequences, IsRefusedWithAVocabularyThatIsNone) {
  std::ofstream(folder_ / "no.json") << "{}";
  EXPECT_EQ(shell_.Run({"sheet", "resnet50", "--vocabulary", At("no.json"),
                        "-o", At("s.png")}),
            2);
  EXPECT_THAT(shell_.err, HasSubstr("no.json: want the JSON file"));
}

}  // namespace
}  // namespace leat::cli
