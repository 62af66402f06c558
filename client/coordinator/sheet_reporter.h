// SPDX-License-Identifier: Apache-2.0
//
// SheetReporter: small pictures of a batch for the coordinator's page, while
// somebody looks at it there (leat.v1.WantSheet). Without a wish it costs a
// batch one atomic load.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/observe/pictures.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::client {

class SheetReporter {
 public:
  static constexpr uint32_t kMaxRows = 16, kMaxSide = 96;

  // The newest wish counts. Values out of bounds are taken for the nearest
  // within.
  void Begin(const v1::WantSheet& wanted);
  bool wanted() const { return wanted_; }
  // Answers the wish by the first rows of `fields`, which are host memory, or
  // by `why_not`. On the trainer's thread: some milliseconds.
  void Answer(uint64_t epoch, uint64_t step, std::span<const FieldRows> fields,
              std::span<const std::string> classes);
  void Refuse(uint64_t epoch, uint64_t step, std::string why_not);
  // What is to be sent; nullopt: nothing new.
  std::optional<v1::RowsSheet> Take();

 private:
  // The wish, which is answered by this; nullopt: there is none.
  std::optional<v1::WantSheet> TakeWish();
  void Put(v1::RowsSheet sheet);

  std::atomic<bool> wanted_ = false;
  Mutex mu_;
  v1::WantSheet wish_ ABSL_GUARDED_BY(mu_);
  std::optional<v1::RowsSheet> ready_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::client
