// SPDX-License-Identifier: Apache-2.0
//
// The work that is queued on a fake stream, and the memory that it reads and
// writes; and Traffic, which notices writes to memory that queued work has
// still to read. It watches in a trainer's process (the setting "trainer").
//
// Two things are violations, and never for work that events put in order:
//   * a write begins while work that was queued before it, on another stream,
//     has still to read there; or the other way round;
//   * memory differs from its contents when the work that reads it was queued,
//     and no work queued by then was to write there: so another process or the
//     host wrote. (Virtual memory that its own stream had still to write may be
//     the same at another address; then this is not checked.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "cuda/types.h"

namespace leat::fake_cuda {

struct Span {
  uintptr_t at = 0;
  size_t bytes = 0;
};

struct Work {
  std::function<void()> run;
  std::vector<Span> reads = {}, writes = {};
};

// A captured stream, and those that have joined it. Guarded by State::mu.
struct Capture {
  cuda::CaptureMode mode = cuda::CaptureMode::kGlobal;
  uint64_t stream = 0, thread = 0;  // where it began
  int device = 0;
  bool blocking = false;  // its stream waits for the legacy stream
  bool invalid = false;
  std::vector<Work> work;
};

class Traffic {
 public:
  // Returns the work as it is to be run; from now on it is queued.
  std::function<void()> Queue(const char* symbol, const void* stream,
                              Work work);
  // True if queued work has still to read or write there.
  bool Touches(Span span);

 private:
  struct Entry {
    const char* symbol;
    const void* stream;
    std::vector<Span> reads, writes;
    std::vector<uint64_t> hashes;  // of `reads`; empty: not known
    bool writes_mapped = false;    // virtual memory
  };
  // Returns what is wrong as the work begins; empty: nothing.
  std::string Begin(uint64_t number);
  void End(uint64_t number);
  bool WillBeWritten(const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  uint64_t next_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Entry> queued_ ABSL_GUARDED_BY(mu_);  // by number
};
Traffic& StreamTraffic();

}  // namespace leat::fake_cuda
