// SPDX-License-Identifier: Apache-2.0
//
// RowFormat: the fields of an iterator's rows, and the work left to do on them.
// Immutable.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/leat/client.h"
#include "core/pipeline/epilogue.h"
#include "core/plan/job.h"

namespace leat::client {

struct RowFormat {
  // kInvalidArgument: the job's pipeline is invalid.
  static absl::StatusOr<std::shared_ptr<const RowFormat>> Create(
      const JobInfo& job, Epilogue epilogue);

  BatchSchema schema;  // of the transferred rows
  std::vector<std::optional<FieldEpilogue>> epilogue;  // by field
  std::vector<TensorEpilogue> shown;  // of `epilogue`; borrows it
};

}  // namespace leat::client
