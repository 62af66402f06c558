// SPDX-License-Identifier: Apache-2.0
//
// SheetReporter sends small previews of a batch to the coordinator's page,
// while a viewer is looking at it there (leat.v1.WantSheet). Without a request
// it costs one atomic load per batch.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/mutex.h"
#include "core/observe/previews.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::client {

class SheetReporter {
 public:
  static constexpr uint32_t kMaxRows = 16, kMaxSide = 96;

  // Replaces the open request. Values out of bounds are clamped.
  void Begin(const v1::WantSheet& wanted);
  bool wanted() const { return wanted_; }
  // Answers the request with the first rows of `fields`, which are host memory,
  // or with `why_not`. Runs on the trainer's thread, for some milliseconds.
  // `origin`: of each row of the batch; called during the call.
  using OriginOf = absl::FunctionRef<RowOrigin(size_t row)>;
  void Answer(uint64_t epoch, uint64_t step, std::span<const FieldRows> fields,
              OriginOf origin);
  void Refuse(uint64_t epoch, uint64_t step, std::string why_not);
  // Returns the answer to send; nullopt: nothing new.
  std::optional<v1::RowsSheet> Take();

 private:
  // Takes the request, which is then no longer open; nullopt: there is none.
  std::optional<v1::WantSheet> TakeWish();
  void Put(v1::RowsSheet sheet);

  std::atomic<bool> wanted_ = false;
  Mutex mu_;
  v1::WantSheet wish_ ABSL_GUARDED_BY(mu_);
  std::optional<v1::RowsSheet> ready_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::client
