// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "core/status.h"
#include "cuda/driver.h"
#include "tests/gpu/gpu_check.h"
#include "tests/worker/gpu/fused_graphs.h"
#include "tests/worker/gpu/gpu_graphs.h"
#include "tests/worker/gpu/gpu_support.h"
#include "tests/worker/gpu/staged_graphs.h"
#include "worker/image/jpeg_decoder.h"

namespace leat::gpu_check {
namespace {

using worker::GpuPipeline;
using worker::GroupResult;

constexpr size_t kGroupRows = 64;

// Of a decoder against another.
struct Difference {
  int most = 0;
  double sum = 0;
  uint64_t bytes = 0;
  size_t images = 0;
};

std::string SamplingOf(const std::string& file) {
  worker::JpegDecoder decoder({});
  if (!decoder.Open(worker::AsSpan(file)).ok()) return "not decodable";
  const auto& header = decoder.header();
  if (header.progressive) return "progressive (host)";
  if (header.components == 1) return "gray";
  if (header.components != 3) return "four components (host)";
  return fmt::format("{}x{}", header.h_samp[0], header.v_samp[0]);
}

// Rows that the GPU computed otherwise than the CPU. `rows`: how many were
// compared.
size_t WrongRows(GpuPipeline& pipeline, const std::vector<std::string>& files,
                 size_t* rows) {
  size_t wrong = 0;
  for (size_t begin = 0; begin < files.size(); begin += kGroupRows) {
    std::vector<std::string> group;
    std::vector<worker::RowBytes> expected;
    for (size_t i = begin; i < std::min(begin + kGroupRows, files.size());
         ++i) {
      auto row = pipeline.OnCpu(files[i], group.size());
      if (!row.ok()) continue;
      group.push_back(files[i]);
      expected.push_back(*std::move(row));
    }
    if (group.empty()) continue;
    const GroupResult result = pipeline.Run(group);
    *rows += group.size();
    for (size_t row = 0; row < group.size(); ++row)
      wrong += !result.ok() || result.rows[row] != expected[row];
  }
  return wrong;
}

}  // namespace

void CheckExact(const Setup& setup, Report* report) {
  std::mt19937 random(20'260'101);
  const std::vector<std::string> odd = worker::OddImages();
  size_t rows = 0, wrong = 0;
  for (int i = 0; i < (setup.quick ? 50 : 1000); ++i) {
    GpuPipeline pipeline(worker::RandomGraph(random).Make(), *setup.gpus);
    wrong += WrongRows(pipeline, odd, &rows);
  }
  report->Check("class exact: random pipelines have the CPU's bytes",
                wrong == 0 && rows > 0,
                fmt::format("{} of {} rows differ", wrong, rows));
  rows = wrong = 0;
  for (int i = 0; i < (setup.quick ? 100 : 2000); ++i) {
    const Graph graph = worker::RandomStagedGraph(random).Make(12);
    if (!Check(graph).ok()) continue;  // an output without a size
    GpuPipeline pipeline(graph, *setup.gpus);
    if (!pipeline.kernel().staged(false)) continue;  // the cores'
    wrong += WrongRows(pipeline, odd, &rows);
  }
  report->Check(
      "class exact: random pipelines with stages have the CPU's bytes",
      wrong == 0 && rows > 0, fmt::format("{} of {} rows differ", wrong, rows));
  rows = wrong = 0;
  GpuPipeline crop(worker::CropGraph(224), *setup.gpus);
  wrong = WrongRows(crop, setup.files, &rows);
  report->Check("class exact: photos have the CPU's bytes",
                wrong == 0 && rows > 0,
                fmt::format("{} of {} rows differ", wrong, rows));
}

void CheckNvjpeg(const Setup& setup, Report* report) {
  if (!setup.nvjpeg())
    return report->Missing("class nvjpeg", "there is no nvJPEG");
  GpuPipeline pipeline(worker::CenterGraph(128), *setup.gpus,
                       DecoderClass::kNvjpeg);
  std::map<std::string, Difference> by_sampling;
  size_t failed = 0;
  for (const std::string& file : setup.files) {
    const auto expected = pipeline.OnCpu(file, 0);
    if (!expected.ok()) continue;  // smaller than the window
    const GroupResult result = pipeline.Run({file});
    if (!result.ok()) {
      ++failed;
      continue;
    }
    Difference& difference = by_sampling[SamplingOf(file)];
    ++difference.images;
    for (size_t i = 0; i < expected->size(); ++i) {
      const int off = std::abs(std::to_integer<int>(result.rows[0][i]) -
                               std::to_integer<int>((*expected)[i]));
      difference.most = std::max(difference.most, off);
      difference.sum += off;
      ++difference.bytes;
    }
  }
  report->Check("class nvjpeg: every photo is decoded", failed == 0,
                fmt::format("{} were not", failed));
  for (const auto& [sampling, difference] : by_sampling) {
    const double mean = difference.sum / static_cast<double>(difference.bytes);
    report->Figure(fmt::format("nvjpeg against libjpeg-turbo, {}: largest "
                               "difference of {} images",
                               sampling, difference.images),
                   difference.most, "of 255");
    report->Figure(
        fmt::format("nvjpeg against libjpeg-turbo, {}: mean", sampling), mean,
        "of 255");
    report->Check(
        fmt::format("class nvjpeg: {} is near libjpeg-turbo", sampling),
        mean <= 2);
  }
}

void CheckMemory(const Setup& setup, Report* report) {
  const auto driver = cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment());
  GpuPipeline pipeline(
      worker::CropGraph(64), *setup.gpus,
      setup.nvjpeg() ? DecoderClass::kNvjpeg : DecoderClass::kExact);
  const std::vector<std::string> group(
      setup.files.begin(),
      setup.files.begin() +
          static_cast<ptrdiff_t>(std::min<size_t>(8, setup.files.size())));
  const int groups = setup.quick ? 200 : 10'000;
  const auto free_bytes = [&] {
    size_t free = 0, total = 0;
    cuda::Context context = nullptr;
    cuda::Device device = 0;
    (*driver)->DeviceGet(&device, setup.device);
    (*driver)->DevicePrimaryCtxRetain(&context, device);
    (*driver)->CtxSetCurrent(context);
    (*driver)->MemGetInfo(&free, &total);
    (*driver)->DevicePrimaryCtxRelease(device);
    return static_cast<double>(free);
  };
  for (int i = 0; i < groups / 10; ++i) pipeline.Run(group);
  const double before = free_bytes();
  for (int i = 0; i < groups; ++i) pipeline.Run(group);
  const double grown = before - free_bytes();
  report->Check(fmt::format("device memory is flat over {} groups", groups),
                grown <= 0, fmt::format("{} bytes more", grown));
}

}  // namespace leat::gpu_check
