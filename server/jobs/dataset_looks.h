// SPDX-License-Identifier: Apache-2.0
//
// Results of the last looks at datasets (cheap checks for changes), and the
// callers that wait for a dataset to be listed again (leat refresh dataset).
//
// Thread-compatible; the owner locks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "server/jobs/indexing.h"
#include "server/state/state.h"
#include "server/state/types.h"

namespace leat::server {

// Shown for jobs whose listing was replaced by a newer one.
inline constexpr std::string_view kListedAgain =
    "it was listed again since, for a newer job";

// Result of the last look at a current listing.
struct LastLook {
  Now at;
  uint64_t entries = 0, total = 0;  // 0: it was listed at that time
  std::vector<std::string> changes;
};
using LastLooks = std::map<std::string, LastLook>;  // by dataset

// Describes the changes of a dataset since its listing; empty: none known.
inline std::string ChangedText(const State& state, const LastLooks& looks,
                               const DatasetRecord& dataset) {
  if (!state.IsCurrent(dataset)) return std::string(kListedAgain);
  const auto look = looks.find(dataset.info->id);
  return look == looks.end()
             ? std::string()
             : fmt::format("{}", fmt::join(look->second.changes, "; "));
}

class RefreshWaits {
 public:
  using Done = std::function<void(absl::Status)>;

  // `id`: a number from the coordinator, comparable to
  // Indexing::Request::covers.
  void Add(const std::string& reader_id, uint64_t id, Done done) {
    waits_.insert({reader_id, {id, std::move(done)}});
  }
  bool Wants(const std::string& reader_id) const {
    return waits_.contains(reader_id);
  }
  size_t size() const { return waits_.size(); }
  // Takes the waits for which a listing by `request` is new enough; a look
  // never is.
  std::vector<Done> TakeServed(const std::string& reader_id,
                               const Indexing::Request& request) {
    if (request.look) return {};
    return Take(reader_id, request.covers);
  }
  // Takes all waits for the reader's dataset.
  std::vector<Done> Take(const std::string& reader_id,
                         uint64_t below = UINT64_MAX) {
    std::vector<Done> taken;
    for (auto it = waits_.lower_bound(reader_id);
         it != waits_.end() && it->first == reader_id;) {
      const bool take = it->second.first < below;
      if (take) taken.push_back(std::move(it->second.second));
      it = take ? waits_.erase(it) : std::next(it);
    }
    return taken;
  }
  std::vector<Done> TakeAll() {
    std::vector<Done> taken;
    for (auto& [reader_id, wait] : std::exchange(waits_, {}))
      taken.push_back(std::move(wait.second));
    return taken;
  }

 private:
  std::multimap<std::string, std::pair<uint64_t, Done>> waits_;  // by reader
};

}  // namespace leat::server
