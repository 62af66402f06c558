// SPDX-License-Identifier: Apache-2.0
//
// The formats of bytes and names are tested with the report of `leat index`
// (tests/worker/index_command/dataset_report_test.cc).
#include "worker/source/guess/reader.h"

#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "core/plan/job.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/arrays/npy_maker.h"
#include "tests/worker/source/packed/packing.h"
#include "tests/worker/source/storage/remote/fixture.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class GuessReaderTest : public ::testing::Test {
 protected:
  // Returns the error of the reader of this format, or of its listing.
  std::string ErrorOf(const std::string& uri, const std::string& format = "") {
    const auto guess = GuessReader(uri, {.format = format, .args = {}}, {});
    return std::string(Message(guess.ok() ? BuildIndex(guess->node, {}).status()
                                          : guess.status()));
  }
  TempDir dir_;
};

// A call that opens or reads a pipe without a writer would wait.
TEST_F(GuessReaderTest, APipeInPlaceOfADatasetIsNamed) {
  const std::string pipe = dir_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf(pipe), pipe + ": a named pipe, want a file or a directory");
  for (const char* format : {"image_folder", "file_list", "files", "webdataset",
                             "tfrecord", "array_record", "numpy", "idx", "coco",
                             "mds", "caffe", "cifar10", "tokens"})
    EXPECT_THAT(ErrorOf(pipe, format), HasSubstr("a named pipe")) << format;
  EXPECT_EQ(ErrorOf("/dev/null"),
            "/dev/null: a character device, want a file or a directory");
}

// `leat index FILE --format NAME` serves a new reader without more.
TEST_F(GuessReaderTest, EveryReaderTakesThePath) {
  const std::string file = dir_.Write("x", "no format");
  int taken = 0;
  for (const OperatorInfo& info : AllOperators()) {
    if (!info.name.starts_with("readers.") || info.name == kExternalReader)
      continue;
    const auto guess = GuessReader(file, {.format = info.name, .args = {}}, {});
    EXPECT_THAT(Message(guess.status()), Not(HasSubstr("takes no path")));
    if (!guess.ok()) continue;
    EXPECT_EQ(RootOf(guess->node), file) << info.name;
    ++taken;
  }
  EXPECT_GT(taken, 5);
}

TEST_F(GuessReaderTest, AFolderGivenAsAUriIsLookedInto) {
  dir_.Write("my set/a.tfrecord",
             TfrecordOf(ExampleOf({{"x", IntFeature({1})}})));
  dir_.Write("no name/a", TfrecordOf(ExampleOf({{"x", IntFeature({2})}})));
  for (const char* local : {"/my set", "/no name"}) {
    const std::string path = dir_.path() + local;
    std::string uri = "file://" + path;
    uri.replace(uri.find(' '), 1, "%20");
    for (const std::string& folder : {path, uri, uri + "/"}) {
      const auto guess = GuessReader(folder, {}, {});
      ASSERT_TRUE(guess.ok()) << guess.status();
      EXPECT_EQ(guess->node.op, "readers.tfrecord") << folder;
      const absl::Status listed = BuildIndex(guess->node, {}).status();
      EXPECT_TRUE(listed.ok()) << listed;
    }
  }
}

// A listing takes a file whose name is a pattern, and a query is no pattern.
TEST_F(GuessReaderTest, OnlyAPatternOfArraysIsOne) {
  const std::string array = Npy("|u1", "(2,)", "ab");
  const std::string named = dir_.Write("a[1].npy", array);
  dir_.Write("a1.npy", array);
  const auto args = [](const std::string& uri) {
    const auto guess = GuessReader(uri, {}, {});
    EXPECT_TRUE(guess.ok()) << guess.status();
    std::vector<std::string> found;
    for (const char* each : {"array", "path", "pattern"})
      if (guess.ok())
        found.push_back(std::get<std::string>(guess->node.args.at(each)));
    return found;
  };
  EXPECT_THAT(args(named), ElementsAre(named, "", "*.npy"));
  EXPECT_THAT(args(dir_.path() + "/a[12].npy"),
              ElementsAre("", dir_.path(), "a[12].npy"));
  EXPECT_THAT(args("file://" + dir_.path() + "/*1.npy"),
              ElementsAre("", "file://" + dir_.path(), "*1.npy"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path());
  EXPECT_THAT(args("*1.npy"), ElementsAre("", ".", "*1.npy"));
  std::filesystem::current_path(before);
  EXPECT_THAT(args("/*.npy"), ElementsAre("", "/", "*.npy"));
}

TEST_F(GuessReaderTest, ADownloadThatWasCutOffIsNoFileOfAnotherKind) {
  const std::string idx(
      "\0\0\x08\x01\0\0\0\x02"
      "ab",
      10);
  const std::string packed = Gzip(idx);
  const std::string file = dir_.Write("train-images-idx3-ubyte.gz",
                                      packed.substr(0, packed.size() - 4));
  EXPECT_THAT(ErrorOf(file), HasSubstr("the gzip stream is cut off"));
  EXPECT_EQ(ErrorOf(dir_.Write("b-idx3-ubyte.gz", packed)), "");
  EXPECT_THAT(ErrorOf(dir_.Write("text-idx3-ubyte.gz", Gzip("no format"))),
              HasSubstr("text-idx3-ubyte.gz: not an idx file"));
}

class GuessRemoteReader : public RemoteStorage {};

TEST_F(GuessRemoteReader, ASignedArrayIsOneFile) {
  server_.Put("/d/a.npy", Npy("|u1", "(2,)", "ab"));
  SourceLimits limits;
  limits.storage = storage_.get();
  const std::string uri = Url("/d/a.npy?sig=x");
  const auto guess = GuessReader(uri, {}, limits);
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_EQ(std::get<std::string>(guess->node.args.at("array")), uri);
  const absl::Status listed = BuildIndex(guess->node, limits).status();
  EXPECT_TRUE(listed.ok()) << listed;
}

TEST_F(GuessReaderTest, ANumberThatIsNotWholeIsNamed) {
  const std::string file = dir_.Write("a.bin", "12345678");
  for (const char* end : {"1.5", "nan", "inf", "-inf", "1e300", "-1e19"}) {
    const auto guess =
        GuessReader(file, {.format = "tokens", .args = {{"end", {end}}}}, {});
    EXPECT_THAT(std::string(Message(guess.status())),
                HasSubstr("argument \"end\""))
        << end;
    EXPECT_THAT(std::string(Message(guess.status())),
                HasSubstr("want a whole number"))
        << end;
  }
}

// Each name is searched for in the whole record, so that a record of a few MiB
// would take hours if all of its names were.
TEST_F(GuessReaderTest, ARecordOfVeryManyFeaturesTakesNoLongTime) {
  NamedFeatures features;
  for (int i = 0; i < 100'000; ++i)
    features.emplace_back(fmt::format("{:06}", i), IntFeature({i}));
  const std::string file =
      dir_.Write("a.tfrecord", TfrecordOf(ExampleOf(features)));
  const std::clock_t begin = std::clock();
  const auto guess = GuessReader(file, {}, {});
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 20);
  EXPECT_EQ(guess->fields.size(), 100u);
  EXPECT_EQ(guess->fields.back(), "000099");
}

}  // namespace
}  // namespace leat::worker
