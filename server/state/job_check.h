// SPDX-License-Identifier: Apache-2.0
//
// Checks a job's spec as far as possible without its dataset.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/plan/job.h"

namespace leat::server {

struct PreparedJob {
  JobSpec spec;        // pipeline normalised
  BatchSchema schema;  // with kValidField where HasValidField
  Node reader;
  std::string reader_text;  // canonical
  std::string reader_id;    // ReaderId of reader_text
  // Why GPU workers compute the rows on their CPU cores; empty: they compute
  // them on GPUs. Known if `typed`.
  std::string not_on_gpu;
  // True if the job may have decoder class nvjpeg. Known if `typed`.
  bool may_be_nvjpeg = false;
  // False if the types depend on the dataset: the pipeline is not normalised
  // then, and `schema` is empty.
  bool typed = false;
};

// Returns the ID of a reader: a hash of its canonical text.
std::string ReaderId(std::string_view reader_text);

// `stored`: the dataset's types, if they are known. kInvalidArgument: see
// CheckSpec.
absl::StatusOr<PreparedJob> Prepare(const JobSpec& spec,
                                    std::span<const ValueType> stored = {});
// Prepares `job` again, with the types of its dataset.
absl::StatusOr<PreparedJob> Complete(const PreparedJob& job,
                                     const DatasetInfo& dataset);

}  // namespace leat::server
