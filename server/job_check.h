// SPDX-License-Identifier: Apache-2.0
//
// A job's spec, checked as far as it can be without its dataset.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/job.h"

namespace leat::server {

struct PreparedJob {
  JobSpec spec;        // pipeline normalised
  BatchSchema schema;  // with kValidField under BadSamplePolicy::kZero
  Node reader;
  std::string reader_text;  // canonical
  std::string dataset_id;   // what the reader reads
  bool fusable = false;     // fit for class nvjpeg
};

// kInvalidArgument: see CheckSpec.
absl::StatusOr<PreparedJob> Prepare(const JobSpec& spec);

}  // namespace leat::server
