// SPDX-License-Identifier: Apache-2.0
//
// Finding NVIDIA's shared libraries at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leat::cuda {

// Where to look, besides the system's usual places.
struct LibrarySearch {
  std::string cuda_library;    // a path that replaces all others
  std::string nvjpeg_library;  // the same
  // Python's package folders, in which wheels put libraries.
  std::vector<std::string> site_packages;
  std::vector<std::string> driver_folders = {
      "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"};
  std::vector<std::string> toolkit_folders = {
      "/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"};

  // LEAT_CUDA_LIBRARY and LEAT_NVJPEG_LIBRARY; LEAT_SITE_PACKAGES (separated by
  // colons), VIRTUAL_ENV's and the system Python's package folders.
  static LibrarySearch FromEnvironment();
};

// What the program loader may be asked for, in this order: paths, and names
// that it looks up itself.
std::vector<std::string> DriverCandidates(const LibrarySearch& search);
std::vector<std::string> NvjpegCandidates(const LibrarySearch& search);

// A loaded library. Copies name the same one; it is never unloaded.
class Library {
 public:
  // The first candidate that loads. kNotFound: none did; says of each why,
  // absent files in one list.
  static absl::StatusOr<Library> Open(
      std::string_view name, const std::vector<std::string>& candidates);

  // nullptr: no such symbol.
  void* Find(const char* symbol) const;
  // The file that was loaded.
  const std::string& path() const { return path_; }

 private:
  Library(void* handle, std::string path)
      : handle_(handle), path_(std::move(path)) {}
  void* handle_;
  std::string path_;
};

// One entry of a table of functions: `*pointer` is set to the symbol.
struct Binding {
  const char* symbol;
  void** pointer;
  bool required = true;
};

// The address of a member that is a pointer to a function, as Binding takes it.
template <class Pointer>
void** At(Pointer* member) {
  return reinterpret_cast<void**>(member);
}

// Sets all pointers, those of absent optional symbols to null.
// kFailedPrecondition: names the library and the required symbol it lacks.
absl::Status Bind(const Library& library, const std::vector<Binding>& bindings);

}  // namespace leat::cuda
