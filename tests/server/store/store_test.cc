// SPDX-License-Identifier: Apache-2.0
#include "server/store/store.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/records.h"
#include "server/store/sqlite_store.h"
#include "tests/server/coordinator/world.h"
#include "tests/server/store/store_fixture.h"

namespace leat::server {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using testing::HasSubstr;

TEST_F(StoreTest, WhatWasAppendedIsThereAfterACrash) {
  Open();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Drain(fmt::format("w{}", i)).ok());
    EXPECT_EQ(store_->sequence(), i + 1u);
    if (i % 5 != 0) continue;
    Crash();
    Open();
    EXPECT_EQ(store_->sequence(), i + 1u);
    EXPECT_EQ(Drained().size(), i + 1u);
  }
}

TEST_F(StoreTest, EveryKindOfEventSurvives) {
  World world;
  JobSpec spec = SpecOf("j", "/d");
  spec.pipeline.nodes.push_back({"jpeg_compression_distortion", {{2, 0}}, {}});
  spec.pipeline.outputs[0].second.node = 3;
  const auto job = world.MakeJob(spec, world.Join("a"));
  Open();
  DatasetIndexed indexed = Dataset(job->datasets[0].id, "r");
  indexed.dataset = job->datasets[0];
  indexed.dataset.content.fill(5);
  const std::vector<Event> events = {
      {WallTime(seconds(5)), indexed},
      {WallTime(seconds(6)), JobCreated{job->spec,
                                        {job->datasets[0].id},
                                        job->schema,
                                        job->plan_hash,
                                        world->Jobs()[0].not_on_gpu,
                                        "trainer/vision"}},
      {WallTime(seconds(7)), WorkerDrained{"a"}},
      {WallTime(seconds(8)), WorkerUndrained{"a"}},
      {WallTime(seconds(9)), WorkerDrained{"b"}}};
  for (const Event& event : events) ASSERT_TRUE(store_->Append(event).ok());
  Crash();
  Open();
  const absl::StatusOr<State> state = Load();
  ASSERT_TRUE(state.ok()) << state.status();
  const JobRecord* loaded = state->FindJob("j");
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(loaded->info->spec, job->spec);
  EXPECT_EQ(loaded->info->schema, job->schema);
  EXPECT_EQ(loaded->info->plan_hash, job->plan_hash);
  EXPECT_EQ(loaded->created_at, WallTime(seconds(6)));
  EXPECT_EQ(loaded->created_by, "trainer/vision");
  EXPECT_EQ(loaded->not_on_gpu,
            "node 3 (jpeg_compression_distortion) has no device form");
  EXPECT_EQ(state->FindDataset(job->datasets[0].id)->info->classes,
            job->datasets[0].classes);
  EXPECT_EQ(state->FindDataset(job->datasets[0].id)->info->content,
            indexed.dataset.content);
  EXPECT_EQ(state->drained().size(), 1u);
  ASSERT_TRUE(store_->Append({{}, JobDeleted{"j"}}).ok());
  ASSERT_TRUE(store_->Append({{}, DatasetDeleted{job->datasets[0].id}}).ok());
}

TEST_F(StoreTest, TheSequenceDoesNotWaitForAnAppend) {
  Open();
  ASSERT_TRUE(Drain("a").ok());
  const std::string index(64 << 20, 'x');
  std::atomic<bool> started = false, ended = false;
  std::thread writer([&] {
    const DatasetIndexed indexed = Dataset("d", index);
    started = true;
    EXPECT_TRUE(store_->Append({{}, indexed, {}}).ok());
    ended = true;
  });
  while (!started) std::this_thread::yield();
  int answers = 0;
  while (!ended) {
    store_->sequence();
    answers += !ended;
  }
  writer.join();
  EXPECT_GT(answers, 1000);
  EXPECT_EQ(store_->sequence(), 2u);
}

TEST_F(StoreTest, ASecondProcessIsToldWhoHoldsTheDirectory) {
  Open();
  const absl::Status second = SqliteStore::Open(dir_, {}).status();
  EXPECT_EQ(second.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(second)),
              HasSubstr(fmt::format("process {}", getpid())));
  store_.reset();
  Open();
}

TEST_F(StoreTest, ADirectoryThatCannotBeMadeOrWrittenIsNamed) {
  WriteAll(root_ / "file", "x");
  dir_ = root_ / "file" / "state";
  absl::Status status = TryOpen();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("file/state"));
  dir_ = root_ / "no" / "such";
  EXPECT_EQ(TryOpen().code(), StatusCode::kNotFound);
  dir_ = "/proc/self/task";  // no user, not even root, can create files there
  EXPECT_FALSE(TryOpen().ok());
}

TEST_F(StoreTest, AnOlderCopyOfTheDatabaseIsNoticed) {
  Open();
  ASSERT_TRUE(Drain("a").ok());
  store_.reset();
  const std::string old = ReadAll(dir_ / "leat.db");
  Open();
  ASSERT_TRUE(Drain("b").ok());
  store_.reset();
  WriteAll(dir_ / "leat.db", old);
  const absl::Status status = TryOpen();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("STATE_REGRESSED"));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("leat.db"));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("--accept-data-loss"));
}

TEST_F(StoreTest, AMissingDatabaseOrMarkIsNoticed) {
  Open();
  ASSERT_TRUE(Drain("a").ok());
  store_.reset();
  const std::string database = ReadAll(dir_ / "leat.db");
  fs::remove(dir_ / "leat.db");
  EXPECT_EQ(TryOpen().code(), StatusCode::kDataLoss);
  store_.reset();
  fs::remove(dir_ / "leat.db");
  WriteAll(dir_ / "leat.db", database);
  const std::string mark = ReadAll(dir_ / "high-water");
  fs::remove(dir_ / "high-water");
  EXPECT_EQ(TryOpen().code(), StatusCode::kDataLoss);
  WriteAll(dir_ / "high-water", std::string(128, '\0'));
  EXPECT_EQ(TryOpen().code(), StatusCode::kDataLoss);
  WriteAll(dir_ / "high-water", mark);
  Open();
  EXPECT_EQ(Drained().size(), 1u);
}

TEST_F(StoreTest, OneTornMarkIsSurvived) {
  Open();
  ASSERT_TRUE(Drain("a").ok());
  ASSERT_TRUE(Drain("b").ok());
  store_.reset();
  const std::string mark = ReadAll(dir_ / "high-water");
  for (size_t slot : {0u, 64u}) {
    std::string torn = mark;
    torn[slot + 20] ^= 0x55;
    WriteAll(dir_ / "high-water", torn);
    Open();
    EXPECT_EQ(Drained().size(), 2u);
    store_.reset();
  }
}

// Flips bytes all over a file; each time, either the state is unchanged or
// opening reports the damage.
void FlipAll(const fs::path& file, size_t step,
             const std::function<void(size_t at)>& check) {
  const std::string good = ReadAll(file);
  for (size_t at = 0; at < good.size(); at += step) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    WriteAll(file, bad);
    check(at);
  }
}

TEST_F(StoreTest, AFlippedByteInTheDatabaseIsNoticedOrHarmless) {
  Open();
  ASSERT_TRUE(store_->Append({{}, Dataset("d1", "r")}).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Drain(fmt::format("w{}", i)).ok());
  store_.reset();
  const fs::path pristine = root_ / "pristine";
  fs::copy(dir_, pristine);
  int refused = 0;
  FlipAll(pristine / "leat.db", 199, [&](size_t at) {
    store_.reset();
    fs::remove_all(dir_);
    fs::copy(pristine, dir_);
    const absl::Status opened = TryOpen();
    if (!opened.ok()) {
      ++refused;
      EXPECT_THAT(std::string(Message(opened)), HasSubstr("leat.db"));
      return;
    }
    absl::StatusOr<State> state = Load();
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->drained().size(), 5u) << "byte " << at;
    ASSERT_NE(state->FindDataset("d1"), nullptr) << "byte " << at;
  });
  EXPECT_GT(refused, 3);
}

TEST_F(StoreTest, AFlippedByteInTheWriteAheadLogIsNoticed) {
  Open();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Drain(fmt::format("w{}", i)).ok());
  const fs::path pristine = root_ / "pristine";
  fs::copy(dir_, pristine);  // the log is not yet in the database
  ASSERT_GT(fs::file_size(pristine / "leat.db-wal"), 1000u);
  int refused = 0;
  FlipAll(pristine / "leat.db-wal", 1999, [&](size_t at) {
    store_.reset();
    fs::remove_all(dir_);
    fs::copy(pristine, dir_);
    fs::remove(dir_ / "leat.db-shm");
    if (absl::Status opened = TryOpen(); !opened.ok()) {
      ++refused;
      EXPECT_EQ(opened.code(), StatusCode::kDataLoss) << opened;
      return;
    }
    EXPECT_EQ(Drained().size(), 4u) << "byte " << at;
  });
  EXPECT_GT(refused, 3);
}

TEST_F(StoreTest, ATruncatedDatabaseIsNoticed) {
  Open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Drain(fmt::format("w{}", i)).ok());
  store_.reset();
  const std::string good = ReadAll(dir_ / "leat.db");
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{100}, size_t{4096}, good.size() - 4096}) {
    WriteAll(dir_ / "leat.db", good.substr(0, size));
    EXPECT_EQ(TryOpen().code(), StatusCode::kDataLoss) << size;
    store_.reset();
    for (const char* extra : {"leat.db-wal", "leat.db-shm"})
      fs::remove(dir_ / extra);
  }
  WriteAll(dir_ / "leat.db", good);
  Open();
}

TEST_F(StoreTest, DataLossThatIsAcceptedKeepsWhatCanBeRead) {
  Open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Drain(fmt::format("w{}", i)).ok());
  store_.reset();
  std::string bytes = ReadAll(dir_ / "leat.db");
  const size_t at = bytes.find("w3");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'v';
  WriteAll(dir_ / "leat.db", bytes);
  EXPECT_EQ(TryOpen().code(), StatusCode::kDataLoss);
  SqliteOptions options;
  options.accept_data_loss = true;
  const absl::Status opened = TryOpen(options);
  ASSERT_TRUE(opened.ok()) << opened;
  EXPECT_EQ(Drained(), (std::set<std::string>{"w0", "w1", "w2"}));
  EXPECT_GE(store_->sequence(), 5u) << "the numbers never go back";
  ASSERT_TRUE(Drain("again").ok());
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(dir_))
    kept +=
        entry.path().filename().string().find("damaged") != std::string::npos;
  EXPECT_GE(kept, 1);
  Open();
  EXPECT_EQ(Drained().size(), 4u);
}

TEST_F(StoreTest, GarbageInsteadOfADatabaseCanBeStartedOver) {
  Open();
  ASSERT_TRUE(Drain("a").ok());
  store_.reset();
  WriteAll(dir_ / "leat.db", std::string(20000, 'z'));
  EXPECT_EQ(TryOpen().code(), StatusCode::kDataLoss);
  SqliteOptions options;
  options.accept_data_loss = true;
  const absl::Status opened = TryOpen(options);
  ASSERT_TRUE(opened.ok()) << opened;
  EXPECT_TRUE(Drained().empty());
  EXPECT_GE(store_->sequence(), 1u);
}

TEST_F(StoreTest, AFullStoreRefusesAndGoesOnWhenThereIsRoom) {
  SqliteOptions small;
  small.max_bytes = 64 * 1024;
  ASSERT_TRUE(TryOpen(small).ok());
  ASSERT_TRUE(Drain("a").ok());
  const std::string index(200'000, 'i');
  const absl::Status full = store_->Append({{}, Dataset("d1", index)});
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted) << full;
  EXPECT_TRUE(Drain("b").ok());
  EXPECT_EQ(store_->sequence(), 2u);
  Open();
  EXPECT_TRUE(store_->Append({{}, Dataset("d1", index)}).ok());
  Crash();
  Open();
  EXPECT_EQ(Drained().size(), 2u);
}

TEST_F(StoreTest, AFullDiskRefusesAndGoesOnWhenThereIsRoom) {
  ASSERT_EQ(mkdir((root_ / "disk").c_str(), 0700), 0);
  if (mount("none", (root_ / "disk").c_str(), "tmpfs", 0, "size=400k") != 0)
    GTEST_SKIP() << "cannot mount a tmpfs here";
  dir_ = root_ / "disk" / "state";
  Open();
  ASSERT_TRUE(Drain("a").ok());
  const std::string index(600'000, 'i');
  EXPECT_EQ(store_->Append({{}, Dataset("d1", index)}).code(),
            StatusCode::kResourceExhausted);
  const absl::Status after = Drain("b");
  EXPECT_TRUE(after.ok() || absl::IsResourceExhausted(after)) << after;
  ASSERT_EQ(
      mount("none", (root_ / "disk").c_str(), "tmpfs", MS_REMOUNT, "size=8m"),
      0);
  EXPECT_TRUE(Drain("c").ok());
  EXPECT_TRUE(store_->Append({{}, Dataset("d1", index)}).ok());
  Open();
  EXPECT_TRUE(Drained().contains("c"));
  store_.reset();
  umount((root_ / "disk").c_str());
}

TEST_F(StoreTest, CompactionForgetsThePastAndKeepsTheNumbers) {
  Open();
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(Drain("a").ok());
    ASSERT_TRUE(store_->Append({{}, WorkerUndrained{"a"}}).ok());
  }
  ASSERT_TRUE(Drain("b").ok());
  const uint64_t before = store_->sequence();
  Open();
  const absl::StatusOr<State> state = Load();
  ASSERT_TRUE(state.ok());
  ASSERT_TRUE(store_->Compact(state->Events()).ok());
  EXPECT_GT(store_->sequence(), before);
  ASSERT_TRUE(Drain("c").ok());
  Crash();
  Open();
  int events = 0;
  ASSERT_TRUE(store_
                  ->Replay([&](const Event&) {
                    ++events;
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(events, 2);
}

TEST_F(StoreTest, AKilledWriterLosesNothingThatItWasToldIsKept) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = SqliteStore::Open(dir_, {});
    if (!store.ok()) _exit(1);
    for (uint32_t i = 1;; ++i) {
      if (!(*store)->Append({{}, WorkerDrained{fmt::format("w{}", i)}}).ok())
        _exit(2);
      if (write(pipe_fds[1], &i, sizeof i) != sizeof i) _exit(3);
    }
  }
  close(pipe_fds[1]);
  uint32_t told = 0, next = 0;
  while (told < 40 && read(pipe_fds[0], &next, sizeof next) == sizeof next)
    told = next;
  kill(child, SIGKILL);
  while (read(pipe_fds[0], &next, sizeof next) == sizeof next) told = next;
  close(pipe_fds[0]);
  waitpid(child, nullptr, 0);
  ASSERT_GE(told, 40u);
  Open();
  EXPECT_GE(Drained().size(), told);
}

TEST(Records, GarbageIsDataLossAndNeverACrash) {
  EXPECT_EQ(DecodeEvent("").status().code(), StatusCode::kDataLoss);
  std::string garbage;
  for (int i = 0; i < 2000; ++i) {
    garbage += static_cast<char>(i * 7919);
    EXPECT_EQ(DecodeEvent(garbage).status().code(), StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace leat::server
