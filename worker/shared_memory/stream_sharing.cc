// SPDX-License-Identifier: Apache-2.0
#include "worker/shared_memory/stream_sharing.h"

#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "worker/shared_memory/host_memory.h"

namespace leat::worker {
namespace {

constexpr int kMaxFields = 1024;

// Returns the memory, whose `bytes` have been counted; it uncounts them when it
// is unmapped.
std::shared_ptr<const SharedMemory> Counted(
    std::shared_ptr<const SharedMemory> memory, uint64_t bytes,
    std::shared_ptr<SharedMemoryCounters> counters) {
  const SharedMemory* const counted = memory.get();
  return {counted, [memory = std::move(memory), bytes,
                    counters = std::move(counters)](const auto*) mutable {
            memory.reset();
            counters->bytes -= bytes;
            --counters->memories;
            LOG_DEBUG("sharing.unmapped bytes={}", bytes);
          }};
}

// True if `rows` rows of `row_bytes` at `offset` are within `bytes`.
bool Fits(uint64_t offset, uint64_t rows, uint64_t row_bytes, uint64_t bytes) {
  return offset <= bytes &&
         (row_bytes == 0 || rows <= (bytes - offset) / row_bytes);
}

}  // namespace

// While a Hold exists, something of the stream may be written.
class StreamSharing::Hold {
 public:
  explicit Hold(std::shared_ptr<const Fd> socket)
      : socket_(std::move(socket)) {}
  ~Hold() { rpc::ShutDown(*socket_); }

 private:
  const std::shared_ptr<const Fd> socket_;
};

// Memory that keeps the connection open.
class StreamSharing::HeldMemory final : public SharedMemory {
 public:
  HeldMemory(std::shared_ptr<const SharedMemory> memory,
             std::shared_ptr<Hold> hold)
      : hold_(std::move(hold)), memory_(std::move(memory)) {}

  std::byte* base() const override { return memory_->base(); }
  int device() const override { return memory_->device(); }
  uint32_t rows() const override { return memory_->rows(); }
  std::span<const uint64_t> field_offsets() const override {
    return memory_->field_offsets();
  }

 private:
  const std::shared_ptr<Hold> hold_;  // dropped after the memory
  const std::shared_ptr<const SharedMemory> memory_;
};

StreamSharing::StreamSharing(SharedMemoryLimits limits,
                             DeviceImporter* importer,
                             std::shared_ptr<SharedMemoryCounters> counters)
    : limits_(limits),
      importer_(importer),
      counters_(std::move(counters)),
      secret_(rpc::RandomBytes(rpc::kMemorySecretBytes)) {}

StreamSharing::~StreamSharing() { Close(); }

absl::StatusOr<StreamSharing::Offer> StreamSharing::Borrow(
    uint64_t memory_id, std::span<const uint32_t> slots,
    std::span<const size_t> field_bytes) {
  MutexLock lock(&mu_);
  if (closed_) return Unavailable("the memory connection has ended");
  const auto it = memories_.find(memory_id);
  if (it == memories_.end())
    return InvalidArgument("memory {} is not shared", memory_id);
  Entry& entry = it->second;
  const std::span<const uint64_t> offsets = entry.memory->field_offsets();
  const uint32_t rows = entry.memory->rows();
  if (!entry.fits) {
    if (offsets.size() != field_bytes.size())
      return InvalidArgument("memory {}: {} field offsets: want {}", memory_id,
                             offsets.size(), field_bytes.size());
    for (size_t field = 0; field < offsets.size(); ++field)
      if (!Fits(offsets[field], rows, field_bytes[field], entry.bytes))
        return InvalidArgument(
            "memory {} of {} bytes: field {}: {} rows of {} bytes at {} are "
            "not within",
            memory_id, entry.bytes, field, rows, field_bytes[field],
            offsets[field]);
    entry.fits = true;
  }
  const uint64_t number = next_offer_++;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < rows && entry.offers.emplace(slots[i], number).second)
      continue;
    for (const uint32_t slot : slots.first(i)) entry.offers.erase(slot);
    return InvalidArgument(
        "memory {}: slot {}: {}", memory_id, slots[i],
        slots[i] < rows ? "an open request uses it" : "there is no such slot");
  }
  return Offer{.memory = entry.memory, .number = number};
}

void StreamSharing::GiveBack(uint64_t memory_id, uint64_t offer,
                             std::span<const uint32_t> slots) {
  MutexLock lock(&mu_);
  const auto it = memories_.find(memory_id);
  if (it == memories_.end()) return;
  auto& offers = it->second.offers;
  for (const uint32_t slot : slots)
    if (const auto found = offers.find(slot);
        found != offers.end() && found->second == offer)
      offers.erase(found);
}

void StreamSharing::Close() {
  // Dropped without the lock.
  std::map<uint64_t, Entry> memories;
  std::shared_ptr<Hold> hold;
  MutexLock lock(&mu_);
  closed_ = true;
  memories.swap(memories_);
  hold.swap(hold_);
}

absl::Status StreamSharing::Attach(std::shared_ptr<const Fd> socket) {
  MutexLock lock(&mu_);
  if (closed_) return Unavailable("the stream has ended");
  if (std::exchange(attached_, true))
    return FailedPrecondition("the stream has a memory connection already");
  hold_ = std::make_shared<Hold>(std::move(socket));
  return absl::OkStatus();
}

absl::Status StreamSharing::Check(const v1::ShareMemory& share) const {
  if (share.memory_id() == 0 || memories_.contains(share.memory_id()))
    return InvalidArgument("memory {}: want a new number, not 0",
                           share.memory_id());
  if (share.bytes() == 0 || share.bytes() > share.mapped_bytes())
    return InvalidArgument("memory {}: {} of {} bytes: want 1 to all",
                           share.memory_id(), share.bytes(),
                           share.mapped_bytes());
  if (share.rows() == 0 || share.rows() > share.bytes())
    return InvalidArgument("memory {} of {} bytes: {} rows", share.memory_id(),
                           share.bytes(), share.rows());
  if (share.field_offsets().empty() || share.field_offsets_size() > kMaxFields)
    return InvalidArgument("memory {}: {} field offsets: want 1 to {}",
                           share.memory_id(), share.field_offsets_size(),
                           kMaxFields);
  for (const uint64_t offset : share.field_offsets())
    if (offset > share.bytes())
      return InvalidArgument("memory {} of {} bytes: a field at {}",
                             share.memory_id(), share.bytes(), offset);
  if (memories_.size() >= limits_.max_memories_per_stream)
    return ResourceExhausted("memory {}: {} are shared: the limit of a stream",
                             share.memory_id(), memories_.size());
  return absl::OkStatus();
}

absl::Status StreamSharing::Share(int fd, const v1::ShareMemory& share) {
  std::shared_ptr<Hold> hold;
  {
    MutexLock lock(&mu_);
    if (hold_ == nullptr) return Unavailable("the stream has ended");
    RETURN_IF_ERROR(Check(share));
    hold = hold_;
  }
  // Counted before it is mapped, so that concurrent exporters respect the
  // limit.
  const uint64_t bytes = share.mapped_bytes();
  const auto uncount = [&] {
    counters_->bytes -= bytes;
    --counters_->memories;
  };
  if (bytes > limits_.max_shared_bytes)
    return ResourceExhausted("memory {} of {} bytes: the limit is {}",
                             share.memory_id(), bytes,
                             limits_.max_shared_bytes);
  const uint64_t before = counters_->bytes.fetch_add(bytes);
  if (++counters_->memories > limits_.max_memories ||
      before > limits_.max_shared_bytes - bytes) {
    uncount();
    return ResourceExhausted(
        "memory {} of {} bytes: {} are shared: the limits are {} and {} "
        "memories",
        share.memory_id(), bytes, before, limits_.max_shared_bytes,
        limits_.max_memories);
  }
  absl::StatusOr<std::shared_ptr<const SharedMemory>> mapped =
      InvalidArgument("memory {}: of no known kind", share.memory_id());
  if (share.kind() == v1::ShareMemory::KIND_HOST)
    mapped = MapHostMemory(fd, share);
  else if (share.kind() == v1::ShareMemory::KIND_DEVICE)
    mapped = importer_ != nullptr
                 ? importer_->Import(fd, share)
                 : Unimplemented("memory {}: no GPU of this worker takes it",
                                 share.memory_id());
  if (!mapped.ok()) {
    uncount();
    return mapped.status();
  }
  mapped = Counted(*std::move(mapped), bytes, counters_);
  if (importer_ != nullptr && (*mapped)->device() < 0)
    mapped = importer_->Pin(*std::move(mapped), bytes);
  const auto memory =
      std::make_shared<HeldMemory>(*std::move(mapped), std::move(hold));
  LOG_DEBUG("sharing.mapped memory={} bytes={} rows={} device={}",
            share.memory_id(), bytes, share.rows(), memory->device());
  MutexLock lock(&mu_);
  if (closed_) return Unavailable("the stream has ended");
  memories_[share.memory_id()] = {.memory = memory, .bytes = share.bytes()};
  return absl::OkStatus();
}

absl::Status StreamSharing::Return(uint64_t memory_id) {
  Entry entry;  // dropped without the lock
  MutexLock lock(&mu_);
  const auto it = memories_.find(memory_id);
  if (it == memories_.end())
    return NotFound("memory {} is not shared", memory_id);
  if (!it->second.offers.empty())
    return FailedPrecondition("memory {}: {} of its slots are requested",
                              memory_id, it->second.offers.size());
  entry = std::move(it->second);
  memories_.erase(it);
  return absl::OkStatus();
}

}  // namespace leat::worker
