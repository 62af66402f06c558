// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/shard_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/status.h"

namespace leat::cli {

ShardFiles::ShardFiles(std::string folder, std::string extension,
                       std::string tail, uint64_t max_file_bytes)
    : folder_(std::move(folder)),
      extension_(std::move(extension)),
      tail_(std::move(tail)),
      max_file_bytes_(max_file_bytes),
      file_(nullptr, std::fclose) {}

absl::Status ShardFiles::Add(std::string_view record) {
  const bool full =
      bytes_ > 0 && bytes_ + record.size() + tail_.size() > max_file_bytes_;
  if (full) RETURN_IF_ERROR(End());
  if (file_ == nullptr) RETURN_IF_ERROR(Begin());
  bytes_ += record.size();
  return Write(record);
}

absl::Status ShardFiles::Finish() {
  return file_ == nullptr ? absl::OkStatus() : End();
}

absl::Status ShardFiles::Begin() {
  if (files_ == kMaxFiles) {
    return ResourceExhausted(
        "{}: more than {} files of {} bytes: want a larger --shard-size",
        folder_, kMaxFiles, max_file_bytes_);
  }
  path_ = fmt::format("{}/part-{:05}{}", folder_, files_++, extension_);
  file_.reset(std::fopen(path_.c_str(), "wbx"));
  bytes_ = 0;
  return file_ == nullptr ? Failed("make") : absl::OkStatus();
}

absl::Status ShardFiles::End() {
  RETURN_IF_ERROR(Write(tail_));
  if (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0 ||
      std::fclose(file_.release()) != 0) {
    return Failed("write");
  }
  return absl::OkStatus();
}

absl::Status ShardFiles::Write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size()) {
    return absl::OkStatus();
  }
  return Failed("write");
}

absl::Status ShardFiles::Failed(std::string_view what) const {
  return FailedPrecondition("{}: cannot {} it: {}", path_, what,
                            std::strerror(errno));
}

}  // namespace leat::cli
