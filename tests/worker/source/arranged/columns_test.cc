// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/columns.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "tests/worker/source/arranged/arranged_fixture.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::StartsWith;

// --- Of an image folder: 000.jpg to 199.jpg with 0 to 199 bytes

// An "image" of n bytes is n wide and 7 high; an empty one is damaged.
absl::StatusOr<ImageSize> FakeSize(std::span<const std::byte> file) {
  if (file.empty()) return DataLoss("cut off");
  return ImageSize{.height = 7, .width = static_cast<int64_t>(file.size())};
}

class WhereTest : public ArrangedTest {
 protected:
  std::vector<uint64_t> Where(const std::string& where) {
    const Arrangement arrangement{.samples = {}, .where = where};
    const auto index = Arrange(arrangement,
                               {.base = base_,
                                .reader = reader_,
                                .source = *source_,
                                .image_size = &FakeSize},
                               limits_);
    status_ = index.status();
    if (!index.ok()) return {};
    const auto source = Opened(*index);
    EXPECT_TRUE(source.ok()) << source.status();
    std::vector<uint64_t> records;
    for (uint64_t i = 0; i < (*source)->num_samples(); ++i)
      records.push_back((*source)->RecordOf(i));
    return records;
  }
  std::string ErrorOfWhere(const std::string& where) {
    EXPECT_THAT(Where(where), IsEmpty());
    EXPECT_TRUE(absl::IsInvalidArgument(status_)) << status_;
    return std::string(Message(status_));
  }
  absl::Status status_;
};

TEST_F(WhereTest, NamesAndSizesAreOfTheIndex) {
  EXPECT_THAT(Where("name like \"k/*7.jpg\" and bytes < 30"),
              ElementsAre(7, 17, 27));
  EXPECT_EQ(Where("label == 0").size(), kFiles);
}

TEST_F(WhereTest, ACopyElsewhereHasTheSameNames) {
  const TempDir other;
  std::filesystem::rename(dir_.path() + "/k", other.path() + "/k");
  StorageConfig config;
  config.local_copies[dir_.path()] = other.path();
  const auto storage = *Storage::Create(config);
  limits_.storage = storage.get();
  List();
  EXPECT_THAT(Where("name like \"k/*7.jpg\" and bytes < 30"),
              ElementsAre(7, 17, 27));
}

TEST_F(WhereTest, SizesOfImagesAreOfTheirHeaders) {
  EXPECT_THAT(Where("width >= 198 and height == 7"), ElementsAre(198, 199));
  EXPECT_THAT(Where("not width > 0"), ElementsAre(0)) << "nothing is false";
}

TEST_F(WhereTest, OutputsAreOfTheRecords) {
  EXPECT_THAT(Where("length(encoded) in [3, 5]"), ElementsAre(3, 5));
  EXPECT_THAT(Where("encoded == \"xxx\""), ElementsAre(3));
}

TEST_F(WhereTest, ChoosesAmongTheSamples) {
  Arrangement both{.samples = {.list = {199, 5, 198, 7}}, .where = "bytes > 5"};
  EXPECT_THAT(Chosen(both), ElementsAre(199, 198, 7));
  both.where = "bytes > 500";
  EXPECT_EQ(ErrorOf(both), "where leaves 0 of 4 samples: bytes > 500");
}

TEST_F(WhereTest, WhatThereIsNotIsAnError) {
  EXPECT_EQ(ErrorOfWhere("widht > 5"),
            "where: unknown column widht, did you mean width?; the columns of "
            "readers.image_folder are name, bytes, width, height, encoded, "
            "length(encoded), label");
  EXPECT_EQ(ErrorOfWhere("length(label) > 5"),
            "where: unknown column length(label); the columns of "
            "readers.image_folder are name, bytes, width, height, encoded, "
            "length(encoded), label");
  EXPECT_EQ(ErrorOfWhere("label == 'cat'"),
            "where: column label is an integer, and is compared with the text "
            "\"cat\"; write a number without quotes");
  EXPECT_THAT(ErrorOfWhere("label in [5, '7']"),
              EndsWith("the text \"7\"; write a number without quotes"));
  base_.classes = {"dog", "cat"};
  EXPECT_THAT(ErrorOfWhere("label == \"cat\""),
              EndsWith("write label == 1, the label of this class"));
  EXPECT_EQ(ErrorOfWhere("name < 5"),
            "where: column name is a text, and is compared with the number 5; "
            "write name == \"5\"");
  EXPECT_THAT(ErrorOfWhere("name == elephant"),
              StartsWith("where: unknown column elephant (a text is between "
                         "quotes: \"elephant\"); the columns of "));
  EXPECT_THAT(ErrorOfWhere("label == True"),
              StartsWith("where: unknown column True, did you mean true?; "));
  EXPECT_EQ(ErrorOfWhere("bytes >= 5000"),
            "where leaves 0 of 200 samples: bytes >= 5000");
}

// --- Of stored values

using Cell = std::variant<int64_t, double, std::string, std::vector<float>>;

// A source of rows; some of them cannot be read.
class Rows final : public FormatSource {
 public:
  std::vector<std::vector<Cell>> rows;
  std::vector<ValueType> types;
  std::map<uint64_t, absl::Status> errors;
  absl::Status index;  // of a look at it

  uint64_t num_samples() const override { return rows.size(); }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    if (const auto it = errors.find(sample); it != errors.end())
      return it->second;
    auto bytes = std::make_shared<std::vector<std::string>>();
    for (const Cell& cell : rows[sample]) bytes->push_back(BytesOfCell(cell));
    StoredSample stored;
    for (size_t i = 0; i < bytes->size(); ++i) {
      StoredField field{.bytes = std::as_bytes(std::span((*bytes)[i])),
                        .shape = {}};
      if (const auto* list = std::get_if<std::vector<float>>(&rows[sample][i]))
        field.shape = {static_cast<int64_t>(list->size())};
      stored.fields.push_back(field);
    }
    stored.owner = bytes;
    return stored;
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    return fmt::format("row {}", sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    RETURN_IF_ERROR(index);
    return RecordPlace{.file = "/data/rows", .key = fmt::format("k{}", sample)};
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    RETURN_IF_ERROR(index);
    return FormatSource::IndexedColumn(column, sample);
  }

 private:
  template <class T>
  static std::string Raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static std::string BytesOfCell(const Cell& cell) {
    if (const auto* whole = std::get_if<int64_t>(&cell)) return Raw(*whole);
    if (const auto* number = std::get_if<double>(&cell))
      return Raw(static_cast<float>(*number));
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    std::string bytes;
    for (const float each : std::get<std::vector<float>>(cell))
      bytes += Raw(each);
    return bytes;
  }

  const Digest fingerprint_{};
};

class ColumnsTest : public ::testing::Test {
 protected:
  ColumnsTest() {
    using Kind = ValueType::Kind;
    rows_.types = {{Kind::kTensor, DType::kInt64, {}},
                   {Kind::kTensor, DType::kFloat32, {}},
                   {Kind::kEncoded, DType::kUint8, {}},
                   {Kind::kTensor, DType::kFloat32, {-1}}};
    rows_.rows = {{int64_t{1}, 0.5, "a cat", std::vector<float>{1, 2}},
                  {int64_t{2}, 1.5, "a dog", std::vector<float>{}},
                  {int64_t{-3}, -0.5, "cats", std::vector<float>{1}}};
    reader_ = {.op = "readers.parquet",
               .inputs = {},
               .args = {{"columns", std::vector<std::string>{
                                        "id", "score", "text", "odd name"}}}};
  }
  absl::StatusOr<std::string> Holding(const std::string& where) {
    ASSIGN_OR_RETURN(const Condition condition, Condition::Parse(where));
    ASSIGN_OR_RETURN(const Columns columns,
                     Columns::Bind(condition, {.reader = reader_,
                                               .types = rows_.types,
                                               .source = rows_,
                                               .image_size = nullptr}));
    const std::vector<uint64_t> samples = {0, 1, 2};
    std::vector<uint8_t> holds(3);
    RETURN_IF_ERROR(columns.Evaluate(samples, holds));
    std::string text;
    for (const uint8_t each : holds) text += static_cast<char>('0' + each);
    return text;
  }

  Rows rows_;
  Node reader_;
};

TEST_F(ColumnsTest, AreTheReadersOutputsByTheirNames) {
  EXPECT_EQ(*Holding("id < 2"), "101");
  EXPECT_EQ(*Holding("score >= 0.5"), "110");
  EXPECT_EQ(*Holding("text like \"*cat*\""), "101");
  EXPECT_EQ(*Holding("length(`odd name`) > 0 and length(text) == 5"), "100");
  EXPECT_EQ(*Holding("name in ['k1', 'k2']"), "011");
  EXPECT_EQ(*Holding("id > score"), "110");
}

TEST_F(ColumnsTest, ARecordThatIsBadHasNoValues) {
  rows_.errors[0] = WithFault(DataLoss("damaged"), Fault::kSample);
  EXPECT_EQ(*Holding("id < 2"), "001");
  EXPECT_EQ(*Holding("not id < 2"), "110");
  EXPECT_EQ(*Holding("name == 'k0'"), "100") << "the record is not read";
}

TEST_F(ColumnsTest, StorageThatFailsEndsTheListing) {
  rows_.errors[1] = WithFault(Unavailable("away"), Fault::kTransient);
  const auto held = Holding("id < 2");
  EXPECT_TRUE(absl::IsUnavailable(held.status())) << held.status();
  EXPECT_EQ(Message(held.status()), "row 1: away");
}

// A column is not unknown because a block of the index does not come now.
TEST_F(ColumnsTest, AnIndexThatIsAwayEndsTheListing) {
  rows_.index = WithFault(Unavailable("away"), Fault::kTransient);
  for (const char* where : {"id < 2", "label < 2", "bytes < 2", "name == ''"}) {
    const absl::Status status = Holding(where).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << where << status;
  }
}

TEST_F(ColumnsTest, ThatAreUnknownAreNamed) {
  EXPECT_EQ(Message(Holding("scroe > 1").status()),
            "where: unknown column scroe, did you mean score?; the columns of "
            "readers.parquet are name, id, score, text, length(text), "
            "length(`odd name`)");
  EXPECT_EQ(Message(Holding("score == 'x'").status()),
            "where: column score is of float32, and is compared with the text "
            "\"x\"; write a number without quotes");
}

TEST_F(ColumnsTest, BytesOfAnyNumberAreText) {
  rows_.types[2] = {ValueType::Kind::kTensor, DType::kUint8, {-1}};
  EXPECT_EQ(*Holding("text like 'a *' and text != 'a dog'"), "100");
}

TEST_F(ColumnsTest, LengthIsOfTheOnlyOutput) {
  rows_.types = {{ValueType::Kind::kTensor, DType::kFloat32, {-1}}};
  rows_.rows.clear();
  for (const size_t length : {2, 1, 0})
    rows_.rows.push_back({Cell(std::vector<float>(length))});
  reader_ = {.op = "readers.array_record", .inputs = {}, .args = {}};
  EXPECT_EQ(*Holding("length > 1"), "100");
}

TEST_F(ColumnsTest, AnArrayIsNoColumnButItsLengthIs) {
  EXPECT_EQ(*Holding("length(`odd name`) == 1"), "001");
  EXPECT_EQ(Message(Holding("`odd name` > 1").status()),
            "where: `odd name` is an array, want one number or text; the "
            "columns of readers.parquet are name, id, score, text, "
            "length(text), length(`odd name`)");
}

}  // namespace
}  // namespace leat::worker
