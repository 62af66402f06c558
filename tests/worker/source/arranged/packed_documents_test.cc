// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/packed_documents.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/source/arranged/packed_index_writer.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kBad = 3;  // a document that cannot be read

// Document d has lengths[d] tokens, d·1000 and so on, and a mask beside them:
// two bytes a token.
class Documents final : public FormatSource {
 public:
  explicit Documents(std::vector<uint64_t> lengths)
      : lengths_(std::move(lengths)) {}

  uint64_t num_samples() const override { return lengths_.size(); }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    ++reads;
    if (sample == bad) return DataLoss("document {} is torn", sample);
    struct Data {
      std::vector<int32_t> tokens;
      std::vector<uint8_t> mask;
    };
    auto data = std::make_shared<Data>();
    data->tokens.resize(lengths_[sample]);
    std::iota(data->tokens.begin(), data->tokens.end(),
              static_cast<int32_t>(1000 * sample));
    for (const int32_t token : data->tokens) {
      data->mask.push_back(static_cast<uint8_t>(token % 7));
      data->mask.push_back(static_cast<uint8_t>(token % 11));
    }
    const auto elements = static_cast<int64_t>(lengths_[sample]);
    StoredSample stored;
    stored.fields = {
        {std::as_bytes(std::span(data->tokens)), {elements}},
        {std::as_bytes(std::span(data->mask)), {elements, 2}},
    };
    stored.owner = std::move(data);
    return stored;
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    return fmt::format("docs.bin, document {}", sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return RecordPlace{.file = "docs.bin", .key = "", .index = sample};
  }

  uint64_t bad = ~uint64_t{0};
  mutable std::atomic<int> reads = 0;

 private:
  const std::vector<uint64_t> lengths_;
  const Digest fingerprint_{};
};

const std::vector<ValueType> kTypes = {
    {ValueType::Kind::kTensor, DType::kInt32, {-1}},
    {ValueType::Kind::kTensor, DType::kUint8, {-1, 2}}};

// Returns the only block of an index of documents with these lengths.
stored::v1::PackedBlock BlockOf(const Packing& packing,
                                const std::vector<uint64_t>& lengths) {
  stored::v1::PackedBlock block;
  PackedIndexWriter writer(
      packing, /*chosen=*/false, 1 << 20,
      [&](const stored::v1::PackedBlock& written, uint64_t) {
        block = written;
        return absl::OkStatus();
      });
  for (size_t i = 0; i < lengths.size(); ++i)
    EXPECT_TRUE(writer.Add(i, lengths[i]).ok());
  EXPECT_TRUE(writer.Finish().ok());
  return block;
}

struct Fixture {
  // The index lists `listed`, the documents have `lengths`.
  Fixture(const Packing& packing, const std::vector<uint64_t>& listed,
          std::vector<uint64_t> lengths)
      : documents(std::make_shared<Documents>(std::move(lengths))) {
    source = std::make_unique<PackedDocuments>(
        documents, PackNode{packing, {0, 1}, {-1, 9}}, kTypes,
        PackedBlock::Open(packing, BlockOf(packing, listed), listed.size())
            .value(),
        Digest{}, SourceLimits{});
  }

  std::shared_ptr<Documents> documents;
  std::unique_ptr<PackedDocuments> source;
};

template <class T>
std::vector<T> Values(const StoredSample& sample, size_t field) {
  std::vector<T> values(sample.fields[field].bytes.size() / sizeof(T));
  std::memcpy(values.data(), sample.fields[field].bytes.data(),
              sample.fields[field].bytes.size());
  return values;
}

TEST(PackedDocumentsTest, WholeDocumentsStandInARowWithPadding) {
  const std::vector<uint64_t> lengths = {2, 0, 5, 1};
  Fixture f({.how = PackHow::kFit, .length = 6}, lengths, lengths);
  ASSERT_EQ(f.source->num_samples(), 2u);
  const auto row = f.source->Read(0);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_THAT(Values<int32_t>(*row, 0), ElementsAre(0, 1, -1, -1, -1, -1));
  EXPECT_THAT(Values<uint8_t>(*row, 1),
              ElementsAre(0, 0, 1, 1, 9, 9, 9, 9, 9, 9, 9, 9));
  EXPECT_THAT(Values<int32_t>(*row, 2), ElementsAre(1, 1, 0, 0, 0, 0));
  EXPECT_THAT(Values<int32_t>(*row, 3), ElementsAre(0, 1, 0, 0, 0, 0));
  const auto second = f.source->Read(1);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(Values<int32_t>(*second, 0),
              ElementsAre(2000, 2001, 2002, 2003, 2004, 3000));
  EXPECT_THAT(Values<int32_t>(*second, 2), ElementsAre(1, 1, 1, 1, 1, 2));
  EXPECT_THAT(Values<int32_t>(*second, 3), ElementsAre(0, 1, 2, 3, 4, 0));
}

TEST(PackedDocumentsTest, DocumentsAreCutWhereARowEnds) {
  const std::vector<uint64_t> lengths = {2, 0, 5, 1};
  Fixture f({.how = PackHow::kCut, .length = 3, .overlap = 1}, lengths,
            lengths);
  ASSERT_EQ(f.source->num_samples(), 3u);
  const std::vector<uint64_t> rows = {0, 1, 2};
  const auto stored = f.source->ReadMany(rows);
  EXPECT_THAT(Values<int32_t>(*stored[0], 0), ElementsAre(0, 1, 2000));
  EXPECT_THAT(Values<int32_t>(*stored[1], 0), ElementsAre(2000, 2001, 2002));
  EXPECT_THAT(Values<int32_t>(*stored[2], 0), ElementsAre(2002, 2003, 2004));
  EXPECT_THAT(Values<int32_t>(*stored[2], 3), ElementsAre(0, 1, 2))
      << "positions count from the beginning of a piece";
}

TEST(PackedDocumentsTest, ABadDocumentMakesItsRowBadAndNoOther) {
  const std::vector<uint64_t> lengths = {2, 2, 2, 2, 2};
  Fixture f({.how = PackHow::kCut, .length = 2}, lengths, lengths);
  f.documents->bad = kBad;
  const std::vector<uint64_t> rows = {2, 3, 4};
  const auto stored = f.source->ReadMany(rows);
  EXPECT_TRUE(stored[0].ok());
  EXPECT_EQ(stored[1].status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(stored[1].status().message(),
            "row 3 of the packing: document 3 is torn");
  ASSERT_TRUE(stored[2].ok());
  EXPECT_THAT(Values<int32_t>(*stored[2], 0), ElementsAre(4000, 4001));
}

TEST(PackedDocumentsTest, ADocumentOfAnotherLengthThanListedMakesItsRowBad) {
  Fixture f({.how = PackHow::kFit, .length = 4}, {3, 4}, {3, 5});
  EXPECT_TRUE(f.source->Read(0).ok());
  EXPECT_EQ(f.source->Read(1).status().message(),
            "row 1 of the packing: document 1 has 5 elements in output 0 of "
            "its reader, and the index says 4");
}

TEST(PackedDocumentsTest, AnIndexThatClaimsMoreRowsThanItHasIsAnError) {
  const Packing packing{.how = PackHow::kFit, .length = 4};
  const std::vector<uint64_t> lengths = {1, 1};
  stored::v1::PackedBlock block = BlockOf(packing, lengths);
  block.set_rows(2);
  block.set_window_rows(0, 2);
  const PackedDocuments source(
      std::make_shared<Documents>(lengths), PackNode{packing, {0}, {0}}, kTypes,
      PackedBlock::Open(packing, block, lengths.size()).value(), Digest{},
      SourceLimits{});
  EXPECT_TRUE(source.Read(0).ok());
  EXPECT_THAT(std::string(source.Read(1).status().message()),
              HasSubstr("has 1 rows, want over 1"));
}

TEST(PackedDocumentsTest, ARowIsDescribedByItsFirstDocument) {
  const std::vector<uint64_t> lengths = {1, 1, 4};
  Fixture f({.how = PackHow::kFit, .length = 4}, lengths, lengths);
  EXPECT_EQ(f.source->Describe(0),
            "row 0 of the packing: docs.bin, document 0 and 1 more");
  EXPECT_EQ(f.source->Describe(1),
            "row 1 of the packing: docs.bin, document 2");
  const auto place = f.source->Locate(1);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->index, 2u);
  EXPECT_THAT(f.source->PiecesOf(0).value(),
              ElementsAre(Piece{0, 0, 1}, Piece{1, 0, 1}));
}

TEST(PackedDocumentsTest, DocumentsOfARowAreListedInPages) {
  const std::vector<uint64_t> lengths = {2, 0, 5, 1, 4};
  Fixture f({.how = PackHow::kCut, .length = 6}, lengths, lengths);
  ASSERT_EQ(f.source->num_samples(), 2u);
  const auto listed = [&](uint64_t row, uint64_t first, uint64_t most) {
    std::vector<std::vector<uint64_t>> found;
    const auto documents = f.source->DocumentsOf(row, first, most);
    EXPECT_TRUE(documents.ok() && documents->has_value());
    for (const RowDocument& each : (*documents)->listed) {
      EXPECT_EQ(each.place.index, each.sample);
      found.push_back({each.sample, each.begin, each.elements, each.row_begin,
                       each.document_elements});
    }
    found.push_back({(*documents)->count});
    return found;
  };
  using Row = std::vector<uint64_t>;
  EXPECT_THAT(listed(0, 0, 9),
              ElementsAre(Row{0, 0, 2, 0, 2}, Row{2, 0, 4, 2, 5}, Row{2}));
  EXPECT_THAT(listed(1, 0, 9),
              ElementsAre(Row{2, 4, 1, 0, 5}, Row{3, 0, 1, 1, 1},
                          Row{4, 0, 4, 2, 4}, Row{3}));
  EXPECT_THAT(listed(1, 1, 1), ElementsAre(Row{3, 0, 1, 1, 1}, Row{3}));
  EXPECT_THAT(listed(1, 3, 1), ElementsAre(Row{3}));
  EXPECT_EQ(f.documents->reads, 0);
  EXPECT_EQ(*f.documents->DocumentsOf(0, 0, 1), std::nullopt)
      << "a document is no row";
}

}  // namespace
}  // namespace leat::worker
