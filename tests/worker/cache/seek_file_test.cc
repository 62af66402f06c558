// SPDX-License-Identifier: Apache-2.0
//
// Seek indexes beside a dataset: rows equal those of a worker that has none,
// whatever the file holds.
#include "worker/cache/seek_file.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/cache/disk_forms_fixture.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "tests/worker/source/storage/base/open_descriptors.h"
#include "worker/index_command/seek_indexer.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using testing::MakeJpeg;
using Code = absl::StatusCode;

constexpr uint64_t kPhotos = 40;

class SeekFileTest : public DiskFormsTest {
 protected:
  void WritePhotos() {
    std::vector<std::string> files;
    for (uint32_t seed = 1; seed <= kPhotos; ++seed)
      files.push_back(MakeJpeg({.width = 160, .height = 120, .seed = seed}));
    WriteImages(files);
  }
  const Node& reader() const { return job_.info.spec.pipeline.nodes[0]; }
  const Digest& fingerprint() const {
    return job_.info.datasets[0].fingerprint;
  }
  std::string Path() const {
    return SeekFilePath(RootOf(reader()), fingerprint());
  }

  WrittenSeekFile Index() {
    SourceLimits limits;
    std::atomic<uint64_t> read = 0;
    const auto built = BuildIndex(reader(), limits);
    EXPECT_TRUE(built.ok()) << built.status();
    EXPECT_EQ(built->fingerprint, fingerprint());
    const auto written = WriteSeekFile(reader(), *built, limits, &read);
    EXPECT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(read, records_);
    return written.value_or(WrittenSeekFile());
  }
  // Returns a job of a worker that uses seek indexes and has no memory for
  // other forms.
  std::shared_ptr<const JobRuntime> SeekingJob(SampleCache* memory) {
    seek_indexes_ = JpegFormCodec();
    return Job(memory, nullptr);
  }
  std::string Content() const {
    std::ifstream in(Path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Put(const std::string& content) const {
    std::ofstream(Path(), std::ios::binary | std::ios::trunc) << content;
  }
  absl::Status Refused() const {
    return SeekFile::Open(Path(), fingerprint(), JpegFormCodec()).status();
  }
};

TEST_F(SeekFileTest, AFirstEpochDecodesByIt) {
  WritePhotos();
  const WrittenSeekFile written = Index();
  EXPECT_EQ(written.path, Path());
  EXPECT_EQ(written.indexes, kPhotos);
  EXPECT_EQ(written.bytes, std::filesystem::file_size(Path()));
  RichCache memory(0, &uses_, kBothForms);
  const auto job = SeekingJob(&memory);
  CheckEpoch(*job, 0);
  EXPECT_EQ(DecodesByForms(memory), kPhotos - FormShelf::kFirstPlain);
}

TEST_F(SeekFileTest, AFileOfEachKindHasOneOrNone) {
  std::vector<std::string> files = JpegsOfManyKinds();
  const size_t sound = files.size();
  for (size_t i = 0; i < sound; i += 5)
    for (std::string& copy :
         JpegDamager(files[i], static_cast<uint32_t>(i)).Copies(80))
      files.push_back(std::move(copy));
  files.push_back("not an image");
  WriteImages(files);
  const WrittenSeekFile written = Index();
  EXPECT_GT(written.indexes, 5u);
  EXPECT_LT(written.indexes, files.size());
  RichCache memory(0, &uses_, kBothForms);
  const auto job = SeekingJob(&memory);
  for (uint64_t epoch = 0; epoch < 4; ++epoch) CheckEpoch(*job, epoch);
}

TEST_F(SeekFileTest, MemoryAndDiskTakeThem) {
  WritePhotos();
  Index();
  Restart();
  RichCache memory(0, &uses_, kBothForms);
  seek_indexes_ = JpegFormCodec();
  const auto job = Job(&memory, disk_.get());
  const auto use = job->BeginUse();
  CheckEpoch(*job, 0);
  Written();
  EXPECT_EQ(OnDisk(JpegFormKind::kSeekIndex).entries,
            kPhotos - FormShelf::kFirstPlain);
  EXPECT_EQ(OnDisk(JpegFormKind::kCoefficients).entries, 0u)
      << "an only epoch does not pay for them";
  CheckEpoch(*job, 1);
  Written();
  EXPECT_GT(OnDisk(JpegFormKind::kCoefficients).entries, 0u);
  EXPECT_EQ(cache_->stats().damaged, 0u);
}

// Any bytes in its place give the same rows as no file.
TEST_F(SeekFileTest, DamageChangesNoRow) {
  WritePhotos();
  Index();
  const std::string whole = Content();
  std::mt19937 random(5);
  uint64_t used = 0;
  for (int round = 0; round < 60; ++round) {
    std::string damaged = whole;
    if (round % 3 == 0) damaged.resize(random() % damaged.size());
    const size_t flips = round % 3 == 1 ? 1 : 40;
    for (size_t i = 0; i < flips && !damaged.empty(); ++i)
      damaged[random() % damaged.size()] ^=
          static_cast<char>(1 << random() % 8);
    // Half of the rounds keep the header, so that the rest is parsed.
    if (round % 2 == 0 && damaged.size() > 64)
      damaged.replace(0, 64, whole, 0, 64);
    Put(damaged);
    RichCache memory(0, &uses_, kBothForms);
    CheckEpoch(*SeekingJob(&memory), static_cast<uint64_t>(round));
    used += DecodesByForms(memory);
  }
  EXPECT_GT(used, 100u) << "records whose form is whole still have it";
}

// A record's index is of its own bytes, or not used.
TEST_F(SeekFileTest, AnotherRecordsIndexIsNotUsed) {
  WritePhotos();
  Index();
  const std::string whole = Content();
  const auto place = [&](uint64_t record) {
    uint64_t at = 0;
    for (int i = 8; i-- > 0;)
      at = at << 8 | static_cast<uint8_t>(whole[64 + 8 * record + i]);
    return at;
  };
  std::vector<std::vector<std::byte>> forms;
  for (uint64_t i = kPhotos; i-- > 0;) {
    const auto* bytes = reinterpret_cast<const std::byte*>(whole.data());
    forms.emplace_back(bytes + place(i), bytes + place(i + 1));
  }
  auto writer = SeekFileWriter::Create(Path(), fingerprint(), kPhotos,
                                       JpegFormCodec().version);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(forms).ok());
  EXPECT_EQ((*writer)->Append({forms.data(), 1}).code(),
            Code::kInvalidArgument);
  ASSERT_TRUE((*writer)->Finish().ok());
  RichCache memory(0, &uses_, kBothForms);
  CheckEpoch(*SeekingJob(&memory), 0);
  EXPECT_EQ(DecodesByForms(memory), 0u);
}

TEST_F(SeekFileTest, AFileThatIsNoneOfItsDatasetSaysSo) {
  WritePhotos();
  EXPECT_EQ(Refused().code(), Code::kNotFound);
  Index();
  const std::string whole = Content();
  EXPECT_TRUE(Refused().ok());
  Put("a text of some length, longer than the header of 64 bytes, and no more");
  EXPECT_EQ(Refused().code(), Code::kInvalidArgument);
  EXPECT_THAT(Message(Refused()), HasSubstr(Path()));
  Put(whole.substr(0, 40));
  EXPECT_EQ(Refused().code(), Code::kDataLoss);
  Put(whole.substr(0, 100));
  EXPECT_THAT(Message(Refused()), HasSubstr("too short for 40 records"));
  std::string other = whole;
  other[8] = 9;
  Put(other);
  EXPECT_THAT(Message(Refused()), HasSubstr("version 9.1, want 1.1"));
  other = whole;
  other[30] ^= 1;
  Put(other);
  EXPECT_EQ(Refused().code(), Code::kDataLoss);
  Put(whole);
  Digest of_another = fingerprint();
  of_another[20] ^= 1;
  EXPECT_EQ(SeekFile::Open(Path(), of_another, JpegFormCodec()).status().code(),
            Code::kFailedPrecondition);
  std::filesystem::remove(Path());
  ASSERT_EQ(mkfifo(Path().c_str(), 0600), 0);
  EXPECT_EQ(Refused().code(), Code::kFailedPrecondition) << "and at once";
}

// A use of one file closes the other.
TEST_F(SeekFileTest, AFileThatTheBudgetClosedIsOpenedAgain) {
  WritePhotos();
  Index();
  const auto budget = std::make_shared<OpenFileBudget>(1);
  const auto open = [&] {
    return *SeekFile::Open(Path(), fingerprint(), JpegFormCodec(), nullptr,
                           budget);
  };
  const auto first = open(), second = open();
  const auto source = *OpenSource(reader(), job_.blob, SourceLimits{});
  const auto has_form = [&](const SeekFile& file, uint64_t record) {
    StoredSample sample = *source->Read(record);
    file.ReadFormOf(record, &sample);
    return sample.form != nullptr;
  };
  for (uint64_t record = 0; record < 4; ++record) {
    EXPECT_TRUE(has_form(*first, record));
    EXPECT_TRUE(has_form(*second, record));
    EXPECT_EQ(OpenDescriptors(images_.path()), 1u);
  }
  const std::string whole = Content();
  std::filesystem::remove(Path());
  EXPECT_TRUE(has_form(*second, 4)) << "open still";
  EXPECT_FALSE(has_form(*first, 4));
  Put(whole);
  EXPECT_TRUE(has_form(*first, 4));
  // The header of another dataset's file.
  std::filesystem::remove(Path());
  std::string other = whole;
  other[24] ^= 1;
  Put(other);
  EXPECT_FALSE(has_form(*second, 4));
  EXPECT_FALSE(has_form(*first, 4));
}

TEST_F(SeekFileTest, NothingIsOpenedWhereAWorkerMayNotRead) {
  WritePhotos();
  Index();
  const auto allow = [](const std::string& folder) {
    return *AllowedReads::Create(
        std::vector<std::string>{folder},
        [](const char*) -> const char* { return nullptr; });
  };
  const auto outside = allow(images_.path() + "/k");
  const auto inside = allow(images_.path());
  const auto open = [&](const AllowedReads* allowed) {
    return SeekFile::Open(Path(), fingerprint(), JpegFormCodec(), allowed)
        .status();
  };
  EXPECT_TRUE(open(inside.get()).ok());
  EXPECT_EQ(open(outside.get()).code(), Code::kPermissionDenied);
  const std::string root = RootOf(reader());
  EXPECT_EQ(SeekFilePath(root, fingerprint(), inside.get()), Path());
  EXPECT_EQ(SeekFilePath(root, fingerprint(), outside.get()), "");
  // A link in its place is not followed, wherever it leads; a pipe, whose
  // writer would notice, is not opened.
  std::filesystem::rename(Path(), images_.path() + "/other");
  std::filesystem::create_symlink(images_.path() + "/other", Path());
  for (const AllowedReads* allowed :
       {inside.get(), (const AllowedReads*)nullptr})
    EXPECT_EQ(open(allowed).code(), Code::kFailedPrecondition);
  std::filesystem::remove(Path());
  ASSERT_EQ(mkfifo(Path().c_str(), 0600), 0);
  for (const AllowedReads* allowed :
       {inside.get(), (const AllowedReads*)nullptr})
    EXPECT_EQ(open(allowed).code(), Code::kFailedPrecondition);
  const int writer = ::open(Path().c_str(), O_WRONLY | O_NONBLOCK);
  EXPECT_EQ(writer, -1) << "nobody reads";
}

TEST_F(SeekFileTest, WhatIsNotFinishedLeavesNothing) {
  WritePhotos();
  {
    auto writer = SeekFileWriter::Create(Path(), fingerprint(), kPhotos,
                                         JpegFormCodec().version);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Append(std::vector<std::vector<std::byte>>(3)).ok());
    const auto second = SeekFileWriter::Create(Path(), fingerprint(), kPhotos,
                                               JpegFormCodec().version);
    EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
    EXPECT_THAT(Message(second.status()), HasSubstr("another process"));
  }
  EXPECT_TRUE(std::filesystem::equivalent(
      images_.path() + "/k",
      std::filesystem::directory_iterator(images_.path())->path()))
      << "only the class's folder";
  // A killed process has left this file.
  std::ofstream(Path() + ".new") << std::string(1 << 20, 'x');
  const WrittenSeekFile written = Index();
  EXPECT_EQ(std::filesystem::file_size(Path()), written.bytes);
  EXPECT_FALSE(std::filesystem::exists(Path() + ".new"));
  EXPECT_TRUE(Refused().ok());
  ASSERT_EQ(mkfifo((Path() + ".new").c_str(), 0600), 0);
  const auto pipe = SeekFileWriter::Create(Path(), fingerprint(), kPhotos,
                                           JpegFormCodec().version);
  EXPECT_FALSE(pipe.ok()) << "and at once";
  const auto nowhere =
      SeekFileWriter::Create("/nowhere/at/all", fingerprint(), 1, 1);
  EXPECT_EQ(nowhere.status().code(), Code::kNotFound);
  EXPECT_THAT(Message(nowhere.status()), HasSubstr("/nowhere/at/all"));
}

// Closing it unlocks it: from then on it may be another writer's.
TEST_F(SeekFileTest, AWriterThatGivesUpRemovesItsFileBeforeItClosesIt) {
  WritePhotos();
  auto writer = SeekFileWriter::Create(Path(), fingerprint(), kPhotos, 1);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const Fd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(
      inotify_add_watch(watch.get(),
                        std::filesystem::path(Path()).parent_path().c_str(),
                        IN_DELETE | IN_CLOSE_WRITE),
      0);
  writer->reset();
  alignas(inotify_event) char events[4096];
  ASSERT_GE(read(watch.get(), events, sizeof events),
            static_cast<ssize_t>(sizeof(inotify_event)));
  EXPECT_EQ(reinterpret_cast<const inotify_event*>(events)->mask,
            uint32_t{IN_DELETE});
}

TEST_F(SeekFileTest, ADatasetInABucketHasNoPath) {
  const auto path = [](std::string_view op, std::string_view arg,
                       const Value& at) {
    return SeekFilePath(
        RootOf({.op = std::string(op), .args = {{std::string(arg), at}}}),
        Digest());
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(path("readers.webdataset", "paths", Paths{"s3://bucket/a.tar"}),
            "");
  EXPECT_EQ(path("readers.webdataset", "paths", Paths{"/nowhere/*.tar"}),
            "/nowhere/.0000000000000000.leat-seek");
  EXPECT_EQ(path("readers.image_folder", "path", "file:///no%20where"),
            "/no where/.0000000000000000.leat-seek");
}

}  // namespace
}  // namespace leat::worker
