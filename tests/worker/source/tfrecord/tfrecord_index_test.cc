// SPDX-License-Identifier: Apache-2.0
//
// TFRecord's indexes: ours, and DALI's.
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tests/worker/source/tfrecord/tfrecord_fixture.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

TEST_F(TfrecordTest, DalisIndexGivesTheSameAsWalking) {
  Texts records;
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    records.push_back(Labelled(std::string(static_cast<size_t>(i), 'x'), i));
    bytes += records.back();
  }
  const std::string path = dir_.Write("x.tfrecord", bytes);
  const std::string index = dir_.Write("x.idx", DaliIndexOf(records));
  const auto ours = Index(Reader({path}));
  const auto dalis = Index(Reader({path}, {index}));
  ASSERT_TRUE(ours.ok() && dalis.ok()) << dalis.status();
  EXPECT_EQ(ours->blob, dalis->blob);
  EXPECT_EQ(ours->fingerprint, dalis->fingerprint);
  EXPECT_TRUE(Index(Reader({dir_.path()}, {dir_.path() + "/"})).ok());
}

TEST_F(TfrecordTest, AnIndexThatIsNotOfItsFileIsAnError) {
  const Texts records = {Labelled("aa", 1), Labelled("b", 2),
                         Labelled("cc", 3)};
  const std::string path =
      dir_.Write("x.tfrecord", records[0] + records[1] + records[2]);
  const auto error = [&](const std::string& text) {
    const absl::Status status =
        IndexError(Reader({path}, {dir_.Write("i", text)}));
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr(fmt::format("the index {} of {}", At("i"), path)));
    return status;
  };
  const std::string good = DaliIndexOf(records);
  for (size_t size = 0; size + 1 < good.size(); ++size)
    EXPECT_FALSE(error(good.substr(0, size)).ok());
  for (const char* text :
       {"hello", "0", "0 20 30\n", "0  20\n", "-1 20\n", "0 -20\n", " 0 20\n",
        "0 99999999999999999999\n", "0x0 20\n", "\n", "0 20\n\n"})
    EXPECT_TRUE(error(text).code() == Code::kInvalidArgument ||
                error(text).code() == Code::kFailedPrecondition);
  EXPECT_EQ(error("0 18446744073709551615\n").code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(error(good + "0 20\n").code(), Code::kFailedPrecondition);
  // An index of another file with the same size.
  const absl::Status other =
      error(DaliIndexOf({records[1], records[0], records[2]}));
  EXPECT_EQ(other.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(other)), HasSubstr("line 1 says"));
  EXPECT_EQ(IndexError(Reader({path}, {path, path})).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(IndexError(Reader({path}, {At("none")})).code(), Code::kNotFound);
}

TEST_F(TfrecordTest, AMalformedIndexBlobIsRefused) {
  const google::protobuf::LogSilencer silence;
  const Node reader = Reader({dir_.Write("x", Labelled("a", 1))});
  const std::string blob = Index(reader)->blob;
  for (size_t size = 0; size < blob.size(); ++size)
    EXPECT_EQ(OpenSource(reader, blob.substr(0, size), limits_).status().code(),
              Code::kDataLoss)
        << size;
  EXPECT_EQ(OpenSource(Reader({"/other"}), blob, limits_).status().code(),
            Code::kDataLoss);
  // Any other content is refused, or reads are.
  for (size_t bit = 0; bit < blob.size() * 8; ++bit) {
    std::string bytes = blob;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const auto source = OpenSource(reader, bytes, limits_);
    if (!source.ok()) continue;
    for (uint64_t i = 0; i < (*source)->num_samples(); ++i)
      (void)(*source)->Read(i);
  }
}

TEST_F(TfrecordTest, TheIndexIsTheSameWhateverTheThreads) {
  for (int i = 0; i < 20; ++i)
    dir_.Write(fmt::format("{}.tfrecord", i), Labelled("x", i));
  const auto one = Index(Reader({dir_.path()}));
  limits_.listing_threads = 1;
  const auto other = Index(Reader({dir_.path()}));
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->blob, other->blob);
  EXPECT_EQ(one->fingerprint, other->fingerprint);
}

}  // namespace
}  // namespace leat::worker
