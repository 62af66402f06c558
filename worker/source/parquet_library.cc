// SPDX-License-Identifier: Apache-2.0
//
// LEAT_PYARROW_VERSION: of the Python package whose libraries this build's
// libleat_parquet.so wants; empty in builds without it.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/mutex.h"
#include "core/status.h"
#include "worker/source/parquet.h"

namespace leat::worker {
namespace {

constexpr const char* kFile = "libleat_parquet.so";

std::vector<std::string> Candidates() {
  if (const char* const path = std::getenv("LEAT_PARQUET_LIBRARY");
      path != nullptr && *path != '\0')
    return {path};
  std::vector<std::string> candidates;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error)
    for (const char* folder : {".", "lib", "../lib"}) {
      const auto file = program.parent_path() / folder / kFile;
      if (std::filesystem::exists(file, error))
        candidates.push_back(file.lexically_normal().string());
    }
  candidates.emplace_back(kFile);
  return candidates;
}

std::string Advice() {
  if (std::string_view(LEAT_PYARROW_VERSION).empty())
    return "this build of Leat has no Parquet support (it is built where CMake "
           "finds Python's package pyarrow: LEAT_PARQUET)";
  return fmt::format(
      "it wants Arrow's libraries of Python's package pyarrow {}, as Leat's "
      "bundle has them; or pip install \"leat[parquet]\"",
      LEAT_PYARROW_VERSION);
}

absl::StatusOr<const ParquetLibrary*> Load() {
  std::string failed;
  for (const std::string& candidate : Candidates()) {
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
      return Unimplemented("{} has no {}: it is another library", candidate,
                           kParquetSymbol);
    const ParquetLibrary* const library = get();
    if (library->interface != kParquetInterface ||
        library->release != LEAT_VERSION)
      return Unimplemented(
          "{} is of Leat {} (interface {}), this worker of {} (interface {})",
          candidate, library->release, library->interface, LEAT_VERSION,
          kParquetInterface);
    return library;
  }
  return Unimplemented("Parquet cannot be read: {}; {}", failed, Advice());
}

}  // namespace

absl::StatusOr<const ParquetLibrary*> LoadParquetLibrary() {
  static Mutex& mu = *new Mutex;
  static const ParquetLibrary* loaded = nullptr;  // guarded by mu
  MutexLock lock(&mu);
  if (loaded != nullptr) return loaded;
  ASSIGN_OR_RETURN(loaded, Load());
  return loaded;
}

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
