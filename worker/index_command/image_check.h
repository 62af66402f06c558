// SPDX-License-Identifier: Apache-2.0
//
// ImageCheck: whether the images of records can be decoded, as jobs find out.
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
  // `types`: of the reader's outputs.
  static absl::StatusOr<ImageCheck> Create(const Node& reader,
                                           std::span<const ValueType> types);

  // Decodes each image. Errors are those that a row of the sample has.
  absl::Status Check(const StoredSample& sample) const;

 private:
  std::unique_ptr<RowProgram> program_;  // null: no output is an image
  std::vector<size_t> row_bytes_;        // of each image
};

}  // namespace leat::worker
