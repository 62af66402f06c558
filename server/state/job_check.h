// SPDX-License-Identifier: Apache-2.0
//
// Checks a job's spec as far as possible without its dataset.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/arrangement.h"
#include "core/plan/job.h"

namespace leat::server {

// The reader of one of a job's sources, and what is arranged of its dataset.
struct PreparedSource {
  Node reader;
  std::string reader_text;  // canonical
  std::string reader_id;    // ReaderId of reader_text
  Arrangement arrangement{};
  std::string arranged_id{};  // ArrangedId; empty: nothing is arranged

  // The ID of the dataset that the job reads.
  const std::string& listing_id() const {
    return arranged_id.empty() ? reader_id : arranged_id;
  }
};

struct PreparedJob {
  JobSpec spec;        // pipelines normalised
  BatchSchema schema;  // as CheckedJob's
  std::vector<PreparedSource> sources;
  // Why GPU workers compute the rows on their CPU cores; empty: they compute
  // them on GPUs. Known if `typed`.
  std::string not_on_gpu;
  // True if the job may have decoder class nvjpeg. Known if `typed`.
  bool may_be_nvjpeg = false;
  // False if the types depend on a dataset: the pipelines are not normalised
  // then, and `schema` is empty.
  bool typed = false;
};

// Returns the ID of a reader: a hash of its canonical text.
std::string ReaderId(std::string_view reader_text);
// Returns the ID of an arrangement of the reader's dataset: a hash of both
// canonical texts.
std::string ArrangedId(std::string_view reader_text,
                       std::string_view arrangement_text);

// `datasets`: those of its sources, if they are known. kInvalidArgument: see
// CheckJob.
absl::StatusOr<PreparedJob> Prepare(const JobSpec& spec,
                                    std::span<const DatasetInfo> datasets = {});
// Prepares `job` again, with the types of its datasets.
absl::StatusOr<PreparedJob> Complete(const PreparedJob& job,
                                     std::span<const DatasetInfo> datasets);

}  // namespace leat::server
