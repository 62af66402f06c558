// SPDX-License-Identifier: Apache-2.0
//
// Sources of several formats that share a budget of open files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "tests/worker/source/array_record/riegeli_writer.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/source/storage/base/open_descriptors.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/packed/packed_reader.h"
#include "worker/source/source.h"
#include "worker/source/storage/base/open_file_budget.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using Texts = std::vector<std::string>;

constexpr size_t kRecords = 3;  // of each source

// Returns the records of source i. PackedReader may read small ones by blocks,
// and reads others by themselves.
Texts RecordsOf(size_t i) {
  return {fmt::format("first of {}", i),
          std::string((i % 10 == 0 ? PackedReader::kSmall : 0) + i, 'x'),
          fmt::format("last of {}", i)};
}

class SourcesTest : public ::testing::Test {
 protected:
  void UseBudget(size_t most) {
    storage_ = *Storage::Create({.max_open_files = most});
    limits_.storage = storage_.get();
    limits_.listing_threads = 1;
  }
  std::unique_ptr<Source> Open(const Node& reader) const {
    const auto index = BuildIndex(reader, limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    auto source = OpenSource(reader, index->blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  // The sources alternate between readers that keep some files, and one that
  // keeps all of its files.
  std::unique_ptr<Source> MakeSource(size_t i) const {
    const Texts records = RecordsOf(i);
    const std::string name = std::to_string(i);
    if (i % 3 == 0) {
      std::string file;
      for (const std::string& each : records)
        file += TfrecordOf(ExampleOf({{"image", BytesFeature({each})}}));
      return Open({.op = "readers.tfrecord",
                   .inputs = {},
                   .args = {{"paths", Texts{dir_.Write(name, file)}},
                            {"features", Texts{"image"}},
                            {"types", Texts{"encoded"}}}});
    }
    if (i % 3 == 1)
      return Open(
          {.op = "readers.array_record",
           .inputs = {},
           .args = {{"paths",
                     Texts{dir_.Write(name, RiegeliWriter::File(records, 1))}},
                    {"type", std::string("encoded")}}});
    std::string file;
    for (size_t record = 0; record < kRecords; ++record)
      file += std::string(3073, static_cast<char>((i + record) % 10));
    return Open({.op = "readers.cifar10",
                 .inputs = {},
                 .args = {{"paths", Texts{dir_.Write(name, file)}},
                          {"prefix", std::string("data_batch_")}}});
  }
  void MakeSources(size_t count) {
    for (size_t i = 0; i < count; ++i) sources_.push_back(MakeSource(i));
  }
  // Returns whether a record of source i has its bytes.
  bool Read(size_t i, size_t record) const {
    const auto sample = sources_[i]->Read(record);
    if (!sample.ok()) ADD_FAILURE() << sample.status();
    const std::string wanted =
        i % 3 < 2 ? RecordsOf(i)[record]
                  : std::string(3072, static_cast<char>((i + record) % 10));
    return sample.ok() && TextOf(sample->fields[0]) == wanted;
  }
  size_t Descriptors() const { return OpenDescriptors(dir_.path()); }

  const TempDir dir_;
  std::unique_ptr<Storage> storage_;
  SourceLimits limits_;
  std::vector<std::unique_ptr<Source>> sources_;
};

TEST_F(SourcesTest, AThousandKeepSixtyFourFilesOpen) {
  constexpr size_t kSources = 1000, kMost = 64, kThreads = 4;
  UseBudget(kMost);
  MakeSources(kSources);
  EXPECT_LE(Descriptors(), kMost);
  std::atomic<size_t> wrong{0}, highest{0};
  const auto look = [&] {
    const size_t now = Descriptors();
    for (size_t seen = highest; seen < now;)
      highest.compare_exchange_weak(seen, now);
  };
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      std::minstd_rand random(static_cast<uint32_t>(thread) + 1);
      for (size_t i = thread; i < kSources; i += kThreads) {
        for (size_t record = 0; record < kRecords; ++record)
          wrong += Read(i, record) ? 0 : 1;
        wrong += Read(random() % kSources, random() % kRecords) ? 0 : 1;
        if (i / kThreads % 25 == 0) look();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  // Descriptors are closed and opened while they are counted, and AllowedReads
  // opens a path twice.
  EXPECT_LE(highest, kMost + 2 * kThreads);
  EXPECT_LE(Descriptors(), kMost);
  EXPECT_GE(Descriptors(), kMost - kThreads);
  EXPECT_EQ(storage_->open_files()->open(), Descriptors());
  sources_.clear();
  EXPECT_EQ(Descriptors(), 0u);
}

TEST_F(SourcesTest, ABudgetOfOneServesAll) {
  UseBudget(1);
  MakeSources(6);
  for (size_t record = 0; record < kRecords; ++record)
    for (size_t i = 0; i < sources_.size(); ++i) {
      EXPECT_TRUE(Read(i, record)) << i;
      EXPECT_LE(Descriptors(), 1u);
    }
}

TEST_F(SourcesTest, RandomSourcesAndThreadsReadTheirBytes) {
  constexpr size_t kThreads = 4, kSources = 9, kRounds = 100;
  for (const size_t most : {1, 4, 50}) {
    sources_.clear();
    UseBudget(most);
    MakeSources(kSources);
    std::atomic<size_t> wrong{0};
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        std::minstd_rand random(static_cast<uint32_t>(thread) + 1);
        std::unique_ptr<Source> own;
        for (size_t round = 0; round < kRounds; ++round) {
          wrong += Read(random() % kSources, random() % kRecords) ? 0 : 1;
          if (round % 25 == 0) own = MakeSource(kSources + thread);
          wrong += own->Read(random() % kRecords).ok() ? 0 : 1;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_LE(Descriptors(), most);
  }
}

// The files of each reader are replaced after they were closed.
TEST_F(SourcesTest, AReplacedFileIsAnErrorOfEachReader) {
  UseBudget(1);
  MakeSources(4);
  for (size_t i = 0; i < sources_.size(); ++i) EXPECT_TRUE(Read(i, 0));
  for (size_t i = 0; i < 3; ++i) {
    dir_.Write("new", "other bytes of another size");
    std::filesystem::rename(dir_.path() + "/new",
                            fmt::format("{}/{}", dir_.path(), i));
    const absl::Status status = sources_[i]->Read(1).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(FaultOf(status), Fault::kObject) << status;
  }
  EXPECT_TRUE(Read(3, 1));
}

}  // namespace
}  // namespace leat::worker
