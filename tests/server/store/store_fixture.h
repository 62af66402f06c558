// SPDX-License-Identifier: Apache-2.0
//
// A store in a folder of its own, for tests that damage it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "server/state/state.h"
#include "server/store/sqlite_store.h"

namespace leat::server {

inline std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void WriteAll(const std::filesystem::path& path,
                     const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "leat-store-XXXXXX");
    root_ = mkdtemp(name.data());
    dir_ = root_ / "state";
  }
  ~StoreTest() override { std::filesystem::remove_all(root_); }

  absl::Status TryOpen(const SqliteOptions& options = {}) {
    store_.reset();
    absl::StatusOr<std::unique_ptr<SqliteStore>> store =
        SqliteStore::Open(dir_, options);
    if (store.ok()) store_ = *std::move(store);
    return store.status();
  }
  void Open() {
    const absl::Status opened = TryOpen();
    ASSERT_TRUE(opened.ok()) << opened;
  }
  // Copies the files as they are: a reader's view after a crash at this point.
  void Crash() {
    const std::filesystem::path copy = root_ / "copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(dir_, copy);
    store_.reset();
    std::filesystem::remove_all(dir_);
    std::filesystem::rename(copy, dir_);
  }
  absl::StatusOr<State> Load() {
    State state;
    RETURN_IF_ERROR(
        store_->Replay([&](const Event& event) { return state.Apply(event); }));
    return state;
  }
  absl::Status Drain(const std::string& name) {
    return store_->Append({{}, WorkerDrained{name}});
  }
  std::set<std::string> Drained() {
    absl::StatusOr<State> state = Load();
    EXPECT_TRUE(state.ok()) << state.status();
    std::set<std::string> names;
    if (state.ok())
      for (const auto& [name, at] : state->drained()) names.insert(name);
    return names;
  }
  // `reader`: a text of any size.
  static DatasetIndexed Dataset(const std::string& id,
                                const std::string& reader) {
    DatasetIndexed indexed;
    indexed.dataset.id = id;
    indexed.dataset.name = "photos";
    indexed.dataset.reader = reader;
    indexed.dataset.shards = *ShardTable::Uniform(100, 10);
    indexed.dataset.classes = {"cat", "dog"};
    return indexed;
  }

  std::filesystem::path root_, dir_;
  std::unique_ptr<SqliteStore> store_;
};

}  // namespace leat::server
