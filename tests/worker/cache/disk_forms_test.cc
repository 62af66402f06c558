// SPDX-License-Identifier: Apache-2.0
//
// Rows of a job whose records and forms are kept on a disk equal the rows of a
// job that keeps nothing, whatever the disk holds.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/cache/disk_forms_fixture.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

std::vector<std::string> ManyImages() {
  std::vector<std::string> files = JpegsOfManyKinds();
  for (uint32_t seed = 0; seed < 12; ++seed)
    files.push_back(MakeJpeg({.width = 150 + static_cast<int>(seed),
                              .height = 120,
                              .orientation = static_cast<int>(seed % 9),
                              .seed = seed + 1}));
  const size_t sound = files.size();
  for (size_t i = 0; i < sound; i += 4)
    for (std::string& copy :
         JpegDamager(files[i], static_cast<uint32_t>(i)).Copies(60))
      files.push_back(std::move(copy));
  return files;
}

std::string TinyImage(uint32_t seed) {
  return MakeJpeg({.width = 16,
                   .height = 16,
                   .color = testing::JpegColor::kGray,
                   .h = 1,
                   .v = 1,
                   .quality = 50,
                   .seed = seed});
}

// Each record has the form that the last of many restarts, with memory of any
// size and any choice of forms, happens to have left.
TEST_F(DiskFormsTest, RowsAreThoseWithoutItColdWarmAndAfterRestarts) {
  WriteImages(ManyImages());
  std::mt19937 random(3);
  uint64_t by_forms = 0, epoch = 0;
  for (const uint64_t memory_bytes : {0u, 0u, 300'000u, 30'000'000u, 0u, 0u})
    for (const FormKinds kinds :
         {FormKinds{.seek_index = true}, kBothForms, FormKinds{},
          FormKinds{.coefficients = true}, kBothForms}) {
      Restart(kinds);
      RichCache memory(memory_bytes, &uses_, kinds);
      const auto job = Job(&memory, disk_.get());
      const auto use = job->BeginUse();
      for (int i = 0; i < 3; ++i) {
        CheckEpoch(*job, epoch++);
        Written();
      }
      by_forms += DecodesByForms(memory);
      // Some files are missing.
      if (random() % 4 == 0) {
        disk_.reset();
        cache_.reset();
        for (const std::string& file : Files())
          if (random() % 2 == 0) std::filesystem::remove(file);
      }
    }
  EXPECT_GT(by_forms, 500u);
}

TEST_F(DiskFormsTest, FormsSurviveARestartAndAreUsedFromTheFirstEpoch) {
  std::vector<std::string> files;
  for (uint32_t seed = 1; seed <= 40; ++seed)
    files.push_back(MakeJpeg({.width = 160, .height = 120, .seed = seed}));
  WriteImages(files);
  Restart();
  {
    RichCache memory(0, &uses_, kBothForms);
    const auto job = Job(&memory, disk_.get());
    const auto use = job->BeginUse();
    for (uint64_t epoch = 0; epoch < 4; ++epoch) {
      CheckEpoch(*job, epoch);
      Written();
      // A record gets the next form each epoch, and the first 16 decodes are
      // measured.
      const auto seek = OnDisk(JpegFormKind::kSeekIndex);
      const auto coefficients = OnDisk(JpegFormKind::kCoefficients);
      if (epoch == 0) {
        EXPECT_EQ(seek.entries, 40u - FormShelf::kFirstPlain);
        EXPECT_EQ(coefficients.entries, 0u);
      } else if (epoch == 1) {
        EXPECT_EQ(seek.entries, 40u);
        EXPECT_EQ(coefficients.entries, 40u - FormShelf::kFirstPlain);
      }
    }
    EXPECT_EQ(OnDisk(JpegFormKind::kCoefficients).entries, 40u);
  }
  const CachedDatasetStats kept = cache_->stats().datasets.front();
  EXPECT_EQ(kept.entries, 40u) << "the records themselves";
  EXPECT_GT(kept.bytes, 40u * 5000);
  Restart();
  RichCache memory(0, &uses_, kBothForms);
  const auto job = Job(&memory, disk_.get());
  const auto use = job->BeginUse();
  CheckEpoch(*job, 9);
  EXPECT_EQ(DecodesByForms(memory), 40u - FormShelf::kFirstPlain);
  EXPECT_EQ(cache_->stats().hits, 40u) << "no record is read where it lies";
  EXPECT_EQ(cache_->stats().damaged, 0u);
}

// A record's form in memory replaces its form on the disk, and comes from
// there.
TEST_F(DiskFormsTest, MemoryTakesFormsFromTheDiskAndGivesItItsOwn) {
  std::vector<std::string> files;
  for (uint32_t seed = 1; seed <= 40; ++seed)
    files.push_back(MakeJpeg({.width = 160, .height = 120, .seed = seed}));
  WriteImages(files);
  for (int round = 0; round < 2; ++round) {
    Restart();
    RichCache memory(100 << 20, &uses_, kBothForms);
    const auto job = Job(&memory, disk_.get());
    const auto use = job->BeginUse();
    for (uint64_t epoch = 0; epoch < 4; ++epoch) {
      CheckEpoch(*job, epoch);
      Written();
    }
    EXPECT_GE(OnDisk(JpegFormKind::kSeekIndex).entries +
                  OnDisk(JpegFormKind::kCoefficients).entries,
              40u);
    uint64_t in_memory = 0;
    const auto stats = memory.stats();
    for (const CachedFormStats& form : stats.datasets[0].forms)
      in_memory += form.entries;
    EXPECT_EQ(in_memory, 40u);
  }
}

// Once for each kind, in two epochs.
TEST_F(DiskFormsTest, WhatHasNoFormsIsTriedOnce) {
  std::vector<std::string> files;
  for (uint32_t seed = 1; seed <= 40; ++seed)
    files.push_back(MakeJpeg(
        {.width = 90, .height = 70, .restart_interval = 3, .seed = seed}));
  WriteImages(files);
  Restart();
  RichCache memory(0, &uses_, kBothForms);
  auto job = Job(&memory, disk_.get());
  const auto use = job->BeginUse();
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    CheckEpoch(*job, epoch);
    Written();
  }
  for (const auto kind :
       {JpegFormKind::kSeekIndex, JpegFormKind::kCoefficients}) {
    EXPECT_EQ(OnDisk(kind).entries, 40u);
    EXPECT_LT(OnDisk(kind).bytes, 40u * 64);
  }
  job.reset();
  Restart();
  job = Job(&memory, disk_.get());
  CheckEpoch(*job, 4);
  Written();
  for (const auto kind :
       {JpegFormKind::kSeekIndex, JpegFormKind::kCoefficients})
    EXPECT_EQ(OnDisk(kind).entries, 40u);
  EXPECT_EQ(DecodesByForms(memory), 0u);
  EXPECT_EQ(cache_->stats().damaged, 0u);
}

TEST_F(DiskFormsTest, ProgressiveFilesHaveCoefficientsFromTheSecondEpochOn) {
  std::vector<std::string> files;
  for (uint32_t seed = 1; seed <= 40; ++seed)
    files.push_back(MakeJpeg(
        {.width = 90, .height = 70, .progressive = true, .seed = seed}));
  WriteImages(files);
  Restart();
  RichCache memory(0, &uses_, kBothForms);
  auto job = Job(&memory, disk_.get());
  const auto use = job->BeginUse();
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    CheckEpoch(*job, epoch);
    Written();
  }
  EXPECT_GT(OnDisk(JpegFormKind::kCoefficients).bytes, 40u * 1000);
  EXPECT_EQ(DecodesByForms(memory), 0u);
  job.reset();
  Restart();
  job = Job(&memory, disk_.get());
  CheckEpoch(*job, 2);
  EXPECT_GT(DecodesByForms(memory), 20u);
  EXPECT_EQ(cache_->stats().damaged, 0u);
}

// Every byte of every file is changed once.
TEST_F(DiskFormsTest, NoByteThatIsFlippedIsSeenByARow) {
  ASSERT_TRUE(SetLogLevel("error").ok());
  WriteImages({TinyImage(1)});
  RichCache memory(0, &uses_, kBothForms);
  {
    Restart();
    const auto job = Job(&memory, disk_.get());
    const auto use = job->BeginUse();
    for (uint64_t epoch = 0; epoch < 24; ++epoch) {
      CheckEpoch(*job, epoch);
      Written();
    }
    EXPECT_EQ(OnDisk(JpegFormKind::kCoefficients).entries, 1u);
  }
  disk_.reset();
  cache_.reset();
  std::map<std::string, std::string> files;
  for (const std::string& file : Files()) {
    std::ifstream in(file, std::ios::binary);
    files[file].assign(std::istreambuf_iterator<char>(in), {});
  }
  full_ = true;  // so that nothing is repaired
  uint64_t flipped = 0, damaged = 0;
  const uint64_t before = DecodesByForms(memory);
  for (const auto& [file, bytes] : files)
    for (size_t at = 0; at < bytes.size(); ++at, ++flipped) {
      // Segments that held nothing any more were removed.
      for (const auto& [other, content] : files)
        if (!std::filesystem::exists(other))
          std::ofstream(other, std::ios::binary) << content;
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      std::ofstream(file, std::ios::binary) << changed;
      Restart();
      const auto job = Job(&memory, disk_.get());
      const auto use = job->BeginUse();
      CheckEpoch(*job, flipped % 7);
      damaged += cache_->stats().damaged;
      if (at + 1 == bytes.size())
        std::ofstream(file, std::ios::binary) << bytes;
    }
  EXPECT_GT(flipped, 500u);
  EXPECT_GT(damaged, flipped / 3) << "seen, and counted";
  // Coefficients that are damaged are made again.
  EXPECT_GT(DecodesByForms(memory) - before, flipped / 3);
  ASSERT_TRUE(SetLogLevel("info").ok());
}

TEST_F(DiskFormsTest, FilesThatAreCutOffAnywhereCostNothingButTime) {
  WriteImages({TinyImage(1), TinyImage(2)});
  RichCache memory(0, &uses_, kBothForms);
  for (uint64_t round = 0; round < 40; ++round) {
    Restart();
    const auto job = Job(&memory, disk_.get());
    const auto use = job->BeginUse();
    for (uint64_t epoch = 0; epoch < 12; ++epoch) CheckEpoch(*job, epoch);
    Written();
    EXPECT_GT(OnDisk(JpegFormKind::kSeekIndex).entries +
                  OnDisk(JpegFormKind::kCoefficients).entries,
              0u);
    disk_.reset();
    cache_.reset();
    const std::vector<std::string> files = Files();
    const std::string& file = files[round % files.size()];
    std::filesystem::resize_file(
        file, std::filesystem::file_size(file) * (round % 10) / 10);
  }
}

TEST_F(DiskFormsTest, AFullDiskLeavesTheRowsAsTheyAre) {
  std::vector<std::string> files;
  for (uint32_t seed = 1; seed <= 30; ++seed)
    files.push_back(MakeJpeg({.width = 60, .height = 50, .seed = seed}));
  WriteImages(files);
  full_ = true;
  Restart();
  RichCache memory(0, &uses_, kBothForms);
  const auto job = Job(&memory, disk_.get());
  const auto use = job->BeginUse();
  for (uint64_t epoch = 0; epoch < 3; ++epoch) CheckEpoch(*job, epoch);
  Written();
  EXPECT_EQ(OnDisk(JpegFormKind::kSeekIndex).hits, 0u);
  EXPECT_EQ(DecodesByForms(memory), 0u);
}

}  // namespace
}  // namespace leat::worker
