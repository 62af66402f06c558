// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/source/remote_source.h"
#include "tests/worker/source/tokens/megatron_maker.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<uint16_t>;

class RemoteTokens : public RemoteSource {
 protected:
  static Node Reader(const std::string& file, const std::string& dtype = "",
                     int64_t end = -1) {
    return {.op = "readers.tokens",
            .inputs = {},
            .args = {{"files", std::vector<std::string>{file}},
                     {"dtype", dtype},
                     {"end", end}}};
  }
  std::vector<Tokens> All(const Node& reader) {
    const auto source = Open(reader);
    std::vector<Tokens> all;
    for (uint64_t i = 0; source != nullptr && i < source->num_samples(); ++i) {
      const auto sample = source->Read(i);
      EXPECT_TRUE(sample.ok()) << sample.status();
      if (sample.ok()) all.push_back(ValuesOf<uint16_t>(sample->fields[0]));
    }
    return all;
  }
  void PutMegatron(const std::string& name, const std::string& data,
                   const MegatronIndex& index) {
    server_.Put(name + ".bin", data);
    server_.Put(name + ".idx", index.Bytes());
  }
};

TEST_F(RemoteTokens, AreThoseOfTheFilesInEveryStorage) {
  PutMegatron("/bucket/t/b", TokensFrom<uint16_t>(7, 3),
              MegatronIndex().Add({1, 2}));
  PutMegatron("/bucket/t/a", TokensFrom<uint16_t>(1, 2),
              MegatronIndex().Add({1}).Add({1}));
  EXPECT_THAT(All(Reader("s3://bucket/t/*.bin")),
              ElementsAre(Tokens{1}, Tokens{2}, Tokens{7, 8, 9}));
  EXPECT_THAT(All(Reader("s3://bucket/t/")),
              ElementsAre(Tokens{1}, Tokens{2}, Tokens{7, 8, 9}));
  EXPECT_THAT(All(Reader(Url("/bucket/t/b.bin"))),
              ElementsAre(Tokens{7, 8, 9}));
  EXPECT_THAT(All(Reader(Url("/bucket/t/b.bin"), "uint16", 8)),
              ElementsAre(Tokens{7, 8}, Tokens{9}));
}

TEST_F(RemoteTokens, NeighboursAreReadTogether) {
  MegatronIndex index;
  for (int i = 0; i < 100; ++i) index.Add({10});
  PutMegatron("/bucket/many", TokensFrom<uint16_t>(0, 1000), index);
  const auto source = Open(Reader("s3://bucket/many.bin"));
  ASSERT_NE(source, nullptr);
  const std::vector<uint64_t> samples = {3, 4, 5, 6};
  EXPECT_EQ(source->Nearby(samples, {}), samples.size());
  const auto read = source->ReadMany(samples);
  for (size_t i = 0; i < samples.size(); ++i) {
    ASSERT_TRUE(read[i].ok()) << read[i].status();
    EXPECT_EQ(ValuesOf<uint16_t>(read[i]->fields[0]).front(), 10 * samples[i]);
  }
}

TEST_F(RemoteTokens, WithoutTheirIndexAreAnErrorThatNamesIt) {
  server_.Put("/bucket/lone.bin", TokensFrom<uint16_t>(0, 4));
  limits_.storage = storage_.get();
  const absl::Status status =
      BuildIndex(Reader("s3://bucket/lone.bin"), limits_).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("s3://bucket/lone.bin"), HasSubstr("lone.idx"),
                    HasSubstr("or dtype= for a file of elements only")));
}

}  // namespace
}  // namespace leat::worker
