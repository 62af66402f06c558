// SPDX-License-Identifier: Apache-2.0
//
// Finds NVIDIA's shared libraries at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leat::cuda {

// Where to search, in addition to the system's usual places.
struct LibrarySearch {
  std::string cuda_library;    // a path; if set, no other is tried
  std::string nvjpeg_library;  // the same
  // Python's package folders, where wheels install libraries.
  std::vector<std::string> site_packages;
  std::vector<std::string> driver_folders = {
      "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"};
  std::vector<std::string> toolkit_folders = {
      "/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"};

  // Reads LEAT_CUDA_LIBRARY and LEAT_NVJPEG_LIBRARY; and the package folders of
  // LEAT_SITE_PACKAGES (separated by colons), VIRTUAL_ENV and the system's
  // Python.
  static LibrarySearch FromEnvironment();
};

// Return the candidates for the program loader in order: paths, and names that
// the loader itself searches for.
std::vector<std::string> DriverCandidates(const LibrarySearch& search);
std::vector<std::string> NvjpegCandidates(const LibrarySearch& search);

// A loaded library. Copies refer to the same one; it is never unloaded.
class Library {
 public:
  // Opens the first candidate that loads. kNotFound: none did; gives the reason
  // for each, with absent files in one list.
  static absl::StatusOr<Library> Open(
      std::string_view name, const std::vector<std::string>& candidates);

  // Returns nullptr if there is no such symbol.
  void* Find(const char* symbol) const;
  // Returns the file that was loaded.
  const std::string& path() const { return path_; }

 private:
  Library(void* handle, std::string path)
      : handle_(handle), path_(std::move(path)) {}
  void* handle_;
  std::string path_;
};

// An entry of a table of functions: Bind sets `*pointer` to the symbol.
struct Binding {
  const char* symbol;
  void** pointer;
  bool required = true;
};

// Returns the address of a function pointer member, in the type that Binding
// has.
template <class Pointer>
void** At(Pointer* member) {
  return reinterpret_cast<void**>(member);
}

// Sets all pointers; those of absent optional symbols become nullptr.
// kFailedPrecondition: names the library and the required symbol it lacks.
absl::Status Bind(const Library& library, const std::vector<Binding>& bindings);

}  // namespace leat::cuda
