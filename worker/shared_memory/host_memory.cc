// SPDX-License-Identifier: Apache-2.0
#include "worker/shared_memory/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/status.h"
#include "rpc/wire/memory_socket.h"

namespace leat::worker {
namespace {

class HostMemory final : public SharedMemory {
 public:
  HostMemory(std::byte* base, const v1::ShareMemory& share)
      : base_(base),
        mapped_bytes_(share.mapped_bytes()),
        rows_(share.rows()),
        offsets_(share.field_offsets().begin(), share.field_offsets().end()) {}
  ~HostMemory() override { munmap(base_, mapped_bytes_); }

  std::byte* base() const override { return base_; }
  int device() const override { return -1; }
  uint32_t rows() const override { return rows_; }
  std::span<const uint64_t> field_offsets() const override { return offsets_; }

 private:
  std::byte* const base_;
  const size_t mapped_bytes_;
  const uint32_t rows_;
  const std::vector<uint64_t> offsets_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const SharedMemory>> MapHostMemory(
    int fd, const v1::ShareMemory& share) {
  RETURN_IF_ERROR(rpc::CheckHostMemory(fd, share.mapped_bytes()));
  void* const base = mmap(nullptr, share.mapped_bytes(), PROT_READ | PROT_WRITE,
                          MAP_SHARED, fd, 0);
  if (base == MAP_FAILED)
    return ResourceExhausted("mapping {} bytes: {}", share.mapped_bytes(),
                             std::strerror(errno));
  // Causes fewer page faults if the system gives huge pages; it may refuse.
  madvise(base, share.mapped_bytes(), MADV_HUGEPAGE);
  return std::make_shared<HostMemory>(static_cast<std::byte*>(base), share);
}

}  // namespace leat::worker
