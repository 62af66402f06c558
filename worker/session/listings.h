// SPDX-License-Identifier: Apache-2.0
//
// Listings: the datasets that the coordinator has this worker list.
//
// A directive may bring what an earlier listing saw (DatasetLook). Then the
// worker looks first, which takes a second at most, on threads of their own, so
// that no look waits behind a listing of an hour. If nothing has changed, that
// is the answer; otherwise the dataset is listed.
//
// Several datasets are looked at, and several are listed, at a time, so that
// storage that hangs under one does not hold up the others. Of one dataset
// there is one look and one listing at a time: another directive waits for it.
//
//   Add ──┬─ with a look ──► look ──┬─ unchanged ─────► IndexLooked
//         │                         └─ changed ─┐
//         └─ without ───────────────────────────┴► list ─► IndexHeader, or
//                                                          IndexFailure
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/observe/stages.h"
#include "leat/v1/coordinator.pb.h"
#include "worker/source/dataset_look.h"
#include "worker/source/source.h"

namespace leat::worker {

class CoordinatorClient;

struct ListingOptions {
  size_t max_directives = 64;  // that wait, of looks and of listings each
  // Datasets that are listed at a time; so many are looked at besides. A
  // listing holds a block of its index, or all of it if its format lists files
  // instead of records.
  int threads = 4;
  int all_threads() const { return 2 * std::max(threads, 1); }
  // For an upload while the coordinator is out of reach.
  Duration upload_patience = std::chrono::minutes(1);
  Duration first_backoff = std::chrono::milliseconds(100);
  Duration max_backoff = std::chrono::seconds(2);
  SourceLimits source_limits;
  LookOptions look;
  // Whose time listings take; null: it is not measured. Outlives this object.
  StageClocks* stages = nullptr;
};

// Thread-safe.
class Listings {
 public:
  // `client` must outlive it.
  Listings(ListingOptions options, CoordinatorClient* client);
  // Stops, and waits for what is in progress, which may hang in storage.
  ~Listings();

  // kResourceExhausted: the system gives no thread; only destroy it then.
  const absl::Status& started() const { return started_; }
  // One too many is dropped, and logged: the coordinator asks again. It takes
  // the place of an earlier one of the same dataset that waits still.
  void Add(v1::IndexDataset directive);
  // Cancels what is in progress, and does not wait for it. Idempotent.
  void Stop();

 private:
  struct State;
  const std::unique_ptr<State> state_;
  absl::Status started_;
};

}  // namespace leat::worker
