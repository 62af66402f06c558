// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring records of files in a bucket: how many requests they cost.
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/worker/source/remote_source.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "tests/worker/source/webdataset/tar_maker.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;
using Samples = std::vector<uint64_t>;

constexpr uint64_t kRecords = 12;
constexpr size_t kImageBytes = 20'000;  // more than is read by blocks

class NearbyRecords : public RemoteSource {
 protected:
  NearbyRecords() {
    Restart({.max_tries = 3,
             .first_backoff = StorageMs(1),
             .max_backoff = StorageMs(2),
             .max_hedges = 0});
  }
  static std::string Image(uint64_t i, size_t bytes = kImageBytes) {
    return std::string(bytes, static_cast<char>('a' + i));
  }
  static std::string Tfrecords(uint64_t count, size_t bytes = kImageBytes) {
    std::string file;
    for (uint64_t i = 0; i < count; ++i)
      file += TfrecordOf(ExampleOf({{"x", BytesFeature({Image(i, bytes)})}}));
    return file;
  }
  std::unique_ptr<Source> Open(const Node& reader) {
    auto source = RemoteSource::Open(reader);
    asked_ = server_.Count("GET");
    return source;
  }
  std::unique_ptr<Source> OpenTfrecords(const std::string& path) {
    return Open({"readers.tfrecord",
                 {},
                 {{"paths", Texts{"s3://bucket/" + path}},
                  {"features", Texts{"x"}},
                  {"types", Texts{"bytes"}},
                  {"index", Texts{}}}});
  }
  std::unique_ptr<Source> OneFile() {
    server_.Put("/bucket/a.tfrecord", Tfrecords(kRecords));
    return OpenTfrecords("a.tfrecord");
  }
  // Counts since the last call, or since the source was opened.
  int Requests() {
    const int before = std::exchange(asked_, server_.Count("GET"));
    return asked_ - before;
  }
  static Samples Numbers(uint64_t count) {
    Samples samples(count);
    for (uint64_t i = 0; i < count; ++i) samples[i] = i;
    return samples;
  }
  static size_t Nearby(const Source& source, const Samples& samples,
                       const NearbyLimits& limits = {}) {
    return source.Nearby(samples, limits);
  }
  // Returns the first byte of each image, or the beginning of its error.
  static std::string Firsts(
      const std::vector<absl::StatusOr<StoredSample>>& all) {
    std::string firsts;
    for (const auto& stored : all) {
      if (!stored.ok()) {
        firsts += '!';
        continue;
      }
      const std::span<const std::byte> bytes = stored->fields[0].bytes;
      EXPECT_EQ(bytes.size(), kImageBytes);
      EXPECT_EQ(bytes.front(), bytes.back());
      firsts += static_cast<char>(bytes.front());
    }
    return firsts;
  }

  int asked_ = 0;
};

TEST_F(NearbyRecords, OfTfrecordComeByOneRequest) {
  const auto source = OneFile();
  const Samples all = Numbers(kRecords);
  EXPECT_EQ(Nearby(*source, all), kRecords);
  EXPECT_EQ(Firsts(source->ReadMany(all)), "abcdefghijkl");
  EXPECT_EQ(Requests(), 1);
  for (const uint64_t sample : all) ASSERT_TRUE(source->Read(sample).ok());
  EXPECT_EQ(Requests(), static_cast<int>(kRecords));
}

TEST_F(NearbyRecords, OfATarComeByOneRequest) {
  std::string tar;
  for (uint64_t i = 0; i < kRecords; ++i)
    tar += TarMemberOf(fmt::format("{:02}.jpg", i), Image(i)) +
           TarMemberOf(fmt::format("{:02}.cls", i), std::to_string(i));
  server_.Put("/bucket/a.tar", tar + TarEnd());
  const auto source = Open({"readers.webdataset",
                            {},
                            {{"paths", Texts{"s3://bucket/a.tar"}},
                             {"ext", Texts{"jpg", "cls"}},
                             {"types", Texts{"encoded", "int32"}},
                             {"index", Texts{}},
                             {"missing", std::string("error")}}});
  const Samples all = Numbers(kRecords);
  EXPECT_EQ(Nearby(*source, all), kRecords);
  const auto stored = source->ReadMany(all);
  EXPECT_EQ(Requests(), 1);
  EXPECT_EQ(Firsts(stored), "abcdefghijkl");
  int32_t label = 0;
  std::memcpy(&label, stored[7]->fields[1].bytes.data(), sizeof label);
  EXPECT_EQ(label, 7);
}

TEST_F(NearbyRecords, AreThoseOfOneFileInItsOrderWithinTheBounds) {
  const auto source = OneFile();
  const Samples all = Numbers(kRecords);
  EXPECT_EQ(Nearby(*source, all, {.total_bytes = 50'000}), 2u);
  EXPECT_EQ(Nearby(*source, all, {.total_bytes = 0}), 1u);
  EXPECT_EQ(Nearby(*source, {0, 2, 4, 5}), 4u);
  EXPECT_EQ(Nearby(*source, {0, 2, 4, 5}, {.gap_bytes = 1000}), 1u);
  EXPECT_EQ(Nearby(*source, {4, 5, 2}), 2u);
  EXPECT_EQ(Nearby(*source, {4, 4, 5}), 3u);
  EXPECT_EQ(Nearby(*source, {7}), 1u);
  server_.Put("/bucket/two/0.tfrecord", Tfrecords(3));
  server_.Put("/bucket/two/1.tfrecord", Tfrecords(3));
  const auto two = OpenTfrecords("two/");
  EXPECT_EQ(Nearby(*two, Numbers(6)), 3u);
  // ReadMany takes any.
  EXPECT_EQ(Firsts(two->ReadMany(Samples{5, 0, 1, 1})), "cabb");
}

TEST_F(NearbyRecords, ADamagedOneIsNotTheOthersError) {
  std::string file = Tfrecords(kRecords);
  file[5 * (file.size() / kRecords) + 500] ^= 1;
  server_.Put("/bucket/a.tfrecord", file);
  const auto source = OpenTfrecords("a.tfrecord");
  const auto stored = source->ReadMany(Numbers(kRecords));
  EXPECT_EQ(Requests(), 1);
  EXPECT_EQ(Firsts(stored), "abcde!ghijkl");
  EXPECT_EQ(stored[5].status(), source->Read(5).status());
  EXPECT_THAT(Text(stored[5].status()), HasSubstr("a.tfrecord: record 5 at"));
}

TEST_F(NearbyRecords, OneThatStorageRefusesIsNotTheOthersError) {
  const auto source = OneFile();
  const uint64_t record = Tfrecords(kRecords).size() / kRecords;
  server_.Always(
      [&](const ObjectServer::Request& request, ObjectServer::Reply* reply) {
        const auto range = request.Range();
        if (range && range->first <= 7 * record && range->second >= 7 * record)
          ObjectServer::Status(403, "AccessDenied", "no")(request, reply);
      });
  const auto stored = source->ReadMany(Numbers(kRecords));
  EXPECT_EQ(Firsts(stored), "abcdefg!ijkl");
  EXPECT_TRUE(absl::IsPermissionDenied(stored[7].status()))
      << stored[7].status();
  // The one for all, then each; the fault also refuses once what is retried.
  EXPECT_LE(Requests(), static_cast<int>(2 * kRecords));
}

TEST_F(NearbyRecords, AFailureThatPassesIsTriedAgainTogether) {
  const auto source = OneFile();
  server_.Next(ObjectServer::Status(503, "SlowDown", "later"));
  EXPECT_EQ(Firsts(source->ReadMany(Numbers(kRecords))), "abcdefghijkl");
  EXPECT_EQ(Requests(), 2);
}

TEST_F(NearbyRecords, StorageThatDoesNotAnswerIsNotAskedForEach) {
  const auto source = OneFile();
  server_.Always(ObjectServer::Status(503, "SlowDown", "later"));
  for (const auto& stored : source->ReadMany(Numbers(kRecords)))
    EXPECT_TRUE(absl::IsUnavailable(stored.status())) << stored.status();
  EXPECT_EQ(Requests(), 3);  // the tries of one request
}

TEST_F(NearbyRecords, OfAnObjectThatChangedAreErrorsThatSaySo) {
  const auto source = OneFile();
  server_.Put("/bucket/a.tfrecord", Tfrecords(kRecords), "v2");
  for (const auto& stored : source->ReadMany(Samples{1, 2})) {
    EXPECT_TRUE(absl::IsFailedPrecondition(stored.status()));
    EXPECT_THAT(Text(stored.status()), HasSubstr("etag=\"v1\""));
  }
}

TEST_F(NearbyRecords, ThreadsThatWantOneBlockOfSmallRecordsReadItOnce) {
  constexpr uint64_t kSmallRecords = 400;
  constexpr int kThreads = 8;
  server_.Put("/bucket/s.tfrecord", Tfrecords(kSmallRecords, 100));
  const auto source = OpenTfrecords("s.tfrecord");
  std::atomic<uint64_t> next{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (uint64_t at = next++; at < kSmallRecords; at = next++) {
        const auto stored = source->Read(at);
        if (!stored.ok() || stored->fields[0].bytes.size() != 100) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  // The first thread does not know yet that others follow.
  EXPECT_LE(Requests(), kThreads + 1);
}

}  // namespace
}  // namespace leat::worker
