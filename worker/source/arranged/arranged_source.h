// SPDX-License-Identifier: Apache-2.0
//
// ArrangedSource: an arrangement's samples, whose records are those of the
// base. Sample i is the base's sample `chosen.At(i)`, and its record has the
// base's number, so that a subset, its complement and the whole share what is
// cached.
//
// It is opened of the whole index, or of the head and one block, which has the
// samples of that block alone (worker/job/block_source.h).
//
// Immutable; thread-safe, as the base is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "core/status.h"
#include "worker/source/arranged/chosen_samples.h"
#include "worker/source/mapped_source.h"

namespace leat::worker {

// The dataset that is arranged: its opened index, and what identifies it.
struct ArrangedBase {
  std::shared_ptr<const Source> source;
  Digest fingerprint{};
  SourceLimits limits{};
};

// Opens what Arrange made (arrange.h). `fingerprint`: the arranged dataset's.
// kDataLoss: a malformed index, or one of another base.
absl::StatusOr<std::unique_ptr<Source>> OpenArranged(std::string_view blob,
                                                     const ArrangedBase& base,
                                                     const Digest& fingerprint);

class ArrangedSource final : public MappedSource<ChosenSamples> {
 public:
  ArrangedSource(std::shared_ptr<const Source> base, ChosenSamples chosen,
                 const Digest& fingerprint)
      : MappedSource(std::move(base), std::move(chosen)),
        fingerprint_(fingerprint) {}

  uint64_t num_samples() const override { return map_.size(); }
  const Digest& fingerprint() const override { return fingerprint_; }
  // kUnimplemented: conditions choose among the samples of the base.
  absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string>) const override {
    return Unimplemented("the samples are those of an arrangement");
  }

 private:
  const Digest fingerprint_;
};

}  // namespace leat::worker
