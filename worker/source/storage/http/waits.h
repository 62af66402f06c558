// SPDX-License-Identifier: Apache-2.0
//
// StorageWaits: the errors that calls to remote storage failed with and are
// being retried for. A call may be retried for minutes; meanwhile this gives
// the reason.
//
// Thread-safe. It holds one text per call under way.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/counted.h"
#include "core/mutex.h"
#include "fmt/format.h"

namespace leat::worker {

class StorageWaits {
 public:
  static constexpr size_t kMaxText = 512;

  // A try of `call` has failed, and another one follows.
  void Failed(const void* call, std::string_view why, int tries) {
    std::string text =
        fmt::format("{} (tried {} so far)", why.substr(0, kMaxText),
                    Counted(tries, "time"));
    MutexLock lock(&mu_);
    waits_[call] = std::move(text);
  }
  // The call has ended, successfully or not.
  void Ended(const void* call) {
    MutexLock lock(&mu_);
    waits_.erase(call);
  }
  // Returns different texts, at most `most`.
  std::vector<std::string> Texts(size_t most) const {
    std::set<std::string> texts;
    MutexLock lock(&mu_);
    for (const auto& [call, text] : waits_)
      if (texts.size() < most) texts.insert(text);
    return {texts.begin(), texts.end()};
  }

 private:
  mutable Mutex mu_;
  std::map<const void*, std::string> waits_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
