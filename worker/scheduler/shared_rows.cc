// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/shared_rows.h"

#include <algorithm>
#include <cstring>

namespace leat::worker {

SharedRows::SharedRows(size_t row_bytes, SharedRowsBudget* budget)
    : row_bytes_(row_bytes), budget_(budget) {}

SharedRows::~SharedRows() {
  Dropped dropped;
  MutexLock lock(&mu_);
  StopKeeping(&dropped);
}

void SharedRows::AddStream() { ++streams_; }

void SharedRows::RemoveStream() {
  if (--streams_ > 1) return;
  Dropped dropped;
  MutexLock lock(&mu_);
  StopKeeping(&dropped);
}

SharedRows::Claim SharedRows::Begin(const RowKey& key, RowOutputs outputs,
                                    MakeWaiter make_waiter) {
  if (streams_.load() < 2) return Claim::kAlone;
  Dropped dropped;
  Bytes bytes;
  {
    MutexLock lock(&mu_);
    auto it = entries_.find(key);
    if (it != entries_.end() && it->second.computing) {
      NoteUse();
      it->second.waiters.push_back(make_waiter());
      return Claim::kWaits;
    }
    if (it == entries_.end() || it->second.bytes == nullptr) {
      if (it == entries_.end()) {
        MakeRoom(&dropped);
        it = entries_.try_emplace(key).first;
      } else if ((next_number_ - it->second.number) * row_bytes_ <= Part()) {
        NoteUse();  // a window would have had the row
      }
      it->second.computing = true;
      it->second.taken = 0;
      it->second.number = next_number_++;
      order_.emplace_back(key, it->second.number);
      return Claim::kCompute;
    }
    NoteUse();
    bytes = it->second.bytes;
    if (++it->second.taken + 1 >= streams_.load()) Drop(it->second, &dropped);
  }
  const std::byte* from = bytes.get();
  for (const std::span<std::byte> output : outputs) {
    std::memcpy(output.data(), from, output.size());
    from += output.size();
  }
  return Claim::kCopied;
}

void SharedRows::End(const RowKey& key, const Outcome& outcome) {
  Dropped dropped;
  bool keep = false;
  {
    MutexLock lock(&mu_);
    if (keeping_ && ++rows_since_use_ > kIdleRows) StopKeeping(&dropped);
    const size_t have = entries_.find(key)->second.waiters.size() + 1;
    keep = keeping_ && outcome.status.ok() && outcome.sound &&
           have < streams_.load() && row_bytes_ <= Part();
  }
  Bytes bytes = keep ? Copy(outcome.outputs) : nullptr;
  std::vector<std::unique_ptr<Waiter>> waiters;
  {
    MutexLock lock(&mu_);
    Entry& entry = entries_.find(key)->second;
    entry.computing = false;
    waiters.swap(entry.waiters);
    entry.taken = static_cast<uint32_t>(waiters.size());
    if (bytes != nullptr && keeping_)
      Keep(key, entry, std::move(bytes), &dropped);
  }
  for (const std::unique_ptr<Waiter>& waiter : waiters) waiter->OnRow(outcome);
}

uint64_t SharedRows::Part() const {
  return budget_->limit / std::max<uint32_t>(1, budget_->windows.load());
}

void SharedRows::NoteUse() {
  rows_since_use_ = 0;
  if (!std::exchange(keeping_, true)) ++budget_->windows;
}

void SharedRows::StopKeeping(Dropped* dropped) {
  if (!std::exchange(keeping_, false)) return;
  --budget_->windows;
  for (const auto& [key, number] : kept_)
    if (const auto it = entries_.find(key); it != entries_.end())
      Drop(it->second, dropped);
  kept_.clear();
}

void SharedRows::Keep(const RowKey& key, Entry& entry, Bytes bytes,
                      Dropped* dropped) {
  while (!kept_.empty() && held_bytes_ + row_bytes_ > Part()) {
    const auto it = entries_.find(kept_.front().first);
    if (it != entries_.end() && it->second.number == kept_.front().second)
      Drop(it->second, dropped);
    kept_.pop_front();
  }
  if (held_bytes_ + row_bytes_ > Part()) return;
  entry.bytes = std::move(bytes);
  held_bytes_ += row_bytes_;
  budget_->bytes += row_bytes_;
  kept_.emplace_back(key, entry.number);
}

void SharedRows::Drop(Entry& entry, Dropped* dropped) {
  if (entry.bytes == nullptr) return;
  dropped->push_back(std::exchange(entry.bytes, nullptr));
  held_bytes_ -= row_bytes_;
  budget_->bytes -= row_bytes_;
}

void SharedRows::MakeRoom(Dropped* dropped) {
  // An entry that is computed again has two places.
  for (size_t looks = order_.size(); looks > 0 && order_.size() >= kMostEntries;
       --looks) {
    const Place place = order_.front();
    order_.pop_front();
    const auto it = entries_.find(place.first);
    if (it == entries_.end() || it->second.number != place.second) continue;
    if (it->second.computing) {
      order_.push_back(place);
      continue;
    }
    Drop(it->second, dropped);
    entries_.erase(it);
  }
}

SharedRows::Bytes SharedRows::Copy(RowOutputs outputs) const {
  const auto bytes = std::make_shared_for_overwrite<std::byte[]>(row_bytes_);
  std::byte* to = bytes.get();
  for (const std::span<std::byte> output : outputs) {
    std::memcpy(to, output.data(), output.size());
    to += output.size();
  }
  return bytes;
}

std::shared_ptr<SharedRows> SharedRowsTable::Get(const Digest& key,
                                                 size_t row_bytes) {
  MutexLock lock(&mu_);
  std::erase_if(rows_, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<SharedRows>& known = rows_[key];
  std::shared_ptr<SharedRows> rows = known.lock();
  if (rows == nullptr)
    known = rows = std::make_shared<SharedRows>(row_bytes, &budget_);
  return rows;
}

}  // namespace leat::worker
