// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/cuda/pinned_ranges.h"

#include <cstdint>
#include <map>

#include "core/mutex.h"

namespace leat::worker {
namespace {

// It is page-locked for all GPUs: a few slots and the consumers' memories.
struct Memories {
  Mutex mu;
  std::map<uintptr_t, size_t> bytes_at ABSL_GUARDED_BY(mu);
};
Memories& All() {
  static Memories& all = *new Memories;
  return all;
}

}  // namespace

void AddPinned(const void* memory, size_t bytes) {
  Memories& all = All();
  MutexLock lock(&all.mu);
  all.bytes_at[reinterpret_cast<uintptr_t>(memory)] = bytes;
}

void RemovePinned(const void* memory) {
  Memories& all = All();
  MutexLock lock(&all.mu);
  all.bytes_at.erase(reinterpret_cast<uintptr_t>(memory));
}

bool IsPinned(const void* memory, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  Memories& all = All();
  MutexLock lock(&all.mu);
  auto found = all.bytes_at.upper_bound(at);
  if (found == all.bytes_at.begin()) return false;
  --found;
  const size_t before = at - found->first;
  return before <= found->second && bytes <= found->second - before;
}

}  // namespace leat::worker
