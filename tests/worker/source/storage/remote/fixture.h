// SPDX-License-Identifier: Apache-2.0
//
// RemoteStorage: a Storage and an ObjectServer for it, with small bounds.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/status.h"
#include "tests/worker/source/storage/s3/object_server.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

class RemoteStorage : public testing::Test {
 protected:
  RemoteStorage() {
    env_["HOME"] = home_.path();
    env_["AWS_ACCESS_KEY_ID"] = "AKIDEXAMPLE";
    env_["AWS_SECRET_ACCESS_KEY"] = "very-secret";
    env_["AWS_ENDPOINT_URL"] = server_.url();
    setenv("no_proxy", "127.0.0.1", 1);
    Restart(Small());
  }

  static StorageConfig Small() {
    return {.connections = 16,
            .parallel_ranges = 4,
            .range_bytes = 1000,
            .coalesce_gap_bytes = 10,
            .request_timeout = StorageMs(20'000),
            .first_backoff = StorageMs(1),
            .max_backoff = StorageMs(4),
            .max_hedges = 0};
  }
  void Restart(const StorageConfig& config) {
    StorageHooks hooks;
    hooks.getenv = [this](const char* name) -> const char* {
      const auto found = env_.find(name);
      return found == env_.end() ? nullptr : found->second.c_str();
    };
    auto storage = Storage::Create(config, std::move(hooks));
    ASSERT_TRUE(storage.ok()) << storage.status();
    storage_ = *std::move(storage);
  }

  std::string Url(const std::string& path) { return server_.url() + path; }
  std::shared_ptr<const StorageFile> Opened(const std::string& uri) {
    auto file = storage_->Open(uri);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  static std::span<std::byte> Bytes(std::string& text) {
    return std::as_writable_bytes(std::span(text.data(), text.size()));
  }
  static absl::Status Read(const StorageFile& file, uint64_t offset,
                           uint64_t size, std::string* out = nullptr) {
    std::string bytes(size, '?');
    const absl::Status status = file.ReadAt(offset, Bytes(bytes));
    if (out != nullptr) *out = bytes;
    return status;
  }
  static std::string Pattern(size_t size) {
    std::string out(size, '\0');
    for (size_t i = 0; i < size; ++i) {
      out[i] = static_cast<char>((i * 2654435761u) >> 13);
    }
    return out;
  }
  static std::string Text(const absl::Status& status) {
    return std::string(Message(status));
  }

  TempDir home_;
  std::map<std::string, std::string> env_;
  ObjectServer server_;
  std::unique_ptr<Storage> storage_;
};

}  // namespace leat::worker
