// SPDX-License-Identifier: Apache-2.0
#include "worker/source/record_paths.h"

#include "tests/worker/source/storage/remote/fixture.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;

class RecordPathsTest : public RemoteStorage {
 protected:
  absl::StatusOr<std::vector<std::string>> Listed(const std::string& path) {
    SourceLimits limits;
    limits.storage = storage_.get();
    ASSIGN_OR_RETURN(
        const std::vector<ListedFile> files,
        ListPaths(
            {path}, [](std::string_view) { return true; }, limits));
    std::vector<std::string> uris;
    for (const ListedFile& file : files) uris.push_back(file.uri);
    return uris;
  }
  // The server answers so if it has no such object.
  void RefuseWhatIsMissing(int status) {
    server_.Always(
        [status](const ObjectServer::Request&, ObjectServer::Reply* reply) {
          if (reply->status == 404) *reply = {.status = status};
        });
  }
};

// S3 says only to those who may list a bucket that an object is not there.
TEST_F(RecordPathsTest, BracesAreExpandedWhereTheServerRefusesTheirName) {
  server_.Put("/bucket/t-0.tar", "0");
  server_.Put("/bucket/t-1.tar", "1");
  for (const int status : {404, 403, 400}) {
    RefuseWhatIsMissing(status);
    for (const std::string& folder :
         {std::string("s3://bucket"), Url("/bucket")}) {
      const auto listed = Listed(folder + "/t-{0..1}.tar");
      ASSERT_TRUE(listed.ok()) << status << listed.status();
      EXPECT_THAT(*listed,
                  ElementsAre(folder + "/t-0.tar", folder + "/t-1.tar"));
      const absl::Status none = Listed(folder + "/t-{1..2}.tar").status();
      EXPECT_THAT(Text(none), testing::HasSubstr(folder + "/t-2.tar"));
    }
  }
}

// A list of 30 names is longer than a file's name may be, one of 500 is longer
// than a path.
TEST_F(RecordPathsTest, ListsInBracesMayBeLongerThanNamesOfFiles) {
  for (const int count : {30, 500}) {
    std::string all;
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("shard-{:06}", i);
      all += name + ",";
      server_.Put("/bucket/" + name + ".tar", "");
      home_.Write(name + ".tar", "");
    }
    all.pop_back();
    for (const std::string& folder :
         {std::string("s3://bucket"), home_.path()}) {
      const auto listed = Listed(folder + "/{" + all + "}.tar");
      ASSERT_TRUE(listed.ok()) << listed.status();
      EXPECT_EQ(listed->size(), static_cast<size_t>(count));
      EXPECT_EQ(listed->front(), folder + "/shard-000000.tar");
    }
  }
}

// A '?' of an http address is no pattern's, however its scheme is written.
TEST_F(RecordPathsTest, TheSchemeOfAnAddressMayHaveCapitals) {
  server_.Put("/bucket/a.tar", "a");
  const std::string address = "HTTP" + Url("/bucket/a.tar?key=1").substr(4);
  const auto listed = Listed(address);
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(*listed, ElementsAre(address));
}

}  // namespace
}  // namespace leat::worker
