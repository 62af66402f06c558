// SPDX-License-Identifier: Apache-2.0
//
// leat_make_photos: a folder of drawn photos, for machines that have none.
// Exit codes: 0; 1 failed; 2 wrong use.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "tests/support/photos/photo.h"

namespace leat::testing {
namespace {

constexpr std::string_view kUsage =
    R"(usage: leat_make_photos FOLDER COUNT [--classes N] [--max-side N] [--seed N]
                        [--threads N]

Draws COUNT photos as JPEG files FOLDER/CLASS/NUMBER.jpg. The same arguments
give the same bytes, and a photo does not depend on COUNT.

  COUNT         1 to 1000000; each class gets the same share
  --classes N   1 to 1000 (default 10). Up to 10 differ in what is shown, up
                to 100 also in its colour, more also in what is behind it
  --max-side N  the largest photo's longest side, 16 to 8192 (default 640)
  --seed N      0 to 4294967295 (default 1): another seed, other photos
  --threads N   1 to 256 (default: one a core)
)";
constexpr int kMaxCount = 1'000'000;

struct Arguments {
  std::filesystem::path folder;
  int count = 0;
  PhotoSet set;
  int threads = 0;
};

int WrongUse(std::string_view what) {
  fmt::print(stderr, "leat_make_photos: {}\n{}", what, kUsage);
  return 2;
}

// Reads a whole number of `low` to `high`; returns what is wrong with it, or an
// empty text.
template <typename Number>
std::string ReadNumber(std::string_view name, std::string_view text,
                       int64_t low, int64_t high, Number* value) {
  int64_t read = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc() || end != text.data() + text.size() || read < low ||
      read > high)
    return fmt::format("{} {}: want {} to {}", name, text, low, high);
  *value = static_cast<Number>(read);
  return "";
}

// Reads the words; returns what is wrong with them, or an empty text.
std::string Read(const std::vector<std::string_view>& words,
                 Arguments* arguments) {
  PhotoSet& set = arguments->set;
  int plain = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    std::string wrong;
    if (word.starts_with("--")) {
      if (i + 1 == words.size()) return fmt::format("{}: want a value", word);
      const std::string_view value = words[++i];
      if (word == "--classes")
        wrong = ReadNumber(word, value, 1, kMaxClasses, &set.classes);
      else if (word == "--max-side")
        wrong = ReadNumber(word, value, 16, 8192, &set.max_side);
      else if (word == "--seed")
        wrong = ReadNumber(word, value, 0, 0xFFFFFFFF, &set.seed);
      else if (word == "--threads")
        wrong = ReadNumber(word, value, 1, 256, &arguments->threads);
      else
        wrong = fmt::format("unknown option {}", word);
    } else if (plain == 0 && !word.empty()) {
      arguments->folder = word;
      ++plain;
    } else if (plain == 1) {
      wrong = ReadNumber("COUNT", word, 1, kMaxCount, &arguments->count);
      ++plain;
    } else {
      wrong = fmt::format("unexpected '{}'", word);
    }
    if (!wrong.empty()) return wrong;
  }
  return plain < 2 ? "want FOLDER and COUNT" : "";
}

// Writes a file under another name first, so that no incomplete file is left
// under its own.
std::error_code Write(const std::filesystem::path& path,
                      const std::string& bytes) {
  std::filesystem::path part = path;
  part += ".part";
  std::error_code error;
  errno = 0;
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) error = {errno != 0 ? errno : EIO, std::generic_category()};
  }
  if (!error) std::filesystem::rename(part, path, error);
  std::error_code ignored;
  if (error) std::filesystem::remove(part, ignored);
  return error;
}

struct Progress {
  std::atomic<int> next{0};
  std::atomic<bool> failed{false};
};

void Work(const Arguments& arguments, Progress* progress) {
  const PhotoSet& set = arguments.set;
  for (int i; !progress->failed && (i = progress->next++) < arguments.count;) {
    const std::filesystem::path path =
        arguments.folder / ClassName(set, i % set.classes) /
        fmt::format("{:06}.jpg", i / set.classes);
    const std::error_code error = Write(path, EncodePhoto(DrawPhoto(set, i)));
    if (error && !progress->failed.exchange(true))
      fmt::print(stderr, "leat_make_photos: {}: cannot be written: {}\n",
                 path.string(), error.message());
  }
}

int Main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "--help") {
    fmt::print("{}", kUsage);
    return 0;
  }
  Arguments arguments;
  if (const std::string wrong = Read(words, &arguments); !wrong.empty())
    return WrongUse(wrong);
  for (int i = 0; i < std::min(arguments.set.classes, arguments.count); ++i) {
    const std::filesystem::path folder =
        arguments.folder / ClassName(arguments.set, i);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      fmt::print(stderr, "leat_make_photos: {}: cannot be made: {}\n",
                 folder.string(), error.message());
      return 1;
    }
  }
  Progress progress;
  std::vector<std::thread> threads(
      arguments.threads > 0
          ? arguments.threads
          : std::clamp<int>(std::thread::hardware_concurrency(), 1, 256));
  for (std::thread& thread : threads)
    thread = std::thread([&] { Work(arguments, &progress); });
  for (std::thread& thread : threads) thread.join();
  return progress.failed ? 1 : 0;
}

}  // namespace
}  // namespace leat::testing

int main(int argc, char** argv) { return leat::testing::Main(argc, argv); }
