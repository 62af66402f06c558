// SPDX-License-Identifier: Apache-2.0
//
// OpenFileBudget: limits the files that all sources of a worker together keep
// open. A source holds as many files as it likes; each has a share, whose
// descriptor the budget may close while no read uses it. The next read opens
// the file again, and checks that it is the same.
//
// A file that needs a descriptor takes it, if necessary from the least recently
// used file of any source. Time is counted in openings: uses between two of
// them are equally recent.
//
// A descriptor in use is never closed. So there are at most most() of them and
// one for each Use; a reading thread has one Use at a time. Where AllowedReads
// looks at a path before it is opened, that thread has a second descriptor for a
// moment.
//
// Thread-safe. A read of an open file takes no lock. No lock is held while a
// file is opened or closed. The budget's lock is a leaf.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/mutex.h"

namespace leat::worker {

class OpenFileShare;

class OpenFileBudget {
 public:
  static constexpr size_t kMost = 4096, kFewest = 8;

  // REQUIRES: most > 0.
  explicit OpenFileBudget(size_t most) : most_(most) {}
  OpenFileBudget(const OpenFileBudget&) = delete;
  OpenFileBudget& operator=(const OpenFileBudget&) = delete;

  // Returns kMost, or an eighth of the descriptors that this process may have
  // if that is less: most are for connections (rpc/server/server.cc).
  static size_t MostOfThisProcess();

  size_t most() const { return most_; }
  // Returns how many files are open, or are being opened.
  size_t open() const { return open_; }

 private:
  friend class OpenFileShare;
  using Order = std::multimap<uint64_t, OpenFileShare*>;

  // Makes room for a file that is then opened. Each needs a GiveBack.
  void Take();
  void GiveBack() { --open_; }
  // Closes files until the rest fits, or all are in use.
  void Shrink();
  // Returns the descriptor of the least recently used file that is not in use,
  // which is closed as far as its share knows; -1: there is none.
  int CloseOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t most_;
  std::atomic<size_t> open_{0};
  // Files that were opened so far; changes under the lock.
  std::atomic<uint64_t> openings_{0};
  Mutex mu_;
  // Open files by when they were used, as far as the budget has looked.
  Order order_ ABSL_GUARDED_BY(mu_);
};

// A file's descriptor, and its share of the budget while it is open.
class OpenFileShare {
 public:
  // Keeps the descriptor open while it exists.
  class Use {
   public:
    Use(Use&& other) noexcept
        : share_(std::exchange(other.share_, nullptr)), fd_(other.fd_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (share_ != nullptr) share_->End();
    }
    int fd() const { return fd_; }

   private:
    friend class OpenFileShare;
    Use(OpenFileShare* share, int fd) : share_(share), fd_(fd) {}
    OpenFileShare* share_;
    int fd_;
  };

  explicit OpenFileShare(std::shared_ptr<OpenFileBudget> budget);
  // REQUIRES: no Use exists.
  ~OpenFileShare();
  OpenFileShare(const OpenFileShare&) = delete;
  OpenFileShare& operator=(const OpenFileShare&) = delete;

  // `open` returns absl::StatusOr<int>: a new descriptor of the file. It is
  // called if the file is closed, and its error returned. Threads that find the
  // file closed at once each call it; one of their descriptors is kept.
  template <class Open>
  absl::StatusOr<Use> Get(const Open& open) {
    if (Begin()) return Use(this, fd_);
    budget_->Take();
    const absl::StatusOr<int> fd = open();
    if (fd.ok()) return Use(this, Keep(*fd));
    budget_->GiveBack();
    return fd.status();
  }

 private:
  friend class OpenFileBudget;
  // A state has kOpen while fd_ is open, and 1 for each use.
  static constexpr uint64_t kOpen = uint64_t{1} << 32;

  // Returns false if the file is closed; otherwise an End follows.
  bool Begin();
  void End();
  // Begins a use. Returns the descriptor that is used: `fd`, or if another
  // thread came first, its.
  int Keep(int fd);

  const std::shared_ptr<OpenFileBudget> budget_;
  std::atomic<uint64_t> state_{0};
  std::atomic<uint64_t> used_at_{0};  // in openings
  int fd_ = -1;  // changes under the budget's lock, while the state is 0
  // Guarded by the budget's lock: the entry in its order, either there or here,
  // so that no memory is taken with the lock held.
  OpenFileBudget::Order::node_type unlisted_;
  OpenFileBudget::Order::iterator listed_;
};

}  // namespace leat::worker
