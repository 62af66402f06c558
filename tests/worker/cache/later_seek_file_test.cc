// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/later_seek_file.h"

#include <atomic>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/cache/disk_forms_fixture.h"
#include "tests/worker/source/storage/base/open_descriptors.h"
#include "worker/index_command/seek_indexer.h"

namespace leat::worker {
namespace {

constexpr uint64_t kFiles = 20;

class LaterSeekFileTest : public DiskFormsTest {
 protected:
  LaterSeekFileTest() {
    std::vector<std::string> files;
    for (uint32_t seed = 1; seed <= kFiles; ++seed)
      files.push_back(
          testing::MakeJpeg({.width = 160, .height = 120, .seed = seed}));
    WriteImages(files);
    seek_indexes_ = JpegFormCodec();
  }
  void WriteFile() {
    const Node& reader = job_.info.spec.pipeline.nodes[0];
    std::atomic<uint64_t> read = 0;
    const auto built = BuildIndex(reader, {});
    ASSERT_TRUE(built.ok()) << built.status();
    const auto written = WriteSeekFile(reader, *built, {}, &read);
    ASSERT_TRUE(written.ok()) << written.status();
  }
  LaterSeekFile Of() const {
    return LaterSeekFile({.job = "job",
                          .folder = images_.path(),
                          .fingerprint = job_.info.datasets[0].fingerprint,
                          .codec = &seek_indexes_});
  }
};

TEST_F(LaterSeekFileTest, LooksOnce) {
  const LaterSeekFile before = Of();
  before.Look();
  EXPECT_EQ(before.found(), nullptr);
  WriteFile();
  before.Look();
  EXPECT_EQ(before.found(), nullptr) << "it has looked";

  const LaterSeekFile after = Of();
  EXPECT_EQ(after.found(), nullptr) << "nobody has asked it to";
  after.Look();
  ASSERT_NE(after.found(), nullptr);
  EXPECT_EQ(after.found()->records(), kFiles);
}

// A folder that does not answer would hold the thread that loads the job.
TEST_F(LaterSeekFileTest, AJobIsLoadedWithoutALookAtTheFolder) {
  RichCache memory(0, &uses_, kBothForms);
  const auto job = Job(&memory, nullptr);
  WriteFile();
  CheckEpoch(*job, 0);
  EXPECT_EQ(DecodesByForms(memory), kFiles - FormShelf::kFirstPlain)
      << "the first record that was read has found it";
}

TEST_F(LaterSeekFileTest, RowsWhoseRecordsAreKeptDoNotLookEither) {
  const auto read_all = [&](SampleCache* memory) {
    const auto job = Job(memory, nullptr);
    for (uint64_t sample = 0; sample < kFiles; ++sample)
      EXPECT_TRUE(Compute(*job, 0, sample).status.ok());
    return OpenDescriptors(images_.path());
  };
  SampleCache memory(8 << 20);
  EXPECT_EQ(read_all(&memory), 0u);
  WriteFile();
  EXPECT_EQ(read_all(&memory), 0u);
  EXPECT_EQ(read_all(&nothing_), 1u) << "storage gave its records";
}

}  // namespace
}  // namespace leat::worker
