// SPDX-License-Identifier: Apache-2.0
#include "worker/source/disk_cache/writer.h"

#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::worker {
namespace {

// Bytes that a waiting item takes in addition to its data.
constexpr uint64_t kWaitingItemBytes = 128;

}  // namespace

absl::StatusOr<std::unique_ptr<DiskWriter>> DiskWriter::Start(
    std::shared_ptr<DiskCache> cache, uint64_t max_waiting_bytes) {
  std::unique_ptr<DiskWriter> writer(
      new DiskWriter(std::move(cache), max_waiting_bytes));
  RETURN_IF_ERROR(StartThread(
      "disk-writer", [raw = writer.get()] { raw->Run(); }, &writer->thread_));
  return writer;
}

DiskWriter::DiskWriter(std::shared_ptr<DiskCache> cache,
                       uint64_t max_waiting_bytes)
    : cache_(std::move(cache)), max_waiting_bytes_(max_waiting_bytes) {}

DiskWriter::~DiskWriter() {
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

bool DiskWriter::Offer(DiskCache::DatasetPtr dataset, const RangeKey& key,
                       std::vector<std::byte> bytes) {
  const uint64_t size = bytes.size() + kWaitingItemBytes;
  bool first = false;
  {
    MutexLock lock(&mu_);
    if (!stopping_ && size <= max_waiting_bytes_ &&
        bytes_ <= max_waiting_bytes_ - size) {
      bytes_ += size;
      waiting_.push_back({std::move(dataset), key, std::move(bytes)});
      changed_.NotifyAll();
      return true;
    }
    first = dropped_++ == 0;
  }
  if (first)
    LOG_INFO("disk_writer.dropped waiting_limit_bytes={}", max_waiting_bytes_);
  return false;
}

void DiskWriter::Run() {
  for (;;) {
    Item item;
    {
      MutexLock lock(&mu_);
      while (!stopping_ && waiting_.empty()) changed_.Wait(&mu_);
      if (stopping_) return;
      item = std::move(waiting_.front());
      waiting_.pop_front();
    }
    cache_->Put(item.dataset, item.key, item.bytes);
    const uint64_t size = item.bytes.size() + kWaitingItemBytes;
    item = {};
    MutexLock lock(&mu_);
    bytes_ -= size;
    if (bytes_ == 0) changed_.NotifyAll();
  }
}

bool DiskWriter::WaitIdle(MonotonicTime deadline) {
  MutexLock lock(&mu_);
  while (bytes_ > 0)
    if (!changed_.WaitUntil(&mu_, deadline) && bytes_ > 0) return false;
  return true;
}

uint64_t DiskWriter::dropped() const {
  MutexLock lock(&mu_);
  return dropped_;
}

}  // namespace leat::worker
