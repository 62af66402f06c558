// SPDX-License-Identifier: Apache-2.0
//
// Rows whose codes kernels decode, with a seek index and without one, have the
// CPU's bytes. Rows that kernels refuse are the CPU's. Of files without an
// index, kernels leave one.
#include <algorithm>
#include <map>
#include <random>

#include "tests/worker/gpu/groups/compare.h"
#include "tests/worker/gpu/groups/group_test.h"
#include "tests/worker/gpu/groups/job.h"
#include "tests/worker/image/jpeg/forms/support.h"
#include "worker/compute/host_share.h"
#include "worker/image/jpeg/forms/seek_index.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

constexpr int kIndexedSamplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

// Keeps the seek indexes of files, which grow.
class IndexKeeper final : public FormKeeper {
 public:
  FormWish Begin(std::span<const std::byte> file, DecodeClass) override {
    file_ = file.data();
    FormWish wish;
    wish.grow = true;
    if (const auto kept = kept_.find(file_); kept != kept_.end())
      wish.use = kept->second;
    return wish;
  }
  void End(FormAnswer answer) override {
    EXPECT_FALSE(answer.refused.any());
    if (answer.used == JpegFormKind::kSeekIndex) ++used;
    for (KeptForm& form : answer.made) kept_[file_] = std::move(form);
  }
  KeepLater Later() override {
    return [this, file = file_](KeptForm form) {
      kept_[file] = std::move(form);
      ++left;
    };
  }
  // Keeps the indexes of whole files.
  void Keep(const std::vector<std::string>& files) {
    JpegDecoder decoder{ImageLimits{}};
    for (const std::string& file : files) {
      MadeForms made = MakeFormsOf(decoder, BytesOf(file));
      ASSERT_TRUE(made.seek_index.ok()) << made.seek_index.status();
      kept_[BytesOf(file).data()] = {.form = *std::move(made.seek_index),
                                     .kind = JpegFormKind::kSeekIndex,
                                     .bytes = 100};
    }
  }
  const KeptForm& Of(const std::string& file) {
    return kept_[BytesOf(file).data()];
  }

  int used = 0, left = 0;

 private:
  std::map<const std::byte*, KeptForm> kept_;
  const std::byte* file_ = nullptr;
};

class GpuCodesTest : public HostGroupTest {
 protected:
  GpuStats Stats() const { return gpus_->stats()[0]; }
  // Expects all rows' codes to be decoded by kernels, with the CPU's bytes.
  void ExpectDecoded(GpuPipeline& pipeline,
                     const std::vector<std::string>& files) {
    const GpuStats before = Stats();
    ExpectExact(pipeline, files);
    EXPECT_EQ(Stats().rows_codes_total - before.rows_codes_total, files.size());
    EXPECT_EQ(Stats().rows_coefficients_total - before.rows_coefficients_total,
              files.size());
  }
};

// Sizes on both sides of a run's, and of an MCU's.
std::vector<std::string> IndexedFiles() {
  std::vector<std::string> files;
  std::mt19937 random(9);
  for (const auto& [h, v] : kIndexedSamplings)
    for (int i = 0; i < 7; ++i)
      files.push_back(MakeJpeg({.width = 1 + static_cast<int>(random() % 500),
                                .height = 1 + static_cast<int>(random() % 90),
                                .h = h,
                                .v = v,
                                .quality = 10 + static_cast<int>(random() % 91),
                                .orientation = i % 9,
                                .seed = static_cast<uint32_t>(random())}));
  return files;
}

Graph ResizeGraph() {
  return ChainOf(
      {{"resize", {}, {{"size", Value(std::vector<int64_t>{40, 40})}}}});
}

TEST_F(GpuCodesTest, OfFilesWithASeekIndexAreDecodedByKernels) {
  Open();
  const std::vector<std::string> files = IndexedFiles();
  for (const Graph& graph : {CropGraph(24), ResizeGraph()}) {
    IndexKeeper keeper;
    keeper.Keep(files);
    GpuPipeline pipeline(graph, *gpus_);
    pipeline.forms = &keeper;
    ExpectDecoded(pipeline, files);
    EXPECT_EQ(keeper.used, static_cast<int>(files.size()));
  }
  EXPECT_EQ(Stats().rows_exact_total, 2 * files.size());
}

// Nothing is kept of some files, and the keepers of others wish for an index:
// from the second time on there is one. A longer one takes the place of a
// shorter one.
TEST_F(GpuCodesTest, OfFilesWithoutAnIndexLeaveOne) {
  Open();
  const std::vector<std::string> files = IndexedFiles();
  const auto all = static_cast<int>(files.size());
  GpuPipeline whole(ResizeGraph(), *gpus_), crops(CropGraph(24), *gpus_);
  ExpectDecoded(whole, files);
  ExpectDecoded(crops, files);
  IndexKeeper keeper;
  whole.forms = crops.forms = &keeper;
  ExpectDecoded(crops, files);
  EXPECT_EQ(keeper.left, all);
  EXPECT_EQ(keeper.used, 0);
  ExpectDecoded(crops, files);
  EXPECT_EQ(keeper.used, all);
  int parts = 0;
  for (const std::string& file : files) parts += !keeper.Of(file).whole;
  EXPECT_GT(parts, 1);
  ExpectDecoded(whole, files);
  EXPECT_EQ(keeper.left, all + parts);
  ExpectDecoded(whole, files);
  EXPECT_EQ(keeper.left, all + parts);
  JpegDecoder decoder{ImageLimits{}};
  for (const std::string& file : files) {
    ASSERT_TRUE(keeper.Of(file).whole);
    const MadeForms made = MakeFormsOf(decoder, BytesOf(file));
    EXPECT_TRUE(std::ranges::equal(keeper.Of(file).form->bytes(),
                                   (*made.seek_index)->bytes()));
  }
}

TEST_F(GpuCodesTest, ThatAreRefusedOrWithdrawnLeaveNoIndex) {
  Open();
  std::vector<std::string> files(
      3, MakeJpeg({.width = 300, .height = 200, .quality = 100}));
  for (size_t at = 0; (at = files[1].find("\xff\xdb", at)) != std::string::npos;
       at += 2)
    std::fill_n(files[1].begin() + static_cast<ptrdiff_t>(at) + 5, 64, '\xff');
  IndexKeeper keeper;
  GpuPipeline pipeline(ResizeGraph(), *gpus_);
  pipeline.forms = &keeper;
  for (const bool runs : {false, true}) {
    GroupMemory memory(pipeline.schema(), files.size());
    const auto group =
        pipeline.kernel().BeginGroup(memory.Outputs(files.size()));
    ASSERT_NE(group, nullptr);
    for (size_t row = 0; row < files.size(); ++row)
      ASSERT_TRUE(pipeline.Prepare(*group, row, files[row]).ok());
    group->Forget(2);
    if (!runs) continue;  // the group goes away
    EXPECT_TRUE(absl::IsAborted(GpuPipeline::RunGroup(*group)[1]));
  }
  EXPECT_EQ(keeper.left, 1);
  EXPECT_NE(keeper.Of(files[0]).form, nullptr);
}

TEST_F(GpuCodesTest, BehindRestartMarkersAreDecodedByKernels) {
  Open();
  std::vector<std::string> files;
  for (int i = 1; i < 20; ++i)
    files.push_back(MakeJpeg({.width = 40 + 10 * i,
                              .height = 200 - 8 * i,
                              .restart_interval = i,
                              .seed = static_cast<uint32_t>(i)}));
  for (const Graph& graph : {CropGraph(24), ResizeGraph()}) {
    GpuPipeline pipeline(graph, *gpus_);
    ExpectDecoded(pipeline, files);
  }
}

TEST_F(GpuCodesTest, OfPartnersAreDecodedToo) {
  Open();
  std::vector<std::string> files = IndexedFiles();
  IndexKeeper keeper;
  keeper.Keep(files);
  GpuPipeline pipeline(MixupGraph(16), *gpus_);
  pipeline.forms = &keeper;
  ExpectDecoded(pipeline, files);
}

// libjpeg's IDCTs differ for their blocks, so libjpeg decodes them, beside rows
// that are not refused.
TEST_F(GpuCodesTest, ThatKernelsRefuseAreTheCpus) {
  Open();
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 12; ++i) {
    std::string& file = files.emplace_back(MakeJpeg(
        {.width = 80 + 30 * static_cast<int>(i), .height = 60, .seed = i}));
    for (size_t at = 0;
         i % 3 == 1 && (at = file.find("\xff\xdb", at)) != std::string::npos;
         at += 2)
      std::fill_n(file.begin() + static_cast<ptrdiff_t>(at) + 5, 64, '\xff');
  }
  IndexKeeper keeper;
  keeper.Keep(files);
  for (const Graph& graph : {CropGraph(24), ResizeGraph(), DividingGraph(24)}) {
    GpuPipeline pipeline(graph, *gpus_);
    pipeline.forms = &keeper;
    const Compared compared = CompareGroup(pipeline, files, " refused");
    EXPECT_GT(compared.again, 1);
    EXPECT_GT(compared.same, 6);
  }
  EXPECT_GT(Stats().rows_codes_total, 0u);
  EXPECT_EQ(SlotsInUse(), 0);
}

// Images get room in the order in which they are prepared.
TEST_F(GpuCodesTest, ThatFindNoRoomAreLibjpegs) {
  config_.decode_bytes = 1 << 20;
  Open();
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 20; ++i)
    files.push_back(MakeJpeg({.width = 150, .height = 120, .seed = i}));
  IndexKeeper keeper;
  keeper.Keep(files);
  GpuPipeline pipeline(ResizeGraph(), *gpus_);
  pipeline.forms = &keeper;
  ExpectExact(pipeline, files);
  // 72,000 bytes of pixels, in whose place the words of 160 × 128 samples of
  // luma lie, and half as many of chroma; all samples as bytes; and less than
  // 4 KiB of working memory.
  EXPECT_LE(Stats().rows_codes_total, (1u << 20) / (72'000 + 20'480 * 3 / 2));
  EXPECT_GE(Stats().rows_codes_total, (1u << 20) / (76'096 + 20'480 * 3 / 2));
}

// One copy per group tells the host which rows were refused, where codes were
// sent.
TEST_F(GpuCodesTest, CostOneCopyPerGroup) {
  config_.slots = 1;
  Open();
  std::vector<uint64_t> copies;
  for (const bool progressive : {true, false}) {
    const std::vector<std::string> files(
        20, MakeJpeg({.progressive = progressive}));
    GpuPipeline pipeline(CropGraph(24), *gpus_);
    const uint64_t before = options_.stats->copies_to_host.load();
    pipeline.Run(files);
    copies.push_back(options_.stats->copies_to_host.load() - before);
  }
  EXPECT_EQ(copies[0] + 1, copies[1]);
}

// The decoder reads its files where the host has put them.
TEST_F(GpuCodesTest, AreCopiedWithoutTheFilesOfTheDecoder) {
  config_.slots = 1;
  Open();
  std::vector<std::string> all, hosts, decoders;
  for (uint32_t i = 0; i < 60; ++i) {
    all.push_back(MakeJpeg({.width = 150, .height = 120, .seed = i}));
    (IsHosts(BytesOf(all[i])) ? hosts : decoders).push_back(all[i]);
  }
  ASSERT_GT(hosts.size(), 5u);
  GpuPipeline pipeline(ResizeGraph(), *gpus_, DecoderClass::kNvjpegShared);
  const auto bytes = [&](const std::vector<std::string>& files) {
    const uint64_t before = options_.stats->bytes_to_device.load();
    ExpectExact(pipeline, files);
    return options_.stats->bytes_to_device.load() - before;
  };
  // A group's list of JPEGs has room for all rows.
  EXPECT_LT(bytes(all), bytes(hosts) + bytes(decoders) +
                            all.size() * sizeof(DeviceJpeg) + 4096);
}

}  // namespace
}  // namespace leat::worker
