// SPDX-License-Identifier: Apache-2.0
#include "server/relays/sheet_relay.h"

#include <algorithm>
#include <utility>

namespace leat::server {
namespace {

// Returns whether the sheet is within the requested bounds.
bool IsSheet(const v1::RowsSheet& sheet) {
  constexpr auto kMaxRows = static_cast<int>(SheetRelay::kRows);
  if (sheet.tiles_size() > kMaxRows) return false;
  for (const std::string* text :
       {&sheet.field(), &sheet.note(), &sheet.why_not()})
    if (text->size() > SheetRelay::kMaxText) return false;
  return std::all_of(
      sheet.tiles().begin(), sheet.tiles().end(),
      [](const v1::SheetTile& tile) {
        return tile.width() >= 1 && tile.width() <= SheetRelay::kSide &&
               tile.height() >= 1 && tile.height() <= SheetRelay::kSide &&
               tile.rgb().size() == size_t{3} * tile.width() * tile.height() &&
               tile.label().size() <= SheetRelay::kMaxText;
      });
}

}  // namespace

void SheetRelay::Join(uint64_t id, std::string plan_hash, std::string consumer,
                      Ask ask) {
  MutexLock lock(&mu_);
  sessions_[id] = {std::move(plan_hash), std::move(consumer), std::move(ask)};
}

void SheetRelay::Leave(uint64_t id) {
  MutexLock lock(&mu_);
  sessions_.erase(id);
  for (auto& [plan, wish] : wishes_)
    if (wish.session == id) wish.pending = false;
}

void SheetRelay::Add(uint64_t id, v1::RowsSheet sheet, MonotonicTime now) {
  MutexLock lock(&mu_);
  const auto session = sessions_.find(id);
  if (session == sessions_.end()) return;
  const auto found = wishes_.find(session->second.plan_hash);
  if (found == wishes_.end()) return;
  Wish& wish = found->second;
  if (!wish.pending || wish.session != id || wish.number != sheet.number())
    return;
  wish.pending = false;
  wish.came_at = now;
  if (!IsSheet(sheet)) {
    sheet.Clear();
    sheet.set_why_not("the training's answer is no sheet");
  }
  sheet.DiscardUnknownFields();
  sheet.set_consumer(session->second.consumer);
  wish.sheet = std::make_shared<const v1::RowsSheet>(std::move(sheet));
}

SheetRelay::Wish& SheetRelay::WishOf(const std::string& plan_hash,
                                     MonotonicTime now) {
  std::erase_if(wishes_, [now](const auto& each) {
    return now >= each.second.looked_at + kKept;
  });
  // Room is made first: the new entry may have the oldest time of all, because
  // `now` was read without the lock.
  if (wishes_.size() >= kMaxSheets && !wishes_.contains(plan_hash))
    wishes_.erase(std::min_element(
        wishes_.begin(), wishes_.end(), [](const auto& a, const auto& b) {
          return a.second.looked_at < b.second.looked_at;
        }));
  Wish& wish = wishes_[plan_hash];
  wish.looked_at = now;
  return wish;
}

std::map<uint64_t, SheetRelay::Session>::const_iterator SheetRelay::SessionOf(
    const std::string& plan_hash) const {
  return std::find_if(
      sessions_.begin(), sessions_.end(),
      [&](const auto& each) { return each.second.plan_hash == plan_hash; });
}

SheetRelay::Seen SheetRelay::Look(const std::string& plan_hash,
                                  MonotonicTime now) {
  v1::WantSheet wanted;
  Ask ask;
  Seen seen;
  {
    MutexLock lock(&mu_);
    const auto session = SessionOf(plan_hash);
    seen.consumers = session != sessions_.end();
    Wish& wish = WishOf(plan_hash, now);
    seen.sheet = wish.sheet;
    const bool waits = wish.pending && now < wish.asked_at + kPatience;
    const bool fresh = wish.sheet != nullptr && now < wish.came_at + kFresh;
    if (seen.consumers && !waits && !fresh) {
      wish.number = ++last_;
      wish.session = session->first;
      wish.asked_at = now;
      wish.pending = true;
      wanted.set_number(wish.number);
      wanted.set_rows(kRows);
      wanted.set_side(kSide);
      ask = session->second.ask;
    }
  }
  if (ask) ask(wanted);
  return seen;
}

}  // namespace leat::server
