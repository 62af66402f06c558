// SPDX-License-Identifier: Apache-2.0
//
// leat_gpu_check: checks a machine's GPU against its CPU, and measures it.
//
//   leat_gpu_check --data FOLDER [--device 0] [--threads N] [--quick]
//                  [--json FILE]
//
// Exit codes: 0 all checks passed, 1 one did not, 2 wrong flags or no GPU.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "CLI/CLI.hpp"
#include "core/status.h"
#include "tests/gpu/gpu_check.h"

namespace leat::gpu_check {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

// Up to `most` JPEG files of the folder, spread over all, in order.
std::vector<std::string> ReadFiles(const std::string& folder, size_t most) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder)) {
    std::string extension = entry.path().extension();
    for (char& c : extension)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (extension == ".jpg" || extension == ".jpeg" || extension == ".jpe")
      paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  const size_t step = std::max<size_t>(1, (paths.size() + most - 1) / most);
  for (size_t i = 0; i < paths.size(); i += step) {
    std::ifstream file(paths[i], std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file),
                       std::istreambuf_iterator<char>());
  }
  return files;
}

int Run(Setup setup, const std::string& json) {
  setup.files = ReadFiles(setup.folder, setup.quick ? 64 : 512);
  if (setup.files.empty()) {
    fmt::print(stderr, "leat_gpu_check: {} has no JPEG files\n", setup.folder);
    return 2;
  }
  setup.wake = std::make_shared<worker::WakeSignal>();
  setup.config.devices = {.all = false, .indices = {setup.device}};
  auto gpus = worker::GpuWorker::Open(
      setup.config, {}, setup.wake, [](const absl::Status& status) {
        fmt::print(stderr, "leat_gpu_check: {}\n", Message(status));
      });
  if (!gpus.ok()) {
    fmt::print(stderr, "leat_gpu_check: {}\n", Message(gpus.status()));
    return 2;
  }
  setup.gpus = gpus->get();
  const worker::GpuInfo info = setup.gpus->devices()[0];
  fmt::print(
      "GPU {}: {}, {:.1f} GiB, compute capability {}, nvJPEG {}, JPEG engines "
      "{} x {} cores\n",
      info.index, info.name, static_cast<double>(info.memory_bytes) / 0x1p30,
      info.compute, info.nvjpeg_version.empty() ? "none" : info.nvjpeg_version,
      info.jpeg_engines, info.jpeg_cores);
  Report report;
  CheckExact(setup, &report);
  CheckNvjpeg(setup, &report);
  CheckShapes(setup, &report);
  MeasureRates(setup, &report);
  CheckMemory(setup, &report);
  const auto stats = setup.gpus->stats()[0];
  report.Check(
      "no group failed", stats.groups_failed_total == 0,
      fmt::format("{} of {}", stats.groups_failed_total, stats.groups_total));
  report.Check("all slots are free", stats.slots_in_use == 0);
  if (!json.empty()) std::ofstream(json) << report.ToJson(info) << "\n";
  return report.ok() ? 0 : 1;
}

}  // namespace

void Report::Check(std::string_view name, bool ok, std::string_view note) {
  ok_ = ok_ && ok;
  fmt::print("{} {}{}{}\n", ok ? "ok    " : "FAILED", name,
             note.empty() ? "" : ": ", note);
  lines_.push_back(fmt::format(R"({{"check": {}, "ok": {}, "note": {}}})",
                               Quoted(name), ok, Quoted(note)));
}

void Report::Figure(std::string_view name, double value, std::string_view unit,
                    std::string_view note) {
  fmt::print("       {}: {:.4g} {}{}{}\n", name, value, unit,
             note.empty() ? "" : " ", note);
  lines_.push_back(
      fmt::format(R"({{"figure": {}, "value": {}, "unit": {}, "note": {}}})",
                  Quoted(name), value, Quoted(unit), Quoted(note)));
}

void Report::Missing(std::string_view name, std::string_view why) {
  fmt::print("absent {}: {}\n", name, why);
  lines_.push_back(fmt::format(R"({{"missing": {}, "why": {}}})", Quoted(name),
                               Quoted(why)));
}

std::string Report::ToJson(const worker::GpuInfo& gpu) const {
  return fmt::format(
      R"({{"gpu": {}, "memory_bytes": {}, "compute": {}, "nvjpeg": {}, )"
      R"("jpeg_engines": {}, "jpeg_cores": {}, "ok": {}, "results": [{}]}})",
      Quoted(gpu.name), gpu.memory_bytes, Quoted(gpu.compute),
      Quoted(gpu.nvjpeg_version), gpu.jpeg_engines, gpu.jpeg_cores, ok_,
      fmt::join(lines_, ", "));
}

}  // namespace leat::gpu_check

int main(int argc, char** argv) {
  leat::gpu_check::Setup setup;
  std::string json;
  setup.threads =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App app("Checks a GPU against the CPU, and measures it.",
               "leat_gpu_check");
  app.add_option("--data", setup.folder, "folder with JPEG photos")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--device", setup.device, "GPU");
  app.add_option("--threads", setup.threads, "decode threads")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--quick", setup.quick, "seconds, not minutes");
  app.add_option("--json", json, "file for the results");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return leat::gpu_check::Run(setup, json);
}
