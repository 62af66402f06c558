// SPDX-License-Identifier: Apache-2.0
#include "client/batch/batch_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/status.h"
#include "rpc/wire/memory_socket.h"

namespace leat::client {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;
constexpr size_t kMaxBytes = size_t{1} << 46;

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

uint64_t NextId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

void FaultIn(std::byte* data, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(data, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  // For kernels before 5.14.
  for (size_t i = 0; i < bytes; i += kPage)
    *const_cast<volatile std::byte*>(data + i) = std::byte{0};
}

std::atomic<int> shareable{0};  // HostMemory with a descriptor

// A mapping of whole pages at an address that is suitable for huge pages.
class HostMemory : public BatchMemory {
 public:
  HostMemory(void* range, size_t range_bytes, std::byte* data, size_t bytes,
             Fd fd, bool keep)
      : range_(range),
        range_bytes_(range_bytes),
        data_(data),
        bytes_(bytes),
        fd_(std::move(fd)),
        keep_(keep) {
    if (fd_.open()) ++shareable;
  }
  ~HostMemory() override {
    if (fd_.open()) --shareable;
    munmap(range_, range_bytes_);
  }

  std::byte* data() const override { return data_; }
  int fd() const override { return fd_.get(); }
  size_t mapped_bytes() const override { return bytes_; }
  Reuse reuse() override { return keep_ ? Reuse::kNow : Reuse::kNever; }

 private:
  void* const range_;
  const size_t range_bytes_;
  std::byte* const data_;
  const size_t bytes_;
  const Fd fd_;
  const bool keep_;
};

// `fd` not open: private memory.
absl::StatusOr<std::shared_ptr<BatchMemory>> Map(size_t bytes, Fd fd,
                                                 bool keep) {
  const size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kPage;
  const size_t range_bytes = bytes + (alignment > kPage ? alignment : 0);
  void* const range = mmap(nullptr, range_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    return ResourceExhausted("memory for a batch: {} bytes: {}", bytes,
                             strerror(errno));
  auto* const data = reinterpret_cast<std::byte*>(
      RoundUp(reinterpret_cast<uintptr_t>(range), alignment));
  const bool shared = fd.open();
  if (shared && mmap(data, bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED, fd.get(), 0) == MAP_FAILED) {
    const int error = errno;
    munmap(range, range_bytes);
    return ResourceExhausted("memory for a batch: mapping {} bytes: {}", bytes,
                             strerror(error));
  }
  auto memory = std::make_shared<HostMemory>(range, range_bytes, data, bytes,
                                             std::move(fd), keep);
  if (alignment > kPage) madvise(data, bytes, MADV_HUGEPAGE);
  FaultIn(data, bytes);
  return memory;
}

absl::Status TooLarge(size_t bytes) {
  return ResourceExhausted("memory for a batch: {} bytes: the limit is {}",
                           bytes, kMaxBytes);
}

}  // namespace

BatchMemory::BatchMemory() : id_(NextId()) {}

void BatchMemory::Write(size_t offset, std::span<const std::byte> bytes) {
  std::memcpy(data() + offset, bytes.data(), bytes.size());
}

void BatchMemory::CopyFrom(const BatchMemory& from, size_t offset,
                           size_t bytes) {
  std::memcpy(data() + offset, from.data() + offset, bytes);
}

absl::StatusOr<std::shared_ptr<BatchMemory>> MakeHostMemory(size_t bytes) {
  if (bytes > kMaxBytes) return TooLarge(bytes);
  const size_t mapped = RoundUp(bytes, kPage);
  if (shareable >= kMaxShareable) return Map(mapped, Fd(), false);
  absl::StatusOr<Fd> fd = rpc::CreateHostMemory("leat-batch", mapped);
  if (fd.ok()) {
    absl::StatusOr<std::shared_ptr<BatchMemory>> memory =
        Map(mapped, *std::move(fd), true);
    if (memory.ok()) return memory;
  }
  return MakePrivateMemory(bytes);
}

absl::StatusOr<std::shared_ptr<BatchMemory>> MakePrivateMemory(size_t bytes) {
  if (bytes > kMaxBytes) return TooLarge(bytes);
  return Map(RoundUp(bytes, kPage), Fd(), true);
}

}  // namespace leat::client
