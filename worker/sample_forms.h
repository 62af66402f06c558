// SPDX-License-Identifier: Apache-2.0
//
// SampleForms: the forms of one sample's JPEG, for one row that decodes it: as
// the sample cache has them, with what the decode takes.
#pragma once

#include <span>

#include "core/clock.h"
#include "worker/image/jpeg_forms/form_keeper.h"
#include "worker/sample_cache.h"

namespace leat::worker {

// Thread-compatible.
class SampleForms final : public FormKeeper {
 public:
  // Both outlive it.
  SampleForms(SampleCache* cache, const SampleCache::DatasetPtr* dataset,
              uint64_t record)
      : cache_(*cache), dataset_(*dataset), record_(record) {}

  FormWish Begin(std::span<const std::byte> file) override;
  void End(FormAnswer answer) override;

 private:
  SampleCache& cache_;
  const SampleCache::DatasetPtr& dataset_;
  const uint64_t record_;
  std::span<const std::byte> file_;
  bool making_ = false;
  MonotonicTime began_;
};

}  // namespace leat::worker
