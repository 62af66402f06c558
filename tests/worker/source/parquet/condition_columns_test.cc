// SPDX-License-Identifier: Apache-2.0
//
// Conditions on columns of files that pyarrow wrote: 40 rows in groups of eight
// (tests/golden/parquet/make.py).
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/arranged/columns.h"
#include "worker/source/parquet/parquet.h"

namespace leat::worker {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kRows = 40;

std::string BytesOfFile(const std::string& name) {
  std::ifstream file(fmt::format("{}/{}.parquet", LEAT_PARQUET_FILES, name),
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the file with its footer, and with pages that cannot be read.
std::string WithoutPages(std::string file) {
  uint32_t footer = 0;
  std::memcpy(&footer, file.data() + file.size() - 8, sizeof footer);
  std::fill(file.begin() + 4, file.end() - 8 - footer, '\xff');
  return file;
}

// Returns the file with other names of two columns.
std::string WithNamesSwapped(std::string file, std::string_view a,
                             std::string_view b) {
  uint32_t footer = 0;
  std::memcpy(&footer, file.data() + file.size() - 8, sizeof footer);
  for (size_t at = file.size() - 8 - footer; at < file.size(); ++at)
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
      if (file.compare(at, from.size(), from) == 0) {
        file.replace(at, from.size(), to);
        break;
      }
  return file;
}

std::vector<uint64_t> Rows(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

class StoredColumnsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(LEAT_PARQUET_FOR_TESTS).empty())
      GTEST_SKIP() << "built without Parquet (LEAT_PARQUET)";
    setenv("LEAT_PARQUET_LIBRARY", LEAT_PARQUET_FOR_TESTS, 1);
    Write(BytesOfFile("grouped"));
  }
  void Write(const std::string& file) {
    dir_.Write("a.parquet", file);
    reader_.args["paths"] =
        std::vector<std::string>{dir_.path() + "/a.parquet"};
  }
  absl::StatusOr<std::vector<uint64_t>> Where(const std::string& where) {
    ASSIGN_OR_RETURN(const Condition condition, Condition::Parse(where));
    ASSIGN_OR_RETURN(const BuiltIndex index, BuildIndex(reader_, limits_));
    ASSIGN_OR_RETURN(const auto source,
                     OpenSource(reader_, index.blob, limits_));
    ASSIGN_OR_RETURN(const ParquetOptions options, ParquetOptionsOf(reader_));
    ASSIGN_OR_RETURN(const Columns columns,
                     Columns::Bind(condition, {.reader = reader_,
                                               .types = options.types,
                                               .source = *source,
                                               .image_size = nullptr}));
    EXPECT_TRUE(columns.reads_storage());
    const std::vector<uint64_t> samples = Rows(0, source->num_samples());
    std::vector<uint8_t> holds(samples.size());
    RETURN_IF_ERROR(columns.Evaluate(samples, holds));
    std::vector<uint64_t> chosen;
    for (const uint64_t sample : samples)
      if (holds[sample] != 0) chosen.push_back(sample);
    return chosen;
  }

  TempDir dir_;
  SourceLimits limits_;
  Node reader_{.op = "readers.parquet",
               .inputs = {},
               .args = {{"columns", std::vector<std::string>{"small"}},
                        {"types", std::vector<std::string>{"int32"}}}};
};

TEST_F(StoredColumnsTest, NeedNotBeOutputs) {
  EXPECT_EQ(*Where("id >= 18"), Rows(18, 40));
  EXPECT_EQ(*Where("part like \"c*\""), Rows(16, 24));
  EXPECT_EQ(*Where("flag == true and id < 18"), Rows(16, 18));
  EXPECT_EQ(*Where("length(part) == 3"), Rows(0, 10));
  EXPECT_EQ(*Where("score < 5 and part != \"a/0\""),
            (std::vector<uint64_t>{1, 2, 4}));
  EXPECT_EQ(*Where("not score < 100"),
            (std::vector<uint64_t>{3, 11, 19, 27, 35}));
  EXPECT_EQ(*Where("small > 235 and id != 37"),
            (std::vector<uint64_t>{36, 38, 39}));
}

TEST_F(StoredColumnsTest, NullIsNothing) {
  EXPECT_EQ(*Where("maybe >= 7 and maybe < 22"),
            (std::vector<uint64_t>{7, 16, 17, 18, 19, 21}));
  std::vector<uint64_t> nulls = Rows(8, 16);
  nulls.push_back(20);
  EXPECT_EQ(*Where("not maybe >= 0"), nulls);
}

// A file whose pages cannot be read has what its statistics say.
TEST_F(StoredColumnsTest, RowGroupsThatStatisticsDecideAreNotRead) {
  Write(WithoutPages(BytesOfFile("grouped")));
  EXPECT_EQ(*Where("id >= 16 and id < 24"), Rows(16, 24));
  EXPECT_EQ(*Where("part like \"c*\" or id < 8"), Rows(0, 8))
      << "a text's beginning alone does not choose a whole group";
  EXPECT_EQ(*Where("id >= 18"), Rows(24, 40)) << "group 2 was to be read";
  EXPECT_EQ(*Where("not maybe > 100 and id < 40"), Rows(0, 40));
  EXPECT_EQ(*Where("flag == true"), Rows(16, 40));
  EXPECT_EQ(*Where("small >= 232"), Rows(32, 40));
  EXPECT_EQ(*Where("score > 31.5"), Rows(0, 0)) << "some are not numbers";
}

TEST_F(StoredColumnsTest, WithoutStatisticsRowsAreRead) {
  Write(BytesOfFile("grouped_without"));
  EXPECT_EQ(*Where("id >= 18 and id < 21"), Rows(18, 21));
  Write(WithoutPages(BytesOfFile("grouped_without")));
  EXPECT_THAT(*Where("id >= 16"), IsEmpty());
}

// Statistics are the file's word; those that contradict themselves are not.
TEST_F(StoredColumnsTest, StatisticsThatLieAreBelieved) {
  Write(BytesOfFile("grouped_lying"));
  std::vector<uint64_t> expected = Rows(0, 8);
  for (const uint64_t row : Rows(16, 20)) expected.push_back(row);
  EXPECT_EQ(*Where("id < 20"), expected);
  EXPECT_EQ(
      *Where("id >= 20 and id < 24 or id > 100"),
      (std::vector<uint64_t>{8, 9, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23}));
}

TEST_F(StoredColumnsTest, AreNamedIfThereIsNone) {
  const auto error = [&](const char* where) {
    return std::string(Message(Where(where).status()));
  };
  EXPECT_THAT(error("ids > 3"),
              AllOf(HasSubstr("unknown column ids; the columns of "
                              "readers.parquet are name, small"),
                    HasSubstr("of the files: no column \"ids\", it has: id, "
                              "small, part")));
  EXPECT_THAT(error("list > 3"), HasSubstr("holds lists of INT32"));
  EXPECT_THAT(error("date > 3"), HasSubstr("want one text or number"));
  EXPECT_THAT(
      error("part > 3"),
      HasSubstr("column part is a text, and is compared with the number 3"));
  EXPECT_THAT(error("length(id) > 3"), HasSubstr("unknown column length(id)"));
}

TEST_F(StoredColumnsTest, AnOutputHasItsOwnValues) {
  reader_.args["columns"] = std::vector<std::string>{"score"};
  reader_.args["types"] = std::vector<std::string>{"float32"};
  // 20.1 is a little more as a float32.
  EXPECT_THAT(*Where("score <= 20.1 and score > 20"), IsEmpty());
  reader_.args["columns"] = std::vector<std::string>{"id"};
  reader_.args["types"] = std::vector<std::string>{"int64"};
  EXPECT_EQ(*Where("score <= 20.1 and score > 20"), Rows(20, 21));
}

// A file without the column has no values of it.
TEST_F(StoredColumnsTest, AFileThatLacksTheColumnHasNoValues) {
  dir_.Write("b.parquet", BytesOfFile("flat"));
  reader_.args["paths"] = std::vector<std::string>{dir_.path() + "/a.parquet",
                                                   dir_.path() + "/b.parquet"};
  EXPECT_EQ(*Where("id >= 38"), Rows(38, 40));
  EXPECT_EQ(*Where("not id < 38"), Rows(38, 50));
}

// Whatever the first file has, a text is kept while its value is used.
TEST_F(StoredColumnsTest, ATextOfALaterFileIsKept) {
  dir_.Write("b.parquet",
             WithNamesSwapped(BytesOfFile("grouped"), "part", "flag"));
  reader_.args["paths"] = std::vector<std::string>{dir_.path() + "/a.parquet",
                                                   dir_.path() + "/b.parquet"};
  limits_.max_unpacked_bytes = 2;  // a page makes place for the next one
  const auto index = BuildIndex(reader_, limits_);
  ASSERT_TRUE(index.ok()) << index.status();
  const auto source = OpenSource(reader_, index->blob, limits_);
  ASSERT_TRUE(source.ok()) << source.status();
  const std::vector<std::string> names = {"flag", "id"};
  const auto columns = (*source)->OpenColumns(names);
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_FALSE((*columns)->IsText(0));
  std::vector<ColumnValue> values(names.size());
  std::vector<std::shared_ptr<const void>> owners;
  ASSERT_TRUE((*columns)->Read(kRows + 9, values, &owners).ok());
  ASSERT_EQ(owners.size(), 1u);
  EXPECT_EQ(std::get<std::string_view>(values[0]), "b/9");
  EXPECT_EQ(std::get<int64_t>(values[1]), 9);
}

}  // namespace
}  // namespace leat::worker
