// SPDX-License-Identifier: Apache-2.0
#include "client/private/machine.h"

#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "absl/status/statusor.h"
#include "client/private/embedded.h"
#include "core/status.h"

namespace leat::client {
namespace {

// The free memory at an arena's top that is kept, and the size from which an
// allocation gets pages of its own: the maximum of glibc's own adaptation,
// which setting the former would otherwise freeze at 128 KiB.
constexpr int kTrimBytes = 256 << 20;
constexpr int kMapBytes = 32 << 20;

}  // namespace

void KeepReceiveMemory() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const char* name : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_",
                             "MALLOC_TOP_PAD_", "GLIBC_TUNABLES"})
      if (std::getenv(name) != nullptr) return;
    mallopt(M_TRIM_THRESHOLD, kTrimBytes);
    mallopt(M_MMAP_THRESHOLD, kMapBytes);
  });
}

std::string LibraryFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&LibraryFolder), &info) == 0 ||
      info.dli_fname == nullptr)
    return "";
  std::error_code error;
  std::filesystem::path path =
      std::filesystem::canonical(info.dli_fname, error);
  // For a program started by its bare name.
  if (error) path = std::filesystem::canonical("/proc/self/exe", error);
  return error ? "" : path.parent_path().string();
}

absl::StatusOr<std::string> FindDaemon(const std::string& program,
                                       const std::string& daemon_dir) {
  std::vector<std::string> folders;
  if (!daemon_dir.empty()) {
    folders = {daemon_dir};
  } else {
    if (const std::string own = LibraryFolder(); !own.empty())
      folders = {own, own + "/../bin", own + "/bin"};
    const char* path = std::getenv("PATH");
    std::string_view rest(path == nullptr ? "" : path);
    while (!rest.empty()) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      if (colon > 0) folders.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  std::string looked;
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + program;
    if (access(path.c_str(), X_OK) == 0) return path;
    looked += (looked.empty() ? "" : ", ") + folder;
  }
  return NotFound(
      "the private service needs {}, which is not in {}; install it, say where "
      "(daemon_dir), or give the address of a running coordinator",
      program, looked);
}

}  // namespace leat::client
