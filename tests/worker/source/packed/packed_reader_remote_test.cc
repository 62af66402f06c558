// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/source/storage/remote/fixture.h"
#include "worker/source/packed/packed_reader.h"

namespace leat::worker {
namespace {

constexpr uint64_t kBytes = 100;  // of a record
constexpr uint64_t kGap = 16;     // between two
constexpr uint64_t kRecords = 60;

// A file in which one byte cannot be read.
class PartlyReadable : public RemoteStorage {
 protected:
  PartlyReadable() : bytes_(Pattern(kRecords * (kBytes + kGap))) {
    server_.Put("/b/x", bytes_);
    const auto file = Opened(Url("/b/x"));
    EXPECT_TRUE(files_.Add(Url("/b/x"), bytes_.size(), file->identity()).ok());
    const uint64_t bad = OffsetOf(kRecords - 1) + 1;
    server_.Always([bad](const ObjectServer::Request& request,
                         ObjectServer::Reply* reply) {
      const auto range = request.Range();
      if (range && range->first <= bad && bad <= range->second)
        *reply = {.status = 403};
    });
  }
  static uint64_t OffsetOf(uint64_t record) { return record * (kBytes + kGap); }
  // Returns the records that were read; the others have errors.
  uint64_t ReadInOrder(uint64_t together) {
    const PackedReader reader(&files_, storage_.get(), /*one_of_many=*/false);
    uint64_t right = 0;
    for (uint64_t first = 0; first < kRecords; first += together) {
      std::vector<std::string> memory(together, std::string(kBytes, '\0'));
      std::vector<PackedRead> reads;
      for (uint64_t i = 0; i < together; ++i)
        reads.push_back({.range = {OffsetOf(first + i), Bytes(memory[i])}});
      if (together == 1)
        reads[0].status =
            reader.Read(0, reads[0].range.offset, reads[0].range.into);
      else
        reader.ReadMany(reads);
      for (uint64_t i = 0; i < together; ++i) {
        if (!reads[i].status.ok()) continue;
        EXPECT_EQ(memory[i], bytes_.substr(OffsetOf(first + i), kBytes));
        ++right;
      }
    }
    return right;
  }

  const std::string bytes_;
  FileSet files_;
};

// The block that is read for those that follow each other has the byte.
TEST_F(PartlyReadable, OnlyTheRecordWithTheByteIsBad) {
  EXPECT_EQ(ReadInOrder(1), kRecords - 1);
  EXPECT_EQ(ReadInOrder(2), kRecords - 1);
  EXPECT_EQ(ReadInOrder(20), kRecords - 1);
}

// A block is two mebibytes, and a record may be a hundred bytes.
TEST_F(PartlyReadable, TheBlockIsNotTriedForEachRecord) {
  const size_t before = server_.Seen().size();
  EXPECT_EQ(ReadInOrder(1), kRecords - 1);
  const size_t of_the_block = bytes_.size() / Small().range_bytes + 1;
  EXPECT_LE(server_.Seen().size() - before, kRecords + 2 * of_the_block);
}

}  // namespace
}  // namespace leat::worker
