// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/worker/gpu/fused/graphs.h"
#include "tests/worker/gpu/graphs.h"
#include "tests/worker/gpu/stages/graphs.h"
#include "tests/worker/gpu/support.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::gpu_check {
namespace {

using worker::GpuPipeline;
using worker::GroupResult;

constexpr size_t kGroupRows = 64;
// The most time for random pipelines of each kind.
constexpr double kFirstPipelineSeconds = 4, kAllPipelineSeconds = 30;

std::string SamplingOf(const std::string& file) {
  worker::JpegDecoder decoder({});
  if (!decoder.Open(worker::AsSpan(file)).ok()) return "not decodable";
  const auto& header = decoder.header();
  if (header.progressive) return "progressive (host)";
  if (header.components == 1) return "gray";
  if (header.components != 3) return "four components (host)";
  return fmt::format("{}x{}", header.h_samp[0], header.v_samp[0]);
}

// Returns the number of rows that differ between GPU and CPU. `rows`: how many
// were compared.
size_t WrongRows(GpuPipeline& pipeline, const std::vector<std::string>& files,
                 size_t* rows) {
  const size_t most = std::min(kGroupRows, pipeline.kernel().most_rows());
  size_t wrong = 0;
  for (size_t begin = 0; begin < files.size(); begin += most) {
    std::vector<std::string> group;
    std::vector<worker::RowBytes> expected;
    for (size_t i = begin; i < std::min(begin + most, files.size()); ++i) {
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

// Makes files whose pixels kernels compute from coefficients: of every
// sampling, orientation and quality, of odd sizes.
std::vector<std::string> JpegsOfEverySampling() {
  using testing::JpegColor;
  std::vector<std::string> files;
  std::mt19937 random(20'261'127);
  for (int i = 0; i < 128; ++i)
    files.push_back(testing::MakeJpeg(
        {.width = 1 + static_cast<int>(random() % 300),
         .height = 1 + static_cast<int>(random() % 300),
         .color = i % 9 == 0 ? JpegColor::kGray : JpegColor::kYcc,
         .h = 1 + i % 2,
         .v = 1 + i / 2 % 2,
         .quality = 10 + static_cast<int>(random() % 91),
         .orientation = 1 + i % 8,
         .seed = static_cast<uint32_t>(i)}));
  return files;
}

// Checks windows from one pixel to the whole image, in colours and gray.
void CheckCoefficients(worker::GpuWorker& gpus, Report* report) {
  const std::vector<std::string> files = JpegsOfEverySampling();
  const Value size(std::vector<int64_t>{48, 48});
  const uint64_t before = gpus.stats()[0].rows_coefficients_total;
  size_t rows = 0, wrong = 0;
  for (const bool gray : {false, true})
    for (const double least : {0.0001, 0.5, 1.0}) {
      const Graph graph = worker::ChainOf(
          {{"random_resized_crop",
            {},
            {{"size", size},
             {"area", Value(std::vector<double>{least, 1.0})}}}},
          gray);
      GpuPipeline pipeline(graph, gpus);
      wrong += WrongRows(pipeline, files, &rows);
    }
  report->Check("class exact: every sampling has the CPU's bytes",
                wrong == 0 && rows > 0,
                fmt::format("{} of {} rows differ", wrong, rows));
  const uint64_t made = gpus.stats()[0].rows_coefficients_total - before;
  report->Check("class exact: kernels make pixels of coefficients",
                made == rows, fmt::format("{} of {} rows", made, rows));
}

}  // namespace

void CheckExact(const Setup& setup, Report* report) {
  const auto gpus = OpenWorker(setup, setup.config.slots);
  if (!gpus.ok())
    return report->Check("class exact", false, Message(gpus.status()));
  std::mt19937 random(20'260'101);
  const std::vector<std::string> odd = worker::OddImages();
  size_t rows = 0, wrong = 0;
  const double seconds =
      setup.first ? kFirstPipelineSeconds : kAllPipelineSeconds;
  const MonotonicTime start = Clock::Real().Now();
  int pipelines = 0;
  for (; pipelines < setup.Times(1000, setup.first ? 40 : 10) &&
         SecondsSince(start) < seconds;
       ++pipelines) {
    GpuPipeline pipeline(worker::RandomGraph(random).Make(), **gpus);
    wrong += WrongRows(pipeline, odd, &rows);
  }
  report->Figure("random pipelines", pipelines, "");
  report->Check("class exact: random pipelines have the CPU's bytes",
                wrong == 0 && rows > 0,
                fmt::format("{} of {} rows differ", wrong, rows));
  rows = wrong = 0;
  const MonotonicTime staged_start = Clock::Real().Now();
  for (int i = 0; i < setup.Times(2000, setup.first ? 80 : 20) &&
                  SecondsSince(staged_start) < seconds;
       ++i) {
    const Graph graph = worker::RandomStagedGraph(random).Make(12);
    if (!Check(graph).ok()) continue;  // an output without a size
    GpuPipeline pipeline(graph, **gpus);
    if (!pipeline.kernel().staged(false)) continue;  // computed by the cores
    wrong += WrongRows(pipeline, odd, &rows);
  }
  report->Check(
      "class exact: random pipelines with stages have the CPU's bytes",
      wrong == 0 && rows > 0, fmt::format("{} of {} rows differ", wrong, rows));
  rows = wrong = 0;
  GpuPipeline crop(worker::CropGraph(224), **gpus);
  wrong = WrongRows(crop, setup.files, &rows);
  report->Check("class exact: photos have the CPU's bytes",
                wrong == 0 && rows > 0,
                fmt::format("{} of {} rows differ", wrong, rows));
  // A quick check of the rest leaves out the cases of the first answers.
  if (!setup.quick || setup.first) CheckCoefficients(**gpus, report);
  const worker::GpuStats stats = (*gpus)->stats()[0];
  report->Check(
      "no group failed", stats.groups_failed_total == 0,
      fmt::format("{} of {}", stats.groups_failed_total, stats.groups_total));
  report->Check("all slots are free", stats.slots_in_use == 0);
}

void CheckPhotos(const Setup& setup, Report* report) {
  const auto gpus = OpenWorker(setup, setup.config.slots);
  if (!gpus.ok())
    return report->Check("class nvjpeg", false, Message(gpus.status()));
  GpuPipeline pipeline(worker::CenterGraph(128), **gpus, DecoderClass::kNvjpeg);
  std::map<std::string, Difference> by_sampling;
  size_t failed = 0;
  for (const std::string& file : setup.files) {
    const auto expected = pipeline.OnCpu(file, 0);
    if (!expected.ok()) continue;  // it is smaller than the window
    const GroupResult result = pipeline.Run({file});
    if (!result.ok()) {
      ++failed;
      continue;
    }
    Difference& difference = by_sampling[SamplingOf(file)];
    const auto bytes = [](const worker::RowBytes& row) {
      return std::span(reinterpret_cast<const uint8_t*>(row.data()),
                       row.size());
    };
    difference.Add(bytes(result.rows[0]), bytes(*expected));
  }
  report->Check("class nvjpeg: every photo is decoded", failed == 0,
                fmt::format("{} were not", failed));
  for (const auto& [sampling, difference] : by_sampling) {
    const double mean = difference.mean();
    const Case of = {{"sampling", sampling},
                     {"between", "class nvjpeg and libjpeg-turbo, photos"}};
    report->Figure("largest difference", difference.most, "of 255", of,
                   fmt::format("{} images", difference.images));
    report->Figure("mean difference", mean, "of 255", of);
    report->Check(
        fmt::format("class nvjpeg: {} is near libjpeg-turbo", sampling),
        mean <= 2);
  }
}

}  // namespace leat::gpu_check
