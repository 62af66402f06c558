// SPDX-License-Identifier: Apache-2.0
#include "worker/source/tokens/documents.h"

#include <cstring>
#include <limits>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/tokens/megatron_maker.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A file in memory.
class Bytes final : public StorageFile {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  const std::string& identity() const override { return identity_; }
  absl::Status ReadAt(uint64_t offset,
                      std::span<std::byte> into) const override {
    if (offset > bytes_.size() || into.size() > bytes_.size() - offset)
      return OutOfRange("{} bytes at {}", into.size(), offset);
    if (!into.empty())
      std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return absl::OkStatus();
  }
  absl::Status ReadRanges(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& range : ranges)
      RETURN_IF_ERROR(ReadAt(range.offset, range.into));
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
  const std::string name_ = "web.idx", identity_ = "size=1 mtime_ns=2";
};

constexpr DocumentBounds kBounds = {.max_documents = 1'000'000};

absl::StatusOr<TokenFile> Read(const MegatronIndex& index, uint64_t data_bytes,
                               bool sequences = false) {
  return ReadMegatronIndex(Bytes(index.Bytes()), data_bytes, sequences,
                           kBounds);
}

MegatronIndex Good() {
  return MegatronIndex().Add({3, 2}).Add({}).Add({4}).Add({0, 1});
}

TEST(MegatronIndex, DocumentsAreJoinedOfSequences) {
  const auto file = Read(Good(), 20);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->dtype, DType::kUint16);
  EXPECT_EQ(file->data_offset, 0u);
  EXPECT_THAT(file->lengths, ElementsAre(5, 0, 4, 1));
  EXPECT_EQ(file->index_identity, "size=1 mtime_ns=2");
}

TEST(MegatronIndex, SequencesAreSamplesIfAsked) {
  const auto file = Read(Good(), 20, true);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->lengths, ElementsAre(3, 2, 4, 0, 1));
}

TEST(MegatronIndex, OfMultimodalDataHasModesBehindIt) {
  MegatronIndex index = Good();
  index.modes = std::string("\0\1\0\0\1", 5);
  EXPECT_TRUE(Read(index, 20).ok());
  index.modes += '\0';
  EXPECT_TRUE(absl::IsDataLoss(Read(index, 20).status()));
}

TEST(MegatronIndex, HasTypesByTheirCodes) {
  const struct {
    uint8_t code;
    DType dtype;
  } known[] = {{1, DType::kUint8}, {2, DType::kInt8},  {3, DType::kInt16},
               {4, DType::kInt32}, {5, DType::kInt64}, {7, DType::kFloat32},
               {8, DType::kUint16}};
  for (const auto& [code, dtype] : known) {
    MegatronIndex index;
    index.type = code;
    const auto size = static_cast<int64_t>(SizeOf(dtype));
    index.Add({3, 2}, size).Add({4}, size);
    const auto file = Read(index, static_cast<uint64_t>(9 * size));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->dtype, dtype);
    EXPECT_THAT(file->lengths, ElementsAre(5, 4));
  }
  for (const uint8_t code : {0, 6, 9, 255}) {
    MegatronIndex index = Good();
    index.type = code;
    const absl::Status status = Read(index, 20).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(fmt::format("the type {}", code)));
  }
}

TEST(MegatronIndex, OfMoreThanAPieceIsReadWhole) {
  MegatronIndex index;
  std::vector<uint32_t> wanted;
  for (int i = 0; i < 300'000; ++i) {
    index.Add({i % 7});
    wanted.push_back(static_cast<uint32_t>(i % 7));
  }
  const auto bytes =
      static_cast<uint64_t>(index.positions.back() + 2 * index.lengths.back());
  const auto file = Read(index, bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->lengths, wanted);
}

// Each lie, and the words of its error.
TEST(MegatronIndex, ThatLiesIsAnErrorThatSaysWhatWasExpected) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::min();  // 2^63
  const struct {
    const char* words;
    std::function<void(MegatronIndex&)> lie;
  } lies[] = {
      {"does not begin with", [](auto& i) { i.magic[0] = 'N'; }},
      {"version 2, want 1", [](auto& i) { i.version = 2; }},
      {"sequence 1 has -2 tokens, want 0 or more",
       [](auto& i) { i.lengths[1] = -2; }},
      {"sequence 0 has 4294967294 bytes at 0, and its .bin has only 20",
       [](auto& i) { i.lengths[0] = INT32_MAX; }},
      {"sequence 2 is at byte 12, want 10",
       [](auto& i) { i.positions[2] = 12; }},
      {"sequence 1 is at byte -1, want 6",
       [](auto& i) { i.positions[1] = -1; }},
      {"sequence 1 is at byte -9223372036854775808, want 6",
       [](auto& i) { i.positions[1] = kHuge; }},
      {"document 0 begins at sequence 1, want 0",
       [](auto& i) { i.documents[0] = 1; }},
      {"document 1 ends at sequence 1, want 2 to 5",
       [](auto& i) { i.documents[2] = 1; }},
      {"document 2 ends at sequence 6, want 2 to 5",
       [](auto& i) { i.documents[3] = 6; }},
      {"document 3 ends at sequence -9223372036854775808, want 3 to 5",
       [](auto& i) { i.documents[4] = kHuge; }},
      {"its documents end at sequence 3, want 5",
       [](auto& i) { i.documents.pop_back(); }},
      {"no document indices", [](auto& i) { i.documents.clear(); }},
      {"its 6 sequences have 22 bytes, and its .bin has 24",
       [](auto& i) { i.Add({1}); }},
  };
  for (const auto& [words, lie] : lies) {
    MegatronIndex index = Good();
    lie(index);
    const uint64_t bytes = index.lengths.size() == 6 ? 24 : 20;
    const absl::Status status = Read(index, bytes).status();
    EXPECT_THAT(Message(status), HasSubstr(words));
    EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsUnimplemented(status));
  }
}

TEST(MegatronIndex, CountsThatDoNotFitItsSizeAreErrors) {
  const std::string good = Good().Bytes();
  for (const size_t at : {18, 26})
    for (const uint64_t count :
         {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 60,
          uint64_t{1} << 63, UINT64_MAX, UINT64_MAX / 12 + 2}) {
      std::string bytes = good;
      std::memcpy(bytes.data() + at, &count, sizeof count);
      const absl::Status status =
          ReadMegatronIndex(Bytes(bytes), 20, false, kBounds).status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << count << status;
      EXPECT_THAT(Message(status), HasSubstr(fmt::format("{}", count)));
    }
}

TEST(MegatronIndex, CutOffAnywhereIsAnError) {
  const std::string good = Good().Bytes();
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_TRUE(absl::IsDataLoss(
        ReadMegatronIndex(Bytes(good.substr(0, size)), 20, false, kBounds)
            .status()))
        << size;
}

TEST(MegatronIndex, MustFillItsData) {
  for (const uint64_t bytes : {0, 18, 19, 21, 22, 1 << 20})
    EXPECT_TRUE(absl::IsDataLoss(Read(Good(), bytes).status())) << bytes;
}

TEST(MegatronIndex, KeepsItsBounds) {
  const Bytes file(Good().Bytes());
  EXPECT_TRUE(ReadMegatronIndex(file, 20, false, {.max_documents = 4}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(
      ReadMegatronIndex(file, 20, false, {.max_documents = 3}).status()));
  const std::atomic<bool> cancelled = true;
  EXPECT_TRUE(absl::IsCancelled(
      ReadMegatronIndex(file, 20, false, {9, &cancelled}).status()));
  MegatronIndex large;
  large.type = 1;
  large.Add({INT32_MAX, INT32_MAX, INT32_MAX}, 1);
  const absl::Status status = Read(large, 3 * uint64_t{INT32_MAX}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("document 0 has 6442450941 tokens"));
}

template <class T>
std::vector<uint32_t> Cut(DType dtype, const std::vector<T>& tokens,
                          std::optional<int64_t> end, size_t offset = 0) {
  const Bytes file(std::string(offset, '\7') + BytesOfValues(tokens));
  const auto found =
      FindDocuments(file, dtype, offset, tokens.size(), end, kBounds);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? found->lengths : std::vector<uint32_t>();
}

TEST(Documents, EndWithTheirToken) {
  const std::vector<uint16_t> tokens = {5, 0, 0, 7, 8, 0, 9};
  EXPECT_THAT(Cut(DType::kUint16, tokens, 0), ElementsAre(2, 1, 3, 1));
  EXPECT_THAT(Cut(DType::kUint16, tokens, 9), ElementsAre(7));
  EXPECT_THAT(Cut(DType::kUint16, tokens, 65535), ElementsAre(7));
  EXPECT_THAT(Cut(DType::kUint16, tokens, std::nullopt), ElementsAre(7));
  EXPECT_THAT(Cut(DType::kUint16, tokens, 0, 3), ElementsAre(2, 1, 3, 1));
  EXPECT_THAT(Cut<uint16_t>(DType::kUint16, {}, 0), IsEmpty());
  EXPECT_THAT(Cut<uint16_t>(DType::kUint16, {}, std::nullopt), IsEmpty());
}

TEST(Documents, EndInFilesOfEveryWholeType) {
  EXPECT_THAT(Cut<uint8_t>(DType::kUint8, {1, 255, 2}, 255), ElementsAre(2, 1));
  EXPECT_THAT(Cut<int8_t>(DType::kInt8, {1, 127, -1}, 127), ElementsAre(2, 1));
  EXPECT_THAT(Cut<int16_t>(DType::kInt16, {1, 300, 2}, 300), ElementsAre(2, 1));
  EXPECT_THAT(Cut<int32_t>(DType::kInt32, {1, 1 << 30, 2}, 1 << 30),
              ElementsAre(2, 1));
  EXPECT_THAT(Cut<uint32_t>(DType::kUint32, {1, UINT32_MAX, 2}, UINT32_MAX),
              ElementsAre(2, 1));
  EXPECT_THAT(Cut<int64_t>(DType::kInt64, {1, 1ll << 40, 2}, 1ll << 40),
              ElementsAre(2, 1));
}

TEST(Documents, AreFoundAcrossPieces) {
  std::vector<uint16_t> tokens(3'000'000, 1);
  std::vector<uint32_t> wanted;
  size_t begin = 0;
  for (size_t at = 999; at < tokens.size(); at += 524'287) {
    tokens[at] = 50256;
    wanted.push_back(static_cast<uint32_t>(at + 1 - begin));
    begin = at + 1;
  }
  wanted.push_back(static_cast<uint32_t>(tokens.size() - begin));
  EXPECT_EQ(Cut(DType::kUint16, tokens, 50256), wanted);
}

TEST(Documents, AnEndThatTheTypeDoesNotHaveIsRefused) {
  const Bytes file(std::string(16, 'x'));
  const auto refused = [&](DType dtype, int64_t end) {
    const absl::Status status =
        FindDocuments(file, dtype, 0, 2, end, kBounds).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(Message(status));
  };
  EXPECT_EQ(refused(DType::kUint16, 65536),
            "argument \"end\" is 65536, want 0 to 65535: elements are uint16");
  EXPECT_THAT(refused(DType::kInt8, 128), HasSubstr("want 0 to 127"));
  EXPECT_THAT(refused(DType::kFloat32, 1), HasSubstr("want whole numbers"));
}

}  // namespace
}  // namespace leat::worker
