// SPDX-License-Identifier: Apache-2.0
//
// An entry without a source is a promise: the thread that made it fetches, and
// all others wait for it to become a source or to go away. Sources are
// destroyed after the lock is released, because that may take long.
#include "worker/job/index_cache.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "core/cluster/fault.h"
#include "core/status.h"

namespace leat::worker {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(20);
constexpr Duration kMaxBackoff = std::chrono::seconds(1);

// A record takes 4 bytes (TFRecord) to 50 (an image file's name and place).
uint64_t CostOf(const IndexBlock& block) {
  return block.bytes + 5 * block.samples;
}

// Returns a transient error, whatever the cause.
absl::Status NotHere(const IndexBlock& block, std::string_view why) {
  return WithFault(
      Unavailable("block {} of the dataset's index is not available: {}",
                  ToHex(block.sha256), why),
      Fault::kTransient);
}

}  // namespace

absl::StatusOr<std::string> FetchSoundBlock(
    BlockFetcher* fetcher, const IndexBlock& block, MonotonicTime deadline,
    const std::function<bool(Duration)>& pause, std::string unusable) {
  Duration backoff = kFirstBackoff;
  std::optional<std::minstd_rand> random;
  bool told = false;
  while (true) {
    absl::StatusOr<std::string> bytes =
        fetcher->FetchBlock(block, unusable, deadline);
    unusable.clear();
    if (bytes.ok()) {
      if (bytes->size() == block.bytes && HashOf(*bytes) == block.sha256)
        return bytes;
      unusable = fmt::format("it arrived as {} bytes of {}, or of another hash",
                             bytes->size(), block.bytes);
      if (told) return DataLoss("block {}: {}", ToHex(block.sha256), unusable);
      told = true;
      continue;
    }
    const bool again = absl::IsUnavailable(bytes.status()) ||
                       absl::IsDeadlineExceeded(bytes.status());
    if (!again || Clock::Real().Now() + backoff >= deadline)
      return bytes.status();
    // The coordinator tells many workers at once that it is busy.
    if (!random) random.emplace(std::random_device{}());
    const double drawn = std::uniform_real_distribution<>(0.5, 1.0)(*random);
    if (!pause(std::chrono::duration_cast<Duration>(backoff * drawn)))
      return bytes.status();
    backoff = std::min(2 * backoff, kMaxBackoff);
  }
}

absl::StatusOr<std::string> FetchWholeBlock(
    BlockFetcher* fetcher, const IndexBlock& block, MonotonicTime deadline,
    const std::function<bool(Duration)>& pause, std::string unusable) {
  absl::StatusOr<std::string> bytes =
      FetchSoundBlock(fetcher, block, deadline, pause, std::move(unusable));
  if (bytes.ok()) return bytes;
  return NotHere(block, Message(bytes.status()));
}

uint64_t IndexCache::NewSource() {
  MutexLock lock(&mu_);
  return next_source_++;
}

absl::StatusOr<IndexCache::Opened> IndexCache::Get(uint64_t source,
                                                   size_t number,
                                                   const IndexBlock& block,
                                                   const Open& open) {
  const Key key(source, number);
  const MonotonicTime deadline = Clock::Real().Now() + options_.wait;
  {
    MutexLock lock(&mu_);
    while (true) {
      if (stopped_) return NotHere(block, "the worker stops");
      const auto it = entries_.find(key);
      if (it != entries_.end() && it->second.opened != nullptr) {
        used_.splice(used_.begin(), used_, it->second.place);
        return it->second.opened;
      }
      if (it == entries_.end() && fetching_ < options_.fetches) break;
      if (!changed_.WaitUntil(&mu_, deadline))
        return NotHere(block, "it did not come in time");
    }
    entries_[key];
    ++fetching_;
  }
  absl::StatusOr<Opened> opened = Fetch(block, open, deadline);
  std::vector<Opened> gone;
  {
    MutexLock lock(&mu_);
    --fetching_;
    changed_.NotifyAll();
    // Missing if it was forgotten meanwhile.
    const auto it = entries_.find(key);
    if (!opened.ok()) {
      if (it != entries_.end()) entries_.erase(it);
    } else {
      ++fetched_total_;
      if (it != entries_.end()) {
        used_.push_front(key);
        it->second = {*opened, CostOf(block), used_.begin()};
        bytes_ += it->second.cost;
        gone = Evict();
      }
    }
  }
  return opened;
}

absl::StatusOr<IndexCache::Opened> IndexCache::Fetch(const IndexBlock& block,
                                                     const Open& open,
                                                     MonotonicTime deadline) {
  const auto pause = [this](Duration d) { return Pause(d); };
  ASSIGN_OR_RETURN(std::string bytes,
                   FetchWholeBlock(fetcher_, block, deadline, pause));
  absl::StatusOr<Opened> opened = open(bytes);
  if (opened.ok()) return opened;
  ASSIGN_OR_RETURN(bytes,
                   FetchWholeBlock(fetcher_, block, deadline, pause,
                                   std::string(Message(opened.status()))));
  opened = open(bytes);
  if (!opened.ok()) return NotHere(block, Message(opened.status()));
  return opened;
}

// The block that came last stays, however large it is.
std::vector<IndexCache::Opened> IndexCache::Evict() {
  std::vector<Opened> gone;
  while (used_.size() > 1 &&
         (bytes_ > options_.max_bytes || used_.size() > options_.max_blocks)) {
    const auto it = entries_.find(used_.back());
    used_.pop_back();
    bytes_ -= it->second.cost;
    gone.push_back(std::move(it->second.opened));
    entries_.erase(it);
  }
  return gone;
}

IndexCache::Opened IndexCache::Peek(uint64_t source, size_t number) {
  MutexLock lock(&mu_);
  const auto it = entries_.find(Key(source, number));
  return it == entries_.end() ? nullptr : it->second.opened;
}

void IndexCache::Forget(uint64_t source) {
  std::vector<Opened> gone;
  MutexLock lock(&mu_);
  auto it = entries_.lower_bound(Key(source, 0));
  while (it != entries_.end() && it->first.first == source) {
    if (it->second.opened != nullptr) {
      used_.erase(it->second.place);
      bytes_ -= it->second.cost;
      gone.push_back(std::move(it->second.opened));
    }
    it = entries_.erase(it);
  }
}

void IndexCache::Stop() {
  MutexLock lock(&mu_);
  stopped_ = true;
  changed_.NotifyAll();
}

IndexCache::Stats IndexCache::stats() {
  MutexLock lock(&mu_);
  return {
      .bytes = bytes_, .blocks = used_.size(), .fetched_total = fetched_total_};
}

bool IndexCache::Pause(Duration duration) {
  const MonotonicTime until = Clock::Real().Now() + duration;
  MutexLock lock(&mu_);
  while (!stopped_ && changed_.WaitUntil(&mu_, until)) {
  }
  return !stopped_;
}

}  // namespace leat::worker
