// SPDX-License-Identifier: Apache-2.0
//
// A job's spec, checked as far as it can be without its dataset.
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
  std::string reader_id;    // ReaderId of it
  // Why GPU workers compute the rows on their cores; empty: they compute them
  // on GPUs. Known if `typed`.
  std::string not_on_gpu;
  // Whether class nvjpeg can have the job. Known if `typed`.
  bool may_be_nvjpeg = false;
  // False: only the dataset's types will tell; the pipeline is not normalised,
  // `schema` is empty.
  bool typed = false;
};

// What a reader is known by: a hash of its canonical text.
std::string ReaderId(std::string_view reader_text);

// `stored`: the dataset's types, if they are known. kInvalidArgument: see
// CheckSpec.
absl::StatusOr<PreparedJob> Prepare(const JobSpec& spec,
                                    std::span<const ValueType> stored = {});
// `job` again, with the types of its dataset.
absl::StatusOr<PreparedJob> Complete(const PreparedJob& job,
                                     const DatasetInfo& dataset);

}  // namespace leat::server
