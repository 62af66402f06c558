// SPDX-License-Identifier: Apache-2.0
//
// Rows that are packed of a folder of .npy files, listed and opened as a worker
// does.
#include "worker/source/arranged/row_packer.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/cluster/fault.h"
#include "core/pipeline/graph.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/arrays/npy_maker.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/arranged/arrange.h"
#include "worker/source/arranged/arranged_source.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RowPackerTest : public ::testing::Test {
 protected:
  // Document d has `lengths[d]` numbers, 100·d and so on.
  void List(const std::vector<int>& lengths) {
    for (size_t d = 0; d < lengths.size(); ++d) {
      std::vector<int32_t> numbers(lengths[d]);
      for (int i = 0; i < lengths[d]; ++i)
        numbers[i] = static_cast<int32_t>(100 * d) + i;
      dir_.Write(
          fmt::format("{:03}.npy", d),
          Npy("<i4", fmt::format("({},)", lengths[d]),
              std::string_view(reinterpret_cast<const char*>(numbers.data()),
                               4 * numbers.size())));
    }
    reader_ = {"readers.numpy", {}, {{"path", dir_.path()}}};
    Graph graph{{reader_}, {{"x", {0, 0}}}};
    reader_ = Check(graph)->graph.nodes[0];
    const auto index = BuildIndex(reader_, limits_);
    ASSERT_TRUE(index.ok()) << index.status();
    base_.name = index->name;
    base_.fingerprint = index->fingerprint;
    base_.content = index->content;
    base_.shards = index->shards;
    base_.types = index->types;
    source_ = *OpenSource(reader_, index->blob, limits_);
  }
  absl::StatusOr<BuiltIndex> Made(const Arrangement& arrangement) {
    return Arrange(arrangement,
                   {.base = base_, .reader = reader_, .source = *source_},
                   limits_);
  }
  static Arrangement Fit(uint64_t length) {
    return {.pack =
                PackNode{.packing = {.how = PackHow::kFit, .length = length},
                         .outputs = {0},
                         .fill_values = {-1}}};
  }
  std::vector<std::vector<int32_t>> Rows(const BuiltIndex& index) {
    const auto opened = OpenArranged(index.blob, {source_, base_.fingerprint},
                                     index.fingerprint);
    EXPECT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->num_samples(), index.shards.num_samples());
    std::vector<std::vector<int32_t>> rows((*opened)->num_samples());
    for (uint64_t row = 0; row < rows.size(); ++row) {
      const auto stored = (*opened)->Read(row);
      EXPECT_TRUE(stored.ok()) << stored.status();
      rows[row].resize(stored->fields[0].bytes.size() / 4);
      std::memcpy(rows[row].data(), stored->fields[0].bytes.data(),
                  stored->fields[0].bytes.size());
    }
    return rows;
  }

  TempDir dir_;
  SourceLimits limits_;
  Node reader_;
  DatasetInfo base_;
  std::shared_ptr<const Source> source_;
};

TEST_F(RowPackerTest, LengthsAreThoseOfTheRecords) {
  List({2, 3, 1});
  const auto index = Made(Fit(4));
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_THAT(index->name, HasSubstr("rows of 4 (fit)"));
  EXPECT_THAT(Rows(*index), ElementsAre(ElementsAre(0, 1, -1, -1),
                                        ElementsAre(100, 101, 102, 200)));
}

TEST_F(RowPackerTest, ChosenSamplesArePacked) {
  List({2, 3, 1, 4, 2});
  Arrangement arrangement = Fit(5);
  arrangement.samples = {.begin = 0, .end = 5, .step = 2};
  const auto index = Made(arrangement);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_THAT(Rows(*index), ElementsAre(ElementsAre(0, 1, 200, 400, 401)));
}

TEST_F(RowPackerTest, ADocumentThatIsTooLongIsNamedIfThatIsAnError) {
  List({2, 9});
  Arrangement arrangement = Fit(5);
  arrangement.pack->packing.longer = PackLonger::kError;
  const std::string error = std::string(Message(Made(arrangement).status()));
  EXPECT_THAT(error, HasSubstr("001.npy"));
  EXPECT_THAT(error,
              HasSubstr("document 1 has 9 elements, more than length=5"));
}

TEST_F(RowPackerTest, ValuesThatTheReaderDoesNotHaveAreNotPacked) {
  List({2, 3, 1});
  Arrangement arrangement = Fit(4);
  arrangement.pack->outputs = {1000};
  const absl::Status none = Made(arrangement).status();
  EXPECT_TRUE(absl::IsInvalidArgument(none)) << none;
  base_.types[0].shape = {3};
  const absl::Status fixed = Made(Fit(4)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(fixed)) << fixed;
}

// Its lengths would be read from the records, and those of long ones cannot be.
TEST_F(RowPackerTest, AnIndexThatIsAwayEndsTheListing) {
  class Away final : public FormatSource {
   public:
    uint64_t num_samples() const override { return 2; }
    absl::StatusOr<StoredSample> Read(uint64_t) const override {
      return ResourceExhausted("over the limit");
    }
    std::string Describe(uint64_t) const override { return "a document"; }
    absl::StatusOr<RecordPlace> Locate(uint64_t) const override {
      return RecordPlace{};
    }
    absl::StatusOr<int64_t> IndexedColumn(std::string_view,
                                          uint64_t) const override {
      return WithFault(Unavailable("away"), Fault::kTransient);
    }
  };
  List({2, 3});
  source_ = std::make_shared<Away>();
  const absl::Status status = Made(Fit(4)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(RowPackerTest, OtherWaysOfPackingAreOtherDatasets) {
  List({2, 3, 1});
  const auto fit = Made(Fit(4)), longer = Made(Fit(5));
  ASSERT_TRUE(fit.ok() && longer.ok());
  EXPECT_NE(fit->fingerprint, longer->fingerprint);
  EXPECT_NE(fit->content, longer->content);
  EXPECT_EQ(fit->fingerprint, Made(Fit(4))->fingerprint);
}

}  // namespace
}  // namespace leat::worker
