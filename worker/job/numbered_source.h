// SPDX-License-Identifier: Apache-2.0
//
// NumberedSource is a dataset's source whose samples have the numbers that a
// job gives them: a mixture numbers the samples of one dataset after those of
// another, so sample `first + i` of the job is sample i of the dataset. Records
// keep their numbers, which caches and other workers know.
//
// Thread-safe, as the source is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/status.h"
#include "worker/source/mapped_source.h"

namespace leat::worker {

struct NumbersFrom {
  uint64_t first = 0;
  uint64_t At(uint64_t sample) const { return sample - first; }
};

class NumberedSource final : public MappedSource<NumbersFrom> {
 public:
  // Returns `source` itself if `first` is 0.
  static std::shared_ptr<const Source> Of(std::shared_ptr<const Source> source,
                                          uint64_t first) {
    if (first == 0) return source;
    return std::make_shared<const NumberedSource>(std::move(source),
                                                  NumbersFrom{first});
  }
  using MappedSource::MappedSource;

  // Returns how many samples the dataset has: the last is number
  // first + num_samples() - 1.
  uint64_t num_samples() const override { return base_->num_samples(); }
  const Digest& fingerprint() const override { return base_->fingerprint(); }
  // kUnimplemented: conditions are about a dataset, before a job numbers it.
  absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string>) const override {
    return Unimplemented("the samples have the numbers of a job");
  }
};

}  // namespace leat::worker
