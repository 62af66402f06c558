// SPDX-License-Identifier: Apache-2.0
#include "cuda/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/status.h"

namespace leat::cuda {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the paths that match, sorted.
std::vector<std::string> Matching(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

void AppendMatching(const std::string& pattern,
                    std::vector<std::string>* paths) {
  for (std::string& path : Matching(pattern)) paths->push_back(std::move(path));
}

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

}  // namespace

LibrarySearch LibrarySearch::FromEnvironment() {
  LibrarySearch search;
  search.cuda_library = Variable("LEAT_CUDA_LIBRARY");
  search.nvjpeg_library = Variable("LEAT_NVJPEG_LIBRARY");
  const std::string listed = Variable("LEAT_SITE_PACKAGES");
  for (size_t begin = 0; begin < listed.size();) {
    const size_t end = std::min(listed.find(':', begin), listed.size());
    if (end > begin)
      search.site_packages.push_back(listed.substr(begin, end - begin));
    begin = end + 1;
  }
  if (const std::string root = Variable("VIRTUAL_ENV"); !root.empty())
    AppendMatching(root + "/lib/python3*/site-packages", &search.site_packages);
  AppendMatching("/usr/local/lib/python3*/*-packages", &search.site_packages);
  AppendMatching("/usr/lib/python3/dist-packages", &search.site_packages);
  return search;
}

std::vector<std::string> DriverCandidates(const LibrarySearch& search) {
  if (!search.cuda_library.empty()) return {search.cuda_library};
  std::vector<std::string> candidates = {"libcuda.so.1"};
  for (const std::string& folder : search.driver_folders)
    candidates.push_back(folder + "/libcuda.so.1");
  return candidates;
}

std::vector<std::string> NvjpegCandidates(const LibrarySearch& search) {
  if (!search.nvjpeg_library.empty()) return {search.nvjpeg_library};
  constexpr const char* kNames[] = {"libnvjpeg.so.13", "libnvjpeg.so.12",
                                    "libnvjpeg.so"};
  std::vector<std::string> candidates(std::begin(kNames), std::end(kNames));
  for (const std::string& folder : search.toolkit_folders)
    for (const char* name : kNames) candidates.push_back(folder + "/" + name);
  for (const std::string& folder : search.site_packages) {
    candidates.push_back(folder + "/nvidia/cu13/lib/libnvjpeg.so.13");
    candidates.push_back(folder + "/nvidia/nvjpeg/lib/libnvjpeg.so.12");
    // torchvision includes a copy, with a hash in its name.
    AppendMatching(folder + "/torchvision.libs/libnvjpeg*.so*", &candidates);
  }
  return candidates;
}

absl::StatusOr<Library> Library::Open(
    std::string_view name, const std::vector<std::string>& candidates) {
  std::string absent, failed;
  for (const std::string& candidate : candidates) {
    void* const handle =
        dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != nullptr) {
      link_map* map = nullptr;
      std::string path = candidate;
      if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr &&
          map->l_name[0] != '\0')
        path = map->l_name;
      return Library(handle, std::move(path));
    }
    const char* const why = dlerror();
    if (candidate.find('/') != std::string::npos && !Exists(candidate)) {
      absent += (absent.empty() ? "" : ", ") + candidate;
    } else {
      failed += failed.empty() ? "" : "; ";
      failed += why == nullptr ? candidate : why;
    }
  }
  std::string message = fmt::format("no {} could be loaded", name);
  if (!failed.empty()) message += ": " + failed;
  if (!absent.empty()) message += "; nor is there " + absent;
  return absl::NotFoundError(message);
}

void* Library::Find(const char* symbol) const { return dlsym(handle_, symbol); }

absl::Status Bind(const Library& library,
                  const std::vector<Binding>& bindings) {
  for (const Binding& binding : bindings) {
    *binding.pointer = library.Find(binding.symbol);
    if (*binding.pointer == nullptr && binding.required)
      return FailedPrecondition(
          "{} has no {}: it is too old, or not the library that it is called",
          library.path(), binding.symbol);
  }
  return absl::OkStatus();
}

}  // namespace leat::cuda
