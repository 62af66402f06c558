// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "leat/stored/v1/records.pb.h"
#include "tests/worker/source/storage/remote/fixture.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

class RemoteImageFolder : public RemoteStorage {
 protected:
  static Node Reader(const std::string& path, int64_t repeat = 1) {
    Node reader{.op = "readers.image_folder"};
    reader.args["path"] = path;
    reader.args["repeat"] = repeat;
    return reader;
  }
  SourceLimits Limits() const {
    SourceLimits limits;
    limits.storage = storage_.get();
    return limits;
  }
  absl::StatusOr<BuiltIndex> Built(const std::string& path = "s3://bucket/d") {
    return BuildIndex(Reader(path), Limits());
  }
  BuiltIndex Index(const std::string& path = "s3://bucket/d") {
    auto index = Built(path);
    EXPECT_TRUE(index.ok()) << index.status();
    return index.ok() ? *std::move(index) : BuiltIndex{};
  }
  std::unique_ptr<Source> Opened(const BuiltIndex& index,
                                 const std::string& path = "s3://bucket/d") {
    auto source = OpenSource(Reader(path), index.blob, Limits());
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  // Returns for every sample: its Describe below the root, its bytes and its
  // label.
  static std::vector<std::string> All(const Source& source, size_t root) {
    std::vector<std::string> all;
    for (uint64_t i = 0; i < source.num_samples(); ++i) {
      const auto stored = source.Read(i);
      EXPECT_TRUE(stored.ok()) << stored.status();
      if (!stored.ok()) break;
      const auto bytes = stored->fields[0].bytes;
      int32_t label = -1;
      std::memcpy(&label, stored->fields[1].bytes.data(), sizeof label);
      all.push_back(fmt::format(
          "{} {} {}", source.Describe(i).substr(root + 1),
          std::string_view(reinterpret_cast<const char*>(bytes.data()),
                           bytes.size()),
          label));
    }
    return all;
  }
  absl::Status Malformed(
      const std::function<void(stored::v1::ImageFolderIndex*)>& change) {
    stored::v1::ImageFolderIndex index;
    index.ParseFromString(Index().blob);
    change(&index);
    return OpenSource(Reader("s3://bucket/d"), index.SerializeAsString(),
                      Limits())
        .status();
  }
};

TEST_F(RemoteImageFolder, HasTheSamplesOfTheSameFolderOnDisk) {
  const TempDir folder;
  const char* const names[] = {
      "a/2.jpg",         "a/1.JPEG",       "a-b/x.png",     "a/deep/er/3.webp",
      "a/.hidden.jpg",   "a/.dir/x.jpg",   ".hidden/x.jpg", ".x.jpg",
      "empty/notes.txt", "b c+%<ü>/9.tif", "root.jpg",      "a/notes.txt",
      "a/sub.jpg/x.bmp"};
  for (const std::string name : names) {
    folder.Write(name, "bytes of " + name);
    server_.Put("/bucket/d/" + name, "bytes of " + name);
  }
  server_.Put("/bucket/d/folder/", "");
  server_.Put("/bucket/d2/other.jpg", "1");
  server_.set_page_keys(3);
  const BuiltIndex local = Index(folder.path());
  const BuiltIndex remote = Index();
  EXPECT_EQ(remote.classes, local.classes);
  EXPECT_THAT(remote.classes, ElementsAre("a", "a-b", "b c+%<ü>", "empty"));
  EXPECT_EQ(remote.groups, local.groups);
  EXPECT_THAT(remote.groups,
              ElementsAre(Group{"a", 4}, Group{"a-b", 1}, Group{"b c+%<ü>", 1},
                          Group{"empty", 0}));
  EXPECT_EQ(remote.bytes, local.bytes);
  EXPECT_EQ(remote.name, "d");
  EXPECT_EQ(remote.shards.num_samples(), 6);
  EXPECT_NE(remote.fingerprint, local.fingerprint);
  const auto source = Opened(remote);
  EXPECT_EQ(source->fingerprint(), remote.fingerprint);
  EXPECT_EQ(All(*source, strlen("s3://bucket/d")),
            All(*Opened(local, folder.path()), folder.path().size()));
}

TEST_F(RemoteImageFolder, HiddenNamesAreTakenWhereTheReaderSaysSo) {
  const TempDir folder;
  for (const std::string name : {"a/1.jpg", "a/.2.jpg", ".h/3.jpg", ".x.jpg"}) {
    folder.Write(name, "bytes of " + name);
    server_.Put("/bucket/d/" + name, "bytes of " + name);
  }
  server_.Put("/bucket/d/../4.jpg", "4");
  server_.Put("/bucket/d/a/./5.jpg", "5");
  for (const std::string& root :
       {std::string("s3://bucket/d"), folder.path()}) {
    Node reader = Reader(root);
    reader.args["hidden"] = true;
    const auto index = BuildIndex(reader, Limits());
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_THAT(index->classes, ElementsAre(".h", "a"));
    EXPECT_EQ(index->shards.num_samples(), 3) << root;
    EXPECT_TRUE(OpenSource(reader, index->blob, Limits()).ok());
  }
}

TEST_F(RemoteImageFolder, AListInABucketNamesItsNeighboursAndOtherUris) {
  server_.Put("/bucket/d/list.txt", "a b.jpg 7\ns3://bucket/other/c.jpg 1\n");
  server_.Put("/bucket/d/a b.jpg", "first");
  server_.Put("/bucket/other/c.jpg", "second");
  Node reader{.op = "readers.file_list"};
  reader.args["path"] = std::string("s3://bucket/d/list.txt");
  const auto index = BuildIndex(reader, Limits());
  ASSERT_TRUE(index.ok()) << index.status();
  const auto source = OpenSource(reader, index->blob, Limits());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(All(**source, strlen("s3://bucket")),
              ElementsAre("d/a b.jpg first 7", "other/c.jpg second 1"));
  server_.Put("/bucket/d/a b.jpg", "another");
  const auto changed = OpenSource(reader, index->blob, Limits());
  EXPECT_THAT((*changed)->Read(0).status().code(), Code::kFailedPrecondition);
}

TEST_F(RemoteImageFolder, ImagesOfTheRootAloneAreOneClass) {
  server_.Put("/bucket/b.jpg", "B");
  server_.Put("/bucket/a.png", "A");
  server_.Put("/bucket/notes/x.txt", "x");
  for (const std::string root : {"s3://bucket", "s3://bucket/"}) {
    const BuiltIndex index = Index(root);
    EXPECT_THAT(index.classes, ElementsAre(""));
    EXPECT_EQ(index.name, "bucket");
    EXPECT_THAT(All(*Opened(index, root), strlen("s3://bucket")),
                ElementsAre("a.png A 0", "b.jpg B 0"));
  }
}

TEST_F(RemoteImageFolder, RepeatGoesOverTheFilesAgain) {
  server_.Put("/bucket/d/a/1.jpg", "1");
  server_.Put("/bucket/d/a/2.jpg", "2");
  const auto index = BuildIndex(Reader("s3://bucket/d", 3), Limits());
  const auto source =
      OpenSource(Reader("s3://bucket/d", 3), index->blob, Limits());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->num_samples(), 6);
  EXPECT_EQ((*source)->RecordOf(5), 1);
  EXPECT_NE(index->fingerprint, Index().fingerprint);
}

TEST_F(RemoteImageFolder, TheFingerprintIsOfTheObjects) {
  server_.Put("/bucket/d/a/1.jpg", "1", "v1");
  const BuiltIndex first = Index();
  EXPECT_EQ(Index().fingerprint, first.fingerprint);
  EXPECT_EQ(Index("s3://bucket/d/").fingerprint, first.fingerprint);
  server_.Put("/bucket/d/a/1.jpg", "1", "v2");
  EXPECT_NE(Index().fingerprint, first.fingerprint);
}

TEST_F(RemoteImageFolder, AnObjectThatChangedIsAnErrorThatNamesBoth) {
  server_.Put("/bucket/d/a/1.jpg", "before", "v1");
  server_.Put("/bucket/d/a/2.jpg", "stays");
  const auto source = Opened(Index());
  server_.Put("/bucket/d/a/1.jpg", "behind", "v2");
  const absl::Status status = source->Read(0).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("s3://bucket/d/a/1.jpg"),
                                  HasSubstr("\"v1\""), HasSubstr("\"v2\"")));
  EXPECT_TRUE(source->Read(1).ok());
  server_.Remove("/bucket/d/a/1.jpg");
  EXPECT_EQ(source->Read(0).status().code(), Code::kNotFound);
}

TEST_F(RemoteImageFolder, OpeningAsksStorageForNothing) {
  server_.Put("/bucket/d/a/1.jpg", "1");
  const BuiltIndex index = Index();
  const size_t before = server_.Seen().size();
  const auto source = Opened(index);
  EXPECT_EQ(server_.Seen().size(), before);
  EXPECT_TRUE(source->Read(0).ok());
  EXPECT_EQ(server_.Seen().size(), before + 1);
}

TEST_F(RemoteImageFolder, ReadsAreTriedAgain) {
  server_.Put("/bucket/d/a/1.jpg", Pattern(5000));
  const auto source = Opened(Index());
  server_.Next(ObjectServer::Status(503), 3);
  const auto stored = source->Read(0);
  ASSERT_TRUE(stored.ok()) << stored.status();
  const auto bytes = stored->fields[0].bytes;
  EXPECT_EQ(
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      Pattern(5000));
}

TEST_F(RemoteImageFolder, KeysWithEmptyPartsArePassedOver) {
  server_.Put("/bucket/d//a/1.jpg", "1");
  server_.Put("/bucket/d/a//1.jpg", "1");
  EXPECT_EQ(Built().status().code(), Code::kNotFound);
  server_.Put("/bucket/d/a/2.jpg", "2");
  EXPECT_THAT(All(*Opened(Index()), strlen("s3://bucket/d")),
              ElementsAre("a/2.jpg 2 0"));
}

TEST_F(RemoteImageFolder, KeysWithAZeroByteArePassedOver) {
  server_.Put(std::string("/bucket/d/A\0/1.jpg", 18), "1");
  server_.Put(std::string("/bucket/d/a/\0.jpg", 17), "1");
  server_.Put("/bucket/d/a/2.jpg", "2");
  const BuiltIndex index = Index();
  EXPECT_THAT(index.classes, ElementsAre("a"));
  EXPECT_THAT(All(*Opened(index), strlen("s3://bucket/d")),
              ElementsAre("a/2.jpg 2 0"));
}

TEST_F(RemoteImageFolder, NoImagesIsAnErrorThatSaysWhatWasLookedFor) {
  EXPECT_EQ(Built().status().code(), Code::kNotFound);
  server_.Put("/bucket/d/a/notes.txt", "1");
  const absl::Status status = Built().status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("s3://bucket/d: no images"), HasSubstr("*.jpg")));
}

TEST_F(RemoteImageFolder, NamesThatAreNotTextAreAnError) {
  server_.Put("/bucket/d/a/\xff.jpg", "1");
  EXPECT_EQ(Built().status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(Text(Built().status()), HasSubstr("\\xff.jpg"));
}

TEST_F(RemoteImageFolder, LimitsHold) {
  server_.Put("/bucket/d/a/1.jpg", "12345");
  server_.Put("/bucket/d/a/2.jpg", "1");
  const BuiltIndex index = Index();
  SourceLimits limits = Limits();
  limits.max_files = 1;
  EXPECT_EQ(BuildIndex(Reader("s3://bucket/d"), limits).status().code(),
            Code::kResourceExhausted);
  EXPECT_EQ(
      OpenSource(Reader("s3://bucket/d"), index.blob, limits).status().code(),
      Code::kResourceExhausted);
  limits = Limits();
  limits.max_file_bytes = 4;
  const auto source = OpenSource(Reader("s3://bucket/d"), index.blob, limits);
  const absl::Status status = (*source)->Read(0).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("a/1.jpg has 5 bytes"), HasSubstr("is 4")));
  const std::atomic<bool> cancelled = true;
  limits.cancelled = &cancelled;
  EXPECT_EQ(BuildIndex(Reader("s3://bucket/d"), limits).status().code(),
            Code::kCancelled);
}

TEST_F(RemoteImageFolder, HttpHasNoListing) {
  EXPECT_EQ(Built(Url("/bucket/d")).status().code(), Code::kUnimplemented);
}

TEST_F(RemoteImageFolder, AFileUriIsItsPath) {
  const TempDir folder;
  folder.Write("a b/1.jpg", "1");
  const BuiltIndex index = Index("file://" + folder.path());
  EXPECT_EQ(index.fingerprint, Index(folder.path()).fingerprint);
  EXPECT_THAT(
      All(*Opened(index, "file://" + folder.path()), folder.path().size()),
      ElementsAre("a b/1.jpg 1 0"));
}

TEST_F(RemoteImageFolder, UrisThatNameNoStorageAreErrors) {
  for (const char* path : {"s3://", "s3:///x", "ftp://host/x", "file://host/x"})
    EXPECT_EQ(Built(path).status().code(), Code::kInvalidArgument) << path;
}

TEST_F(RemoteImageFolder, AMalformedIndexIsRefused) {
  server_.Put("/bucket/d/a/1.jpg", "1");
  server_.Put("/bucket/d/b/2.jpg", "2");
  using Index = stored::v1::ImageFolderIndex;
  const auto file = [](Index* index) {
    return index->mutable_classes(0)->mutable_files(0);
  };
  EXPECT_TRUE(Malformed([](Index*) {}).ok());
  const std::function<void(Index*)> changes[] = {
      [&](Index* index) { file(index)->set_name("../x.jpg"); },
      [&](Index* index) { file(index)->set_name("/x.jpg"); },
      [&](Index* index) { file(index)->clear_name(); },
      [&](Index* index) { file(index)->clear_identity(); },
      [&](Index* index) { file(index)->set_identity("garbage"); },
      [&](Index* index) { file(index)->set_identity(std::string(4000, 'x')); },
      [&](Index* index) { file(index)->set_bytes(2); },
      [](Index* index) { index->mutable_classes(0)->set_directory(".."); },
      [](Index* index) { index->set_root("s3://bucket/e"); },
      [](Index* index) { index->set_repeat(2); },
      [](Index* index) { index->clear_classes(); }};
  for (const auto& change : changes)
    EXPECT_EQ(Malformed(change).code(), Code::kDataLoss)
        << &change - &changes[0];
  const std::string blob = this->Index().blob;
  for (size_t size = 0; size < blob.size(); ++size)
    EXPECT_FALSE(
        OpenSource(Reader("s3://bucket/d"), blob.substr(0, size), Limits())
            .ok() &&
        size < 20);
}

}  // namespace
}  // namespace leat::worker
