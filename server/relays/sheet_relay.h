// SPDX-License-Identifier: Apache-2.0
//
// SheetRelay: small previews of rows, from a trainer to the viewers of its job
// on the page. The coordinator has no pixels, and requests some while a viewer
// is looking. No call can reach a trainer's process, so the request goes
// through its session:
//
//   /api/sheet ─► Look ─► Ask of one session of the plan; nothing to show yet
//   RowsSheet of that session ─► Add ─► kept for kKept
//   /api/sheet ─► Look ─► the sheet; after kFresh another one is asked for
//
// Data from a session is untrusted: it is bounded, and accepted for one request
// only. Thread-safe; Asks are called without the lock. Reads no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/mutex.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::server {

class SheetRelay {
 public:
  static constexpr uint32_t kRows = 12, kSide = 96;  // of a sheet
  static constexpr size_t kMaxText = 512;            // bytes of each text
  static constexpr size_t kMaxSheets = 16;  // kept: the last ones looked at
  static constexpr Duration kFresh = std::chrono::seconds(5);
  static constexpr Duration kPatience = std::chrono::seconds(10);
  static constexpr Duration kKept = std::chrono::seconds(60);
  // Must not block.
  using Ask = std::function<void(const v1::WantSheet&)>;

  // Adds a consumer's session. `id` is the session's.
  void Join(uint64_t id, std::string plan_hash, std::string consumer, Ask ask);
  void Leave(uint64_t id);
  // Keeps a session's sheet if it answers the newest request; drops it
  // otherwise.
  void Add(uint64_t id, v1::RowsSheet sheet, MonotonicTime now);

  struct Seen {
    bool consumers = false;                      // the plan has some
    std::shared_ptr<const v1::RowsSheet> sheet;  // null: none has come yet
  };
  // Requests a sheet if the newest one is not fresh, and none was requested in
  // the last kPatience.
  Seen Look(const std::string& plan_hash, MonotonicTime now);

 private:
  struct Session {
    std::string plan_hash, consumer;
    Ask ask;
  };
  struct Wish {
    uint64_t number = 0, session = 0;
    MonotonicTime asked_at{}, came_at{}, looked_at{};
    bool pending = false;
    std::shared_ptr<const v1::RowsSheet> sheet;
  };
  // Returns the plan's wish, which is looked at now; forgets wishes without
  // viewers.
  Wish& WishOf(const std::string& plan_hash, MonotonicTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the plan's session that joined first; end: there is none.
  std::map<uint64_t, Session>::const_iterator SessionOf(
      const std::string& plan_hash) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Session> sessions_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Wish> wishes_ ABSL_GUARDED_BY(mu_);  // by plan
};

}  // namespace leat::server
