// SPDX-License-Identifier: Apache-2.0
//
// Runs all targets without libFuzzer, for tests/run.
//
//   leat_fuzz CORPUS               every file of CORPUS/TARGET, then TARGET's
//                                  number of runs on changed ones
//   leat_fuzz --replay TARGET FILE...
//   leat_fuzz --runs TARGET CORPUS COUNT SEED
//                                  that many runs of one target on changed
//                                  files, different ones for each seed, so that
//                                  several processes share a long run; prints
//                                  the runs per second and core
//   leat_fuzz --seeds DIRECTORY    writes initial inputs, a folder per target
//
// The same files give the same runs on every machine. An input that kills the
// process, or takes over 30 s of it, is written to crash-TARGET in the working
// folder. Exits with 1 if a target has no files.
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(
    void (*callback)());

namespace leat::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxSeconds = 30;  // of processor time, for one input

// The current input, to be saved if the process dies; without data, no input
// runs.
std::string crash_file;
std::string_view current;

void Save() {
  if (current.data() == nullptr) return;
  const int fd = open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return;
  for (size_t at = 0; at < current.size();) {
    const ssize_t wrote = write(fd, current.data() + at, current.size() - at);
    if (wrote <= 0) break;
    at += static_cast<size_t>(wrote);
  }
  close(fd);
  for (const std::string_view part :
       {std::string_view("leat_fuzz: the input is in "),
        std::string_view(crash_file), std::string_view("\n")})
    (void)!write(STDERR_FILENO, part.data(), part.size());
}

void OnSignal(int signal) {
  Save();
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void WatchForDeath() {
  const bool sanitizer = &__sanitizer_set_death_callback != nullptr;
  if (sanitizer) __sanitizer_set_death_callback(&Save);
  signal(SIGABRT, &OnSignal);
  signal(SIGVTALRM, &OnSignal);
  if (sanitizer) return;  // it reports the other signals itself
  for (const int each : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    signal(each, &OnSignal);
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void RunOn(const TargetInfo& target, const std::string& input) {
  // Exactly the input's size, so that reads beyond it are detected.
  const auto bytes = std::make_unique<char[]>(input.size());
  std::memcpy(bytes.get(), input.data(), input.size());
  current = {bytes.get(), input.size()};
  const itimerval limit = {.it_interval = {}, .it_value = {kMaxSeconds, 0}};
  setitimer(ITIMER_VIRTUAL, &limit, nullptr);
  target.run(current);
  current = {};
}

void Begin(const TargetInfo& target) {
  crash_file = "crash-" + std::string(target.name);
}

// Returns the files of a folder; empty: there are none.
std::vector<std::string> ReadCorpus(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const fs::path& path : paths) corpus.push_back(ReadFile(path));
  if (corpus.empty())
    fprintf(stderr, "leat_fuzz: no files in %s\n", folder.c_str());
  return corpus;
}

void RunChanged(const TargetInfo& target,
                const std::vector<std::string>& corpus, Random* random) {
  std::string input;
  if (target.change != nullptr && (*random)() % 16 != 0) {
    input = corpus[(*random)() % corpus.size()];
    target.change(input, *random);
  } else {
    input = Mutated(corpus, random);
  }
  if (target.repair != nullptr && (*random)() % 16 != 0) target.repair(input);
  RunOn(target, input);
}

bool RunTarget(const TargetInfo& target, const fs::path& folder) {
  const std::vector<std::string> corpus = ReadCorpus(folder);
  if (corpus.empty()) return false;
  Begin(target);
  for (const std::string& input : corpus) RunOn(target, input);
  Random random(1);
  for (int i = 0; i < target.runs; ++i) RunChanged(target, corpus, &random);
  printf("%.*s: %zu files, %d changed\n", static_cast<int>(target.name.size()),
         target.name.data(), corpus.size(), target.runs);
  return true;
}

// Runs as often as `--runs` says, and prints a line from time to time, since a
// long run may be ended.
bool RunLong(const TargetInfo& target, const fs::path& folder, uint64_t count,
             uint64_t seed) {
  constexpr uint64_t kLineEach = 100'000;
  const std::vector<std::string> corpus = ReadCorpus(folder);
  if (corpus.empty()) return false;
  Begin(target);
  Random random(seed);
  const clock_t began = clock();
  for (uint64_t done = 1; done <= count; ++done) {
    RunChanged(target, corpus, &random);
    if (done % kLineEach != 0 && done != count) continue;
    const double seconds =
        static_cast<double>(clock() - began) / CLOCKS_PER_SEC;
    printf("%.*s: seed %llu, %llu changed, %.0f a second of a core\n",
           static_cast<int>(target.name.size()), target.name.data(),
           static_cast<unsigned long long>(seed),
           static_cast<unsigned long long>(done),
           static_cast<double>(done) / std::max(seconds, 1e-9));
    if (target.counts != nullptr) printf("  %s\n", target.counts().c_str());
    fflush(stdout);
  }
  return true;
}

// Returns false if it is not a number.
bool ReadNumber(const std::string& text, uint64_t* number) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool WriteSeeds(const TargetInfo& target, const fs::path& folder) {
  fs::create_directories(folder);
  const std::vector<std::string> seeds = target.seeds();
  for (size_t i = 0; i < seeds.size(); ++i) {
    const fs::path path = folder / ("seed-" + std::to_string(i));
    std::ofstream file(path, std::ios::binary);
    if (!(file << seeds[i]).flush()) {
      fprintf(stderr, "leat_fuzz: %s: not written\n", path.c_str());
      return false;
    }
  }
  return true;
}

int Main(const std::vector<std::string>& arguments) {
  std::vector<TargetInfo> targets = Target::All();
  std::sort(targets.begin(), targets.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  WatchForDeath();
  bool good = true;
  if (arguments.size() == 1 && !arguments[0].starts_with("--")) {
    for (const TargetInfo& target : targets)
      good = RunTarget(target, fs::path(arguments[0]) / target.name) && good;
    return good ? 0 : 1;
  }
  if (arguments.size() == 2 && arguments[0] == "--seeds") {
    for (const TargetInfo& target : targets)
      good = WriteSeeds(target, fs::path(arguments[1]) / target.name) && good;
    return good ? 0 : 1;
  }
  if (arguments.size() >= 3 && arguments[0] == "--replay") {
    for (const TargetInfo& target : targets) {
      if (target.name != arguments[1]) continue;
      Begin(target);
      for (size_t i = 2; i < arguments.size(); ++i)
        RunOn(target, ReadFile(arguments[i]));
      return 0;
    }
  }
  uint64_t count = 0, seed = 0;
  if (arguments.size() == 5 && arguments[0] == "--runs" &&
      ReadNumber(arguments[3], &count) && ReadNumber(arguments[4], &seed)) {
    for (const TargetInfo& target : targets)
      if (target.name == arguments[1])
        return RunLong(target, fs::path(arguments[2]) / target.name, count,
                       seed)
                   ? 0
                   : 1;
  }
  fprintf(stderr,
          "usage: leat_fuzz CORPUS | --replay TARGET FILE... | --runs TARGET "
          "CORPUS COUNT SEED | --seeds DIRECTORY\ntargets:");
  for (const TargetInfo& target : targets)
    fprintf(stderr, " %.*s", static_cast<int>(target.name.size()),
            target.name.data());
  fprintf(stderr, "\n");
  return 2;
}

}  // namespace
}  // namespace leat::fuzz

int main(int argc, char** argv) {
  return leat::fuzz::Main({argv + 1, argv + argc});
}
