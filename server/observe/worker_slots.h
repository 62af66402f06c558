// SPDX-License-Identifier: Apache-2.0
//
// WorkerSlots: what workers did, by slot of the history. It is made once, and
// then judges many jobs, each by the slots in which its trainer waited:
//
//   Add(7, w0 decodes 0.9)  Add(7, w1 decodes 0.7)  Add(8, w0 decodes 0.1)
//   Mean({7: waits 0.5, 8: waits 0}) ─► 2 workers that decode 0.8
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "core/clock.h"
#include "core/observe/bottleneck.h"

namespace leat::server {

// By slot: the share of its time that a consumer waited.
using WaitsBySlot = std::map<int64_t, double>;

class WorkerSlots {
 public:
  // `since`: the beginning of the period.
  WorkerSlots() = default;
  explicit WorkerSlots(MonotonicTime since) : since_(since) {}

  MonotonicTime since() const { return since_; }
  void Add(int64_t slot, const WorkerStatistics& did);
  // Names a worker whose statistics were added.
  void AddName(const std::string& worker) { names_.insert(worker); }
  bool Has(const std::string& worker) const { return names_.contains(worker); }
  // Returns means over the slots of `waits`, weighted by its values (equally if
  // all are 0), over all workers except those of `without`. nullopt: there are
  // no statistics of these slots.
  std::optional<WorkerStatistics> Mean(const WaitsBySlot& waits,
                                       const WorkerSlots& without) const;
  void ForgetBefore(int64_t slot) {
    slots_.erase(slots_.begin(), slots_.lower_bound(slot));
  }
  bool empty() const { return slots_.empty(); }
  size_t workers() const { return names_.size(); }

 private:
  // Shares are summed per thread, `of_gpus` per row, and `device` over workers
  // with GPUs.
  struct Sum {
    WorkerStatistics of;
    double gpus = 0;
  };

  MonotonicTime since_{};
  std::map<int64_t, Sum> slots_;
  absl::flat_hash_set<std::string> names_;
};

}  // namespace leat::server
