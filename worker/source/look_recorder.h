// SPDX-License-Identifier: Apache-2.0
//
// LookRecorder: records what a listing sees of storage, for a DatasetLook.
//
//   LookRecorder recorder(&storage, &Clock::Real());
//   const auto watched = storage.Watched(&recorder);
//   limits.storage = watched.get();
//   BuildIndex(reader, limits);
//   recorder.Take()   // what LookAgain compares with
//
// Thread-safe. Memory is bounded by the limits of a DatasetLook.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/mutex.h"
#include "worker/source/dataset_look.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

class LookRecorder final : public StorageWatcher {
 public:
  // Both must outlive it.
  LookRecorder(const Storage* storage, const Clock* clock)
      : storage_(storage), clock_(clock) {}

  void SawFolder(const std::string& uri, const StoredFolder& folder) override;
  void SawFile(const std::string& uri, std::string_view identity) override;
  void SawNothing(const std::string& uri) override;
  void SawPrefix(const std::string& uri,
                 std::span<const StoredObject> objects) override;
  void SawText(const std::string& uri, const Digest& sha256) override;

  // Returns how many files and objects were seen so far.
  const std::atomic<uint64_t>& files() const { return num_files_; }
  // Returns what was seen, by URI. Call it once, when the listing is over.
  DatasetLook Take();

 private:
  // The entries with the lowest hashes.
  struct Lowest {
    explicit Lowest(size_t most) : max_entries(most) {}
    const size_t max_entries;
    std::map<std::pair<uint64_t, std::string>, DatasetLook::Entry> entries;
    // Hashes from here on are not kept. Read without the lock.
    std::atomic<uint64_t> too_high{UINT64_MAX};
    // The number seen; an entry that is seen twice while it is not kept counts
    // twice.
    std::atomic<uint64_t> seen{0};
  };
  void Note(Lowest* to, DatasetLook::Entry entry);

  const Storage* const storage_;
  const Clock* const clock_;
  std::atomic<uint64_t> num_files_{0};
  Mutex mu_;
  Lowest folders_{DatasetLook::kMaxFolders};
  Lowest files_{DatasetLook::kMaxFiles};
  Lowest others_{DatasetLook::kMaxOthers};
};

}  // namespace leat::worker
