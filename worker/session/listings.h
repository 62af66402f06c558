// SPDX-License-Identifier: Apache-2.0
//
// Listings: lists datasets as the coordinator directs.
//
// A directive may include the DatasetLook of an earlier listing. Then the
// worker looks first, which takes at most a second, on separate threads, so
// that no look waits for a long listing. If nothing has changed, that is the
// answer; otherwise the dataset is listed.
//
// Several datasets are looked at, and several are listed, at a time, so that
// storage that hangs under one does not block the others. For one dataset there
// is one look and one listing at a time: another directive waits for it.
//
//   Add ──┬─ with a look ──► look ──┬─ unchanged ─────► IndexLooked
//         │                         └─ changed ─┐
//         └─ without ───────────────────────────┴► list ─► IndexHeader, or
//                                                          IndexFailure
//
// A directive with a base wants an arrangement, which is made of the base's
// index instead of storage.
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
  size_t max_directives = 64;  // that wait, for looks and for listings each
  // Datasets that are listed at a time; as many more are looked at. A listing
  // holds a block of its index, or all of it if its format lists files instead
  // of records.
  int threads = 4;
  int all_threads() const { return 2 * std::max(threads, 1); }
  // The time for an upload while the coordinator is out of reach.
  Duration upload_patience = std::chrono::minutes(1);
  Duration first_backoff = std::chrono::milliseconds(100);
  Duration max_backoff = std::chrono::seconds(2);
  SourceLimits source_limits;
  LookOptions look;
  // Measures the time of listings; nullptr: not measured. Outlives this object.
  StageClocks* stages = nullptr;
};

// Thread-safe.
class Listings {
 public:
  // `client` must outlive it.
  Listings(ListingOptions options, CoordinatorClient* client);
  // Stops, and waits for work in progress, which may hang in storage.
  ~Listings();

  // kResourceExhausted: the system gives no thread; then only destroy it.
  const absl::Status& started() const { return started_; }
  // Adds a directive, in place of a waiting one for the same dataset. A
  // directive too many is dropped, and logged: the coordinator sends it again.
  void Add(v1::IndexDataset directive);
  // Says how far the listings under way are.
  void AddUnderWay(v1::Heartbeat* heartbeat) const;
  // Cancels work in progress, and does not wait for it. Idempotent.
  void Stop();

 private:
  struct State;
  const std::unique_ptr<State> state_;
  absl::Status started_;
};

}  // namespace leat::worker
