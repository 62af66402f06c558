// SPDX-License-Identifier: Apache-2.0
#include "worker/job/numbered_source.h"

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/job/block_source.h"
#include "worker/job/later_source.h"
#include "worker/source/arranged/arranged_source.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;

// Sources that pass calls on do not have the answers of a format: one that
// forgets a call would answer for a source that has an answer of its own.
template <class Each>
constexpr bool kPassesAllOn = !std::derived_from<Each, FormatSource>;
static_assert(kPassesAllOn<NumberedSource> && kPassesAllOn<LaterSource> &&
              kPassesAllOn<BlockSource> && kPassesAllOn<ArrangedSource>);
static_assert(std::is_abstract_v<Source>);

// Ten samples of five records, whose numbers it notes.
class TenSamples final : public FormatSource {
 public:
  uint64_t num_samples() const override { return 10; }
  uint64_t RecordOf(uint64_t sample) const override { return sample % 5; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    asked.push_back(sample);
    return DataLoss("sample {}", sample);
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override {
    asked.assign(samples.begin(), samples.end());
    return std::vector<absl::StatusOr<StoredSample>>(samples.size(),
                                                     DataLoss("many"));
  }
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits& limits) const override {
    asked.assign(samples.begin(), samples.end());
    return limits.gap_bytes;
  }
  std::vector<absl::StatusOr<StoredPart>> ReadParts(
      std::span<const RecordPart> parts) const override {
    asked.clear();
    for (const RecordPart& part : parts)
      asked.insert(asked.end(), {part.sample, part.begin, part.count});
    return std::vector<absl::StatusOr<StoredPart>>(parts.size(),
                                                   DataLoss("parts"));
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    return "record " + std::to_string(sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return RecordPlace{.file = std::to_string(sample)};
  }
  absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t sample, uint64_t first, uint64_t most) const override {
    return RowDocuments{.count = 100 * sample + 10 * first + most};
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    return column == "label" ? static_cast<int64_t>(sample) : -1;
  }
  bool waits() const override { return true; }

  mutable std::vector<uint64_t> asked;

 private:
  const Digest fingerprint_ = HashOf("ten");
};

TEST(NumberedSource, GivesTheDatasetsSamplesTheJobsNumbers) {
  const auto own = std::make_shared<TenSamples>();
  const auto source = NumberedSource::Of(own, 1000);
  EXPECT_EQ(source->num_samples(), 10u);
  EXPECT_EQ(source->RecordOf(1007), 2u) << "caches know it by this";
  EXPECT_EQ(source->Describe(1007), "record 7");
  EXPECT_EQ(source->Locate(1007)->file, "7");
  EXPECT_EQ((*source->DocumentsOf(1007, 2, 3))->count, 723u);
  EXPECT_EQ(Message(source->Read(1009).status()), "sample 9");
  const std::vector<uint64_t> samples = {1003, 1000, 1009};
  EXPECT_EQ(source->ReadMany(samples).size(), 3u);
  EXPECT_THAT(own->asked, ElementsAre(3, 0, 9));
  own->asked.clear();
  EXPECT_EQ(source->Nearby(samples, {.gap_bytes = 2}), 2u);
  EXPECT_THAT(own->asked, ElementsAre(3, 0, 9));
  EXPECT_THAT(source->ReadParts(std::vector<RecordPart>{{1003, 4, 5}}),
              testing::SizeIs(1));
  EXPECT_THAT(own->asked, ElementsAre(3, 4, 5));
  EXPECT_EQ(*source->FindRecord(1007), 2u);
  EXPECT_EQ(*source->IndexedColumn("label", 1007), 7);
  EXPECT_TRUE(absl::IsUnimplemented(source->OpenColumns({}).status()));
  EXPECT_EQ(source->fingerprint(), HashOf("ten"));
  EXPECT_TRUE(source->waits());
}

TEST(NumberedSource, TheFirstDatasetOfAJobKeepsItsSource) {
  const std::shared_ptr<const Source> own = std::make_shared<TenSamples>();
  EXPECT_EQ(NumberedSource::Of(own, 0), own);
}

}  // namespace
}  // namespace leat::worker
