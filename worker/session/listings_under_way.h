// SPDX-License-Identifier: Apache-2.0
//
// ListingsUnderWay: what the listings under way have found so far, for the
// heartbeats.
//
//   a listing's thread: const auto mine = under_way.Begin(directive, counts);
//   the session's:      under_way.AddTo(&heartbeat);
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "core/mutex.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::worker {

class ListingsUnderWay {
 public:
  // Counters that a listing increments. REQUIRES: they outlive its Mine.
  struct Counts {
    const std::atomic<uint64_t>* files;
    const std::atomic<uint64_t>* samples;
  };

  // Ends with the listing.
  class Mine {
   public:
    Mine(ListingsUnderWay* all, const std::string& dataset)
        : all_(all), dataset_(dataset) {}
    Mine(const Mine&) = delete;
    Mine& operator=(const Mine&) = delete;
    ~Mine() {
      MutexLock lock(&all_->mu_);
      all_->listings_.erase(dataset_);
    }

   private:
    ListingsUnderWay* const all_;
    const std::string dataset_;
  };

  // There is one listing of a dataset at a time.
  Mine Begin(const v1::IndexDataset& directive, const Counts& counts) {
    MutexLock lock(&mu_);
    listings_[directive.dataset_id()] = {directive.request_id(), counts};
    return Mine(this, directive.dataset_id());
  }
  void AddTo(v1::Heartbeat* heartbeat) const {
    MutexLock lock(&mu_);
    for (const auto& [dataset, listing] : listings_) {
      if (heartbeat->listings_size() == kMost) return;
      v1::ListingUnderWay& proto = *heartbeat->add_listings();
      proto.set_dataset_id(dataset);
      proto.set_request_id(listing.request_id);
      proto.set_files(*listing.counts.files);
      proto.set_samples(*listing.counts.samples);
    }
  }

 private:
  static constexpr int kMost = 16;  // in one heartbeat
  struct Listing {
    uint64_t request_id;
    Counts counts;
  };
  mutable Mutex mu_;
  std::map<std::string, Listing> listings_ ABSL_GUARDED_BY(mu_);  // by dataset
};

}  // namespace leat::worker
