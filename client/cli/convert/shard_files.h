// SPDX-License-Identifier: Apache-2.0
//
// ShardFiles writes records to files part-00000.EXT, part-00001.EXT, ... of a
// bounded size: a record that would make a file too large begins the next one.
// A record that is too large by itself has its own file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leat::cli {

class ShardFiles {
 public:
  static constexpr uint32_t kMaxFiles = 100'000;  // as many as sort by name

  // `extension` includes the dot; `tail` ends every file and counts.
  ShardFiles(std::string folder, std::string extension, std::string tail,
             uint64_t max_file_bytes);

  // kFailedPrecondition: names the file and the reason. kResourceExhausted:
  // over kMaxFiles.
  absl::Status Add(std::string_view record);
  // Puts everything on the disk.
  absl::Status Finish();

 private:
  absl::Status Begin();
  absl::Status End();
  absl::Status Write(std::string_view bytes);
  absl::Status Failed(std::string_view what) const;

  const std::string folder_, extension_, tail_;
  const uint64_t max_file_bytes_;
  std::string path_;  // of the current file
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
  uint64_t bytes_ = 0;  // in it
  uint32_t files_ = 0;
};

}  // namespace leat::cli
