// SPDX-License-Identifier: Apache-2.0
#include "worker/source/dataset_look.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/look_recorder.h"
#include "worker/source/source.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;

// Makes everything look unchanged for a minute: later changes have other times
// than the present state.
void Age(const std::string& folder) {
  const auto then = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  std::vector<fs::path> all = {folder};
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_symlink()) all.push_back(entry.path());
  for (const fs::path& path : all) fs::last_write_time(path, then);
}

class DatasetLookTest : public ::testing::Test {
 protected:
  // Lists the dataset of `reader`, and returns what the listing saw.
  DatasetLook Listed(const Node& reader) {
    Age(dir_.path());
    LookRecorder recorder(storage_.get(), &Clock::Real());
    const auto watched = storage_->Watched(&recorder);
    SourceLimits limits;
    limits.storage = watched.get();
    const auto index = BuildIndex(reader, limits);
    EXPECT_TRUE(index.ok()) << index.status();
    return recorder.Take();
  }
  std::vector<std::string> Changes(const DatasetLook& look) {
    const Looked looked = LookAgain(look, *storage_, {});
    EXPECT_TRUE(!looked.changes.empty() ||
                looked.entries == look.entries.size());
    return looked.changes;
  }
  Node Folder(const std::string& path) {
    return {
        .op = "readers.image_folder", .inputs = {}, .args = {{"path", path}}};
  }
  Node List() {
    return {.op = "readers.file_list",
            .inputs = {},
            .args = {{"path", dir_.path() + "/list"}, {"root", dir_.path()}}};
  }

  const TempDir dir_;
  const std::unique_ptr<Storage> storage_ = *Storage::Create({});
};

TEST_F(DatasetLookTest, SeesNothingWhereNothingHasChanged) {
  dir_.Write("photos/a/1.png", "1");
  dir_.Write("photos/b/2.png", "2");
  const DatasetLook look = Listed(Folder(dir_.path() + "/photos"));
  EXPECT_THAT(look.entries, SizeIs(5));  // three directories, two files
  EXPECT_EQ(look.total, 5u);
  EXPECT_THAT(Changes(look), IsEmpty());
}

TEST_F(DatasetLookTest, SeesWhatBecomesOfAFolder) {
  const std::string photos = dir_.path() + "/photos";
  const struct {
    const char* what;
    std::function<void()> change;
  } kChanges[] = {
      {"added", [&] { dir_.Write("photos/a/3.png", "3"); }},
      {"removed", [&] { fs::remove(photos + "/a/1.png"); }},
      {"a class more", [&] { dir_.Write("photos/c/3.png", "3"); }},
      {"renamed", [&] { fs::rename(photos + "/a", photos + "/z"); }},
      {"written in place", [&] { dir_.Write("photos/a/1.png", "7"); }},
      {"gone", [&] { fs::remove_all(photos); }},
  };
  for (const auto& [what, change] : kChanges) {
    fs::remove_all(photos);
    dir_.Write("photos/a/1.png", "1");
    dir_.Write("photos/b/2.png", "2");
    const DatasetLook look = Listed(Folder(photos));
    change();
    EXPECT_FALSE(Changes(look).empty()) << what;
  }
}

TEST_F(DatasetLookTest, SeesALinkThatMovedOn) {
  dir_.Write("v1/a/1.png", "1");
  fs::copy(dir_.path() + "/v1", dir_.path() + "/v2",
           fs::copy_options::recursive);
  fs::create_symlink("v1", dir_.path() + "/current");
  const DatasetLook look = Listed(Folder(dir_.path() + "/current"));
  EXPECT_THAT(Changes(look), IsEmpty());
  fs::remove(dir_.path() + "/current");
  fs::create_symlink("v2", dir_.path() + "/current");
  EXPECT_FALSE(Changes(look).empty());
}

// A list of the same length, written within a tick of the clock.
TEST_F(DatasetLookTest, TellsAListByItsText) {
  dir_.Write("1.png", "1");
  dir_.Write("list", "1.png 0\n");
  const DatasetLook look = Listed(List());
  const auto then = fs::last_write_time(dir_.path() + "/list");
  dir_.Write("list", "1.png 7\n");
  fs::last_write_time(dir_.path() + "/list", then);
  EXPECT_THAT(Changes(look),
              ElementsAre(HasSubstr("list: its text has changed")));
  // A list that was rewritten with the same text is the same list.
  dir_.Write("list", "1.png 0\n");
  EXPECT_THAT(Changes(look), IsEmpty());
  fs::remove(dir_.path() + "/1.png");
  EXPECT_THAT(Changes(look), ElementsAre(HasSubstr("1.png: it is gone")));
}

TEST_F(DatasetLookTest, SeesAFileComeWhereTherewasNone) {
  LookRecorder recorder(storage_.get(), &Clock::Real());
  const auto watched = storage_->Watched(&recorder);
  EXPECT_TRUE(absl::IsNotFound(watched->Stat(dir_.path() + "/x").status()));
  const DatasetLook look = recorder.Take();
  EXPECT_THAT(Changes(look), IsEmpty());
  dir_.Write("x", "");
  EXPECT_THAT(Changes(look), ElementsAre(HasSubstr("it is there now")));
}

// A directory that changed just before it was listed may change in the same
// tick of the clock.
TEST_F(DatasetLookTest, DoesNotTrustATickThatIsNotOver) {
  const WallTime now = Clock::Real().WallNow();
  class StoppedClock final : public Clock {
   public:
    explicit StoppedClock(WallTime at) : at_(at) {}
    MonotonicTime Now() const override { return {}; }
    WallTime WallNow() const override { return at_; }

   private:
    const WallTime at_;
  } clock(now);
  LookRecorder recorder(storage_.get(), &clock);
  const auto changed_ago = [&](Duration ago) {
    return StoredFolder{
        std::chrono::duration_cast<std::chrono::nanoseconds>(
            (now - std::chrono::duration_cast<WallTime::duration>(ago))
                .time_since_epoch())
            .count(),
        ""};
  };
  recorder.SawFolder("/young", changed_ago(std::chrono::milliseconds(1)));
  recorder.SawFolder("/old", changed_ago(std::chrono::seconds(1)));
  const DatasetLook look = recorder.Take();
  ASSERT_THAT(look.entries, SizeIs(2));
  EXPECT_FALSE(look.entries[0].young);
  EXPECT_TRUE(look.entries[1].young);
}

// Two patterns of one directory list it twice. What came in between is only in
// the second listing.
TEST_F(DatasetLookTest, DoesNotTrustADirectoryThatWasSeenInTwoStates) {
  dir_.Write("photos/1.png", "1");
  Age(dir_.path());
  const std::string photos = dir_.path() + "/photos";
  const StoredFolder now = *storage_->StatFolder(photos);
  const StoredFolder before{now.modified_ns - 1'000'000, now.real_path};
  const auto changes = [&](const std::vector<StoredFolder>& seen) {
    LookRecorder recorder(storage_.get(), &Clock::Real());
    for (const StoredFolder& folder : seen) recorder.SawFolder(photos, folder);
    return Changes(recorder.Take());
  };
  EXPECT_THAT(changes({now, now}), IsEmpty());
  EXPECT_THAT(changes({now, {now.modified_ns, ""}}), IsEmpty());
  EXPECT_THAT(changes({{now.modified_ns, ""}, now}), IsEmpty());
  EXPECT_THAT(changes({before, now}), SizeIs(1));
  EXPECT_THAT(changes({now, before}), SizeIs(1));
  EXPECT_THAT(changes({before, now, now}), SizeIs(1));
  EXPECT_THAT(changes({before, {now.modified_ns, ""}, now}), SizeIs(1));
}

TEST_F(DatasetLookTest, DoesNotTrustAListThatWasSeenInTwoStates) {
  const std::string list = dir_.Write("list", "1.png 0\n");
  LookRecorder recorder(storage_.get(), &Clock::Real());
  recorder.SawText(list, HashOf("2.png 0\n"));
  recorder.SawText(list, HashOf("1.png 0\n"));
  EXPECT_THAT(Changes(recorder.Take()),
              ElementsAre(HasSubstr("list: its text has changed")));
}

TEST_F(DatasetLookTest, OfManyFilesItKeepsASample) {
  LookRecorder recorder(storage_.get(), &Clock::Real());
  constexpr size_t kFiles = 3 * DatasetLook::kMaxFiles;
  for (size_t i = 0; i < kFiles; ++i)
    recorder.SawFile(fmt::format("/data/{}.png", i), "size=1 mtime_ns=1");
  EXPECT_EQ(recorder.files(), kFiles);
  const DatasetLook look = recorder.Take();
  EXPECT_THAT(look.entries, SizeIs(DatasetLook::kMaxFiles));
  EXPECT_EQ(look.total, kFiles);
}

TEST_F(DatasetLookTest, SurvivesTheWay) {
  dir_.Write("1.png", "1");
  dir_.Write("caf\xc3\xa9.png", "1");
  dir_.Write("list", "1.png 0\ncaf\xc3\xa9.png 1\n");
  const DatasetLook look = Listed(List());
  const std::string bytes = look.Serialize();
  const auto read = DatasetLook::Parse(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->entries.size(), look.entries.size());
  for (size_t i = 0; i < look.entries.size(); ++i) {
    EXPECT_EQ(read->entries[i].kind, look.entries[i].kind);
    EXPECT_EQ(read->entries[i].uri, look.entries[i].uri);
    EXPECT_EQ(read->entries[i].seen, look.entries[i].seen);
  }
  EXPECT_THAT(Changes(*read), IsEmpty());
  for (size_t cut = 1; cut < bytes.size(); cut += 3)
    (void)DatasetLook::Parse(std::string_view(bytes).substr(cut));  // no crash
}

// Each entry has a few bytes, and shares a long address with the one before it.
TEST_F(DatasetLookTest, ALookMayNotGrowWithoutBound) {
  stored::v1::DatasetLook proto;
  for (int i = 0; i < 1000; ++i) {
    stored::v1::LookEntry& entry = *proto.add_entries();
    entry.set_kind(2);
    if (i == 0)
      entry.set_rest(std::string(1 << 20, 'x'));
    else
      entry.set_shared(1 << 20);
  }
  const auto read = DatasetLook::Parse(proto.SerializeAsString());
  EXPECT_TRUE(absl::IsDataLoss(read.status())) << read.status();
}

TEST_F(DatasetLookTest, StopsWhenItHasSeenEnough) {
  LookRecorder recorder(storage_.get(), &Clock::Real());
  for (int i = 0; i < 1000; ++i)
    recorder.SawFile(fmt::format("{}/{}", dir_.path(), i), "size=1 mtime_ns=1");
  const Looked looked =
      LookAgain(recorder.Take(), *storage_, {.threads = 1, .max_changes = 3});
  EXPECT_THAT(looked.changes, SizeIs(3));
  EXPECT_EQ(looked.entries, 3u);
}

// A copy has different times, wherever it was listed or is looked at.
TEST_F(DatasetLookTest, ACopyIsTheSame) {
  dir_.Write("original/a/1.png", "1");
  dir_.Write("copy/a/1.png", "1");
  const std::string original = dir_.path() + "/original";
  StorageConfig config;
  config.local_copies[original] = dir_.path() + "/copy";
  const auto copied = *Storage::Create(config);
  const DatasetLook look = Listed(Folder(original));
  fs::last_write_time(dir_.path() + "/copy/a/1.png",
                      fs::file_time_type::clock::now());
  EXPECT_THAT(LookAgain(look, *copied, {}).changes, IsEmpty());
  dir_.Write("copy/a/1.png", "another size");
  EXPECT_FALSE(LookAgain(look, *copied, {}).changes.empty());
}

}  // namespace
}  // namespace leat::worker
