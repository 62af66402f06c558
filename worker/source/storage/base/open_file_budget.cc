// SPDX-License-Identifier: Apache-2.0
//
// A share's state goes from 0 to kOpen and back under the budget's lock alone.
// A use adds 1 to the state, without a lock, and counts if the file was open
// then; the budget closes a file by exchanging exactly kOpen for 0, which fails
// while there is a use.
//
// The order of files is corrected when the budget looks for one to close: an
// entry whose file was used since goes to its place, and only an entry that is
// up to date is a candidate. A budget of 2, to which a third file comes:
//
//   a opened at 1, b at 2, a read: order {1: a, 2: b}, a used at 2
//   c takes: a goes behind b: {2: b, 2: a}; b is closed: {2: a}
//   c opened: {2: a, 3: c}
#include "worker/source/storage/base/open_file_budget.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace leat::worker {

size_t OpenFileBudget::MostOfThisProcess() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kFewest;
  return static_cast<size_t>(
      std::clamp<rlim_t>(limit.rlim_cur / 8, kFewest, kMost));
}

void OpenFileBudget::Take() {
  ++open_;
  Shrink();
}

void OpenFileBudget::Shrink() {
  while (open_ > most_) {
    int fd = -1;
    {
      MutexLock lock(&mu_);
      if (open_ > most_) fd = CloseOldest();
    }
    if (fd < 0) return;
    close(fd);
  }
}

int OpenFileBudget::CloseOldest() {
  for (auto at = order_.begin(); at != order_.end();) {
    OpenFileShare* const share = at->second;
    const auto next = std::next(at);
    if (const uint64_t used_at = share->used_at_; used_at > at->first) {
      Order::node_type node = order_.extract(at);
      node.key() = used_at;
      share->listed_ = order_.insert(std::move(node));
      // Its place may be where it was.
      at = std::next(share->listed_) == next ? share->listed_ : next;
      continue;
    }
    uint64_t idle = OpenFileShare::kOpen;
    if (share->state_.compare_exchange_strong(idle, 0)) {
      share->unlisted_ = order_.extract(at);
      --open_;
      return share->fd_;
    }
    at = next;
  }
  return -1;
}

OpenFileShare::OpenFileShare(std::shared_ptr<OpenFileBudget> budget)
    : budget_(std::move(budget)) {
  OpenFileBudget::Order one;
  unlisted_ = one.extract(one.emplace(0, this));
}

OpenFileShare::~OpenFileShare() {
  {
    MutexLock lock(&budget_->mu_);
    if (state_ == 0) return;  // the budget has closed it
    unlisted_ = budget_->order_.extract(listed_);
  }
  close(fd_);
  budget_->GiveBack();
}

bool OpenFileShare::Begin() {
  if ((state_.fetch_add(1) & kOpen) == 0) {
    --state_;
    return false;
  }
  const uint64_t now = budget_->openings_.load(std::memory_order_relaxed);
  // Readers of a file do not write to each other's cache in vain.
  if (used_at_.load(std::memory_order_relaxed) != now)
    used_at_.store(now, std::memory_order_relaxed);
  return true;
}

void OpenFileShare::End() {
  // The budget may be exceeded because this use was in the way. It or this
  // thread sees the other's change: both orders are sequentially consistent.
  --state_;
  if (budget_->open_ > budget_->most_) budget_->Shrink();
}

int OpenFileShare::Keep(int fd) {
  {
    MutexLock lock(&budget_->mu_);
    if ((state_ & kOpen) == 0) {
      const uint64_t now = ++budget_->openings_;
      used_at_ = now;
      unlisted_.key() = now;
      listed_ =
          budget_->order_.insert(budget_->order_.end(), std::move(unlisted_));
      fd_ = fd;
      state_ += kOpen + 1;
      return fd;
    }
    ++state_;
  }
  close(fd);
  budget_->GiveBack();
  return fd_;
}

}  // namespace leat::worker
