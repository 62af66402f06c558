// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/source/mds/mds_fixture.h"
#include "tests/worker/source/remote_source.h"

namespace leat::worker {
namespace {

class RemoteMds : public RemoteSource {
 protected:
  // Puts a shard with the column tokens (bytes); returns its source.
  std::unique_ptr<Source> OpenDocuments(
      const std::vector<std::string>& documents) {
    std::vector<std::string> samples;
    for (const std::string& document : documents)
      samples.push_back(Little(static_cast<uint32_t>(document.size())) +
                        document);
    const std::string shard = Shard(samples);
    server_.Put("/bucket/t/s.mds", shard);
    server_.Put(
        "/bucket/t/index.json",
        IndexJson({ShardJson(FileJson("s.mds", shard), "null", documents.size(),
                             {R"(["tokens"])", R"(["bytes"])", "[null]"})}));
    return Open({.op = "readers.mds",
                 .inputs = {},
                 .args = {{"path", "s3://bucket/t"},
                          {"columns", std::vector<std::string>{"tokens"}},
                          {"types", std::vector<std::string>{"int32[?]"}}}});
  }
};

TEST_F(RemoteMds, SamplesAskedForTogetherAreOneRequest) {
  StorageConfig config = Small();
  config.range_bytes = 1 << 20;
  Restart(config);
  std::vector<std::string> documents;
  for (int32_t i = 0; i < 5; ++i)
    documents.push_back(BytesOfValues(std::vector<int32_t>(9000, i)));
  documents[4].pop_back();
  const auto source = OpenDocuments(documents);
  ASSERT_NE(source, nullptr);
  ASSERT_TRUE(source->Read(0).ok());
  const size_t before = server_.Seen().size();
  const auto read = source->ReadMany(std::vector<uint64_t>{1, 2, 3, 4});
  EXPECT_EQ(server_.Seen().size() - before, 1u);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(read[i].ok()) << read[i].status();
    EXPECT_EQ(TextOf(read[i]->fields[0]), documents[i + 1]);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(read[3].status())) << "its own fault";
}

}  // namespace
}  // namespace leat::worker
