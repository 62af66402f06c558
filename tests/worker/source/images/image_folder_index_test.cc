// SPDX-License-Identifier: Apache-2.0
#include "worker/source/images/image_folder_index.h"

#include <chrono>
#include <filesystem>
#include <random>
#include <set>
#include <string>

#include "core/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/worker/source/images/image_folder_fixture.h"

namespace leat::worker {
namespace {

namespace fs = std::filesystem;

TEST_F(ImageFolderTest, RepeatCostsNothingAndSharesRecords) {
  dir_.Write("a/1.jpg", "one");
  dir_.Write("a/2.jpg", "two");
  const int64_t repeat = 500'000'000;
  const BuiltIndex index = Index(repeat);
  EXPECT_LT(index.blob.size(), 1000u);
  EXPECT_EQ(index.shards.num_samples(), 1'000'000'000u);
  const auto source = Open(index, repeat);
  EXPECT_EQ(source->num_samples(), 1'000'000'000u);
  EXPECT_EQ(source->RecordOf(999'999'999), 1u);
  EXPECT_EQ(Text(*source->Read(999'999'999)), "two");
}

TEST_F(ImageFolderTest, TheFingerprintChangesWithAnyFile) {
  dir_.Write("a/1.jpg", "one");
  const BuiltIndex first = Index();
  EXPECT_EQ(first.fingerprint, Index().fingerprint);
  EXPECT_EQ(Open(first)->fingerprint(), first.fingerprint);
  EXPECT_NE(first.fingerprint, Index(2).fingerprint);
  fs::last_write_time(At("a/1.jpg"), fs::last_write_time(At("a/1.jpg")) -
                                         std::chrono::seconds(5));
  const BuiltIndex touched = Index();
  EXPECT_NE(first.fingerprint, touched.fingerprint);
  dir_.Write("b/1.jpg", "two");
  EXPECT_NE(Index().fingerprint, touched.fingerprint);
}

TEST_F(ImageFolderTest, TheContentIsOfNamesSizesAndClasses) {
  const std::string file = dir_.Write("a/1.jpg", "one");
  dir_.Write("b/2.jpg", "two");
  const Digest content = Index().content;
  EXPECT_NE(content, Digest{});
  fs::last_write_time(file,
                      fs::last_write_time(file) + std::chrono::seconds(3));
  EXPECT_EQ(Index().content, content);
  std::set<Digest> others = {content};
  dir_.Write("a/1.jpg", "larger");
  EXPECT_TRUE(others.insert(Index().content).second);
  dir_.Write("a/1.jpg", "one");
  fs::rename(file, At("a/0.jpg"));
  EXPECT_TRUE(others.insert(Index().content).second);
  fs::rename(At("a/0.jpg"), file);
  fs::rename(At("b"), At("c"));
  EXPECT_TRUE(others.insert(Index().content).second);
  fs::rename(At("c"), At("b"));
  EXPECT_EQ(Index().content, content);
}

TEST_F(ImageFolderTest, RandomBytesAreNotAnIndex) {
  dir_.Write("a/1.jpg", "x");
  const std::string good = Index().blob;
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  std::minstd_rand random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string blob = good;
    for (int j = 0; j <= i % 4; ++j)
      blob[random() % blob.size()] = static_cast<char>(random());
    if (i % 3 == 0) blob.resize(random() % blob.size());
    // Whatever the bytes, it must not crash, nor reach outside its root.
    const auto source = OpenSource(Reader(dir_.path()), blob, limits_);
    const uint64_t samples =
        source.ok() ? std::min<uint64_t>(9, (*source)->num_samples()) : 0;
    for (uint64_t s = 0; s < samples; ++s)
      EXPECT_THAT((*source)->Describe(s),
                  testing::StartsWith(dir_.path() + "/"));
  }
}

TEST_F(ImageFolderTest, AnIndexThatIsCutOffIsRefused) {
  for (const char* name : {"a/1.jpg", "a/2.jpg", "b/1.jpg"})
    dir_.Write(name, "x");
  const std::string good = Index().blob;
  for (size_t size = 0; size < good.size(); ++size) {
    const auto source =
        OpenSource(Reader(dir_.path()), good.substr(0, size), limits_);
    // The first class alone is a whole index, of fewer classes.
    if (source.ok())
      EXPECT_EQ((*source)->num_samples(), 2u) << size << " of " << good.size();
    else
      EXPECT_TRUE(absl::IsDataLoss(source.status())) << source.status();
  }
}

TEST_F(ImageFolderTest, AnIndexThatClimbsOutIsRefused) {
  stored::v1::ImageFolderIndex index;
  index.set_root(dir_.path());
  index.set_repeat(1);
  auto& each = *index.add_classes();
  each.set_directory("a");
  auto& file = *each.add_files();
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "x/..", ""}) {
    file.set_name(name);
    EXPECT_TRUE(absl::IsDataLoss(
        OpenSource(Reader(dir_.path()), index.SerializeAsString(), limits_)
            .status()))
        << name;
  }
  file.set_name("1.jpg");
  index.set_root("/etc");
  EXPECT_TRUE(absl::IsDataLoss(
      OpenSource(Reader(dir_.path()), index.SerializeAsString(), limits_)
          .status()));
}

}  // namespace
}  // namespace leat::worker
