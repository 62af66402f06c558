// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <system_error>

#include "core/cluster/fault.h"
#include "core/mutex.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/parquet/parquet.h"
#include "worker/source/reader_abilities.h"

namespace leat::worker {
namespace {

// libleat_parquet-2600.so needs Arrow's libraries of pyarrow 26.0.
constexpr std::string_view kLibraryPrefix = "libleat_parquet-", kSuffix = ".so";

// Returns the release of Arrow in such a name: "2600".
std::optional<std::string_view> ReleaseIn(std::string_view name) {
  if (!name.starts_with(kLibraryPrefix) || !name.ends_with(kSuffix))
    return std::nullopt;
  name.remove_prefix(kLibraryPrefix.size());
  name.remove_suffix(std::min(kSuffix.size(), name.size()));
  return name;
}

// Lists each folder's newest release first.
std::vector<std::filesystem::path> Candidates() {
  if (const char* const path = std::getenv("LEAT_PARQUET_LIBRARY");
      path != nullptr && *path != '\0')
    return {path};
  std::vector<std::filesystem::path> candidates;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return candidates;
  for (const char* folder : {".", "lib", "../lib"}) {
    std::vector<std::filesystem::path> here;
    for (std::filesystem::directory_iterator
             entry(program.parent_path() / folder, error),
         end;
         !error && entry != end; entry.increment(error))
      if (ReleaseIn(entry->path().filename().native()))
        here.push_back(entry->path().lexically_normal());
    std::ranges::sort(here, std::greater<>());
    candidates.insert(candidates.end(), here.begin(), here.end());
  }
  return candidates;
}

std::string Advice(const std::vector<std::filesystem::path>& candidates) {
  std::set<std::string> releases;
  for (const auto& candidate : candidates) {
    const std::string name = candidate.filename().string();
    if (const auto release = ReleaseIn(name);
        release && release->size() > 2)  // "2600": 26, 00
      releases.emplace(release->substr(0, release->size() - 2));
  }
  if (releases.empty())
    return "this build of Leat has no Parquet support (it is built where CMake "
           "finds Python's package pyarrow: LEAT_PARQUET)";
  return fmt::format(
      "it wants Arrow's libraries of Python's package pyarrow {}, as Leat's "
      "bundle has them; or pip install 'leat-data[parquet]'",
      fmt::join(releases, " or "));
}

absl::StatusOr<const ParquetLibrary*> Load() {
  std::string failed;
  const std::vector<std::filesystem::path> candidates = Candidates();
  for (const std::filesystem::path& path : candidates) {
    const std::string candidate = path.string();
    void* const handle =
        dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) {
      const char* const why = dlerror();
      failed += failed.empty() ? "" : "; ";
      failed += why == nullptr ? candidate : why;
      continue;
    }
    using Get = const ParquetLibrary* (*)();
    const auto get = reinterpret_cast<Get>(dlsym(handle, kParquetSymbol));
    if (get == nullptr)
      return FailedPrecondition("{} has no {}: it is another library",
                                candidate, kParquetSymbol);
    const ParquetLibrary* const library = get();
    if (library->interface != kParquetInterface ||
        library->release != LEAT_VERSION)
      return FailedPrecondition(
          "{} is of Leat {} (interface {}), this worker of {} (interface {})",
          candidate, library->release, library->interface, LEAT_VERSION,
          kParquetInterface);
    return library;
  }
  return FailedPrecondition("Parquet cannot be read: {}{}{}", failed,
                            failed.empty() ? "" : "; ", Advice(candidates));
}

}  // namespace

absl::StatusOr<const ParquetLibrary*> LoadParquetLibrary() {
  static Mutex& mu = *new Mutex;
  static const ParquetLibrary* loaded = nullptr;  // guarded by mu
  MutexLock lock(&mu);
  if (loaded != nullptr) return loaded;
  const absl::StatusOr<const ParquetLibrary*> library = Load();
  // Another worker may have it.
  if (!library.ok()) return WithFault(library.status(), Fault::kWorker);
  loaded = *library;
  return loaded;
}

absl::Status CanReadParquet() { return LoadParquetLibrary().status(); }

ParquetBounds BoundsOf(const SourceLimits& limits) {
  return {.max_footer_bytes = limits.max_footer_bytes,
          .max_unit_bytes = limits.max_file_bytes};
}

bool StoredParquet::ReadAt(uint64_t offset, std::span<uint8_t> into) const {
  failed_ = file_.ReadAt(offset, std::as_writable_bytes(into));
  return failed_.ok();
}

absl::Status StoredParquet::StatusOf(const ParquetError& error) const {
  switch (error.fault) {
    case ParquetFault::kInput:
      if (!failed_.ok()) return failed_;
      break;
    case ParquetFault::kUnsupported:
      return absl::UnimplementedError(error.text);
    case ParquetFault::kTooLarge:
      return absl::ResourceExhaustedError(error.text);
    case ParquetFault::kNone:
    case ParquetFault::kMalformed:
      break;
  }
  return absl::DataLossError(error.text);
}

}  // namespace leat::worker
