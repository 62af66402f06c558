// SPDX-License-Identifier: Apache-2.0
//
// leat_gpu_check: checks a machine's GPU against its CPU, and measures it.
//
//   leat_gpu_check STEP --data FOLDER [--device 0] [--threads N] [--first]
//                  [--quick] [--lines FILE]
//
// Exit codes: 0 all checks passed, 1 one did not, 2 wrong flags.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "CLI/CLI.hpp"
#include "core/status.h"
#include "cuda/driver.h"
#include "tests/gpu/gpu_check.h"

namespace leat::gpu_check {
namespace {

using StepFunction = void (*)(const Setup&, Report*);
const std::map<std::string, StepFunction>& Steps() {
  static const auto* const steps = new std::map<std::string, StepFunction>{
      {"handles", CheckHandles},     {"nulls", CheckNulls},
      {"exact", CheckExact},         {"whole", CheckWhole},
      {"shapes", CheckShapes},       {"behind", CheckBehind},
      {"damage", CheckDamage},       {"memory", CheckMemory},
      {"nvjpeg", MeasureNvjpeg},     {"squares", MeasureSquares},
      {"copies", MeasureCopies},     {"slots", MeasureSlots},
      {"few_slots", MeasureFewSlots}};
  return *steps;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

// Reads up to `most` JPEG files of the folder, spread over all, in order.
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

size_t MostFiles(const std::string& step, const Setup& setup) {
  // These steps decode photos one by one.
  if (setup.quick && (step == "shapes" || step == "exact"))
    return setup.first ? 32 : 8;
  if (setup.quick || setup.first) return 64;
  return step == "nvjpeg" ? 1024 : 512;
}

// Returns the device's memory; 0: it cannot be asked, which each step reports.
uint64_t MemoryOf(int index) {
  const auto driver = cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment());
  cuda::Device device = 0;
  size_t bytes = 0;
  if (!driver.ok() || (*driver)->Init(0) != cuda::Result::kSuccess ||
      (*driver)->DeviceGet(&device, index) != cuda::Result::kSuccess ||
      (*driver)->DeviceTotalMem(&bytes, device) != cuda::Result::kSuccess)
    return 0;
  return bytes;
}

int Run(const std::string& step, Setup setup, const std::string& lines) {
  setup.files = ReadFiles(setup.folder, MostFiles(step, setup));
  if (setup.files.empty()) {
    fmt::print(stderr, "leat_gpu_check: {} has no JPEG files\n", setup.folder);
    return 2;
  }
  Report report;
  if (!lines.empty() && !report.Open(lines)) {
    fmt::print(stderr, "leat_gpu_check: --lines {}: cannot be written\n",
               lines);
    return 2;
  }
  setup.wake = std::make_shared<worker::WakeSignal>();
  setup.config = setup.config.For(MemoryOf(setup.device));
  setup.config.devices = {.all = false, .indices = {setup.device}};
  Steps().at(step)(setup, &report);
  return report.ok() ? 0 : 1;
}

}  // namespace

Report::~Report() {
  if (file_ != nullptr) std::fclose(file_);
}

bool Report::Open(const std::string& path) {
  file_ = std::fopen(path.c_str(), "a");
  return file_ != nullptr;
}

void Report::Write(const std::string& line) {
  std::fflush(stdout);
  if (file_ == nullptr) return;
  std::fputs((line + "\n").c_str(), file_);
  std::fflush(file_);
}

void Report::Check(std::string_view name, bool ok, std::string_view note) {
  ok_ = ok_ && ok;
  fmt::print("{} {}{}{}\n", ok ? "ok    " : "FAILED", name,
             note.empty() ? "" : ": ", note);
  Write(fmt::format(R"({{"check": {}, "ok": {}, "note": {}}})", Quoted(name),
                    ok, Quoted(note)));
}

void Report::Figure(std::string_view name, double value, std::string_view unit,
                    const Case& of, std::string_view note) {
  std::string shown, quoted;
  for (const auto& [key, text] : of) {
    shown += fmt::format(" {}={}", key, text);
    quoted += fmt::format("{}{}: {}", quoted.empty() ? "" : ", ", Quoted(key),
                          Quoted(text));
  }
  fmt::print("       {}{}: {:.6g} {} {}\n", name, shown, value, unit, note);
  Write(fmt::format(
      R"({{"figure": {}, "value": {}, "unit": {}, "note": {}, "of": {{{}}}}})",
      Quoted(name), value, Quoted(unit), Quoted(note), quoted));
}

void Report::Missing(std::string_view name, std::string_view why) {
  fmt::print("absent {}: {}\n", name, why);
  Write(fmt::format(R"({{"missing": {}, "why": {}}})", Quoted(name),
                    Quoted(why)));
}

void Report::Fact(std::string_view name, std::string_view text) {
  fmt::print("       {}: {}\n", name, text);
  Write(fmt::format(R"({{"fact": {}, "value": {}}})", Quoted(name),
                    Quoted(text)));
}

absl::StatusOr<std::unique_ptr<worker::GpuWorker>> OpenWorker(
    const Setup& setup, int slots) {
  worker::GpuConfig config = setup.config;
  config.slots = slots;
  return worker::GpuWorker::Open(
      config, {}, setup.wake, [](const absl::Status& status) {
        fmt::print(stderr, "leat_gpu_check: {}\n", Message(status));
      });
}

bool HasNvjpeg(const worker::GpuWorker& gpus) {
  return !gpus.devices()[0].decoder_version.empty();
}

}  // namespace leat::gpu_check

int main(int argc, char** argv) {
  leat::gpu_check::Setup setup;
  std::string step, lines;
  setup.threads =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App app("Checks a GPU against the CPU, and measures it.",
               "leat_gpu_check");
  app.add_option("step", step, "what to do")
      ->required()
      ->check(CLI::IsMember(&leat::gpu_check::Steps()));
  app.add_option("--data", setup.folder, "folder with JPEG photos")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--device", setup.device, "GPU");
  app.add_option("--threads", setup.threads, "decode threads")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--first", setup.first, "a first answer, with fewer files");
  app.add_flag("--quick", setup.quick, "seconds, not minutes");
  app.add_option("--lines", lines, "file to which what is found is appended");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return leat::gpu_check::Run(step, setup, lines);
}
