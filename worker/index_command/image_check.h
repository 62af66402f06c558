// SPDX-License-Identifier: Apache-2.0
//
// ImageCheck: checks whether the images of records can be decoded, as jobs
// would.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "worker/image/program/row_program.h"
#include "worker/sample/stored_sample.h"

namespace leat::worker {

// Thread-safe.
class ImageCheck {
 public:
  // `types`: those of the reader's outputs.
  static absl::StatusOr<ImageCheck> Create(const Node& reader,
                                           std::span<const ValueType> types);

  // Decodes each image. Returns the error that a row with the sample would
  // have.
  absl::Status Check(const StoredSample& sample) const;

 private:
  std::unique_ptr<RowProgram> program_;  // nullptr: no output is an image
  std::vector<size_t> row_bytes_;        // per image
};

}  // namespace leat::worker
