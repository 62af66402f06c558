// SPDX-License-Identifier: Apache-2.0
//
// Explainer: tells what rows of a job contain, and why, from its plan, its
// dataset's index and its row program. It keeps nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/plan/checked_job.h"
#include "leat/v1/explain.pb.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {

// The most samples or rows of a request; more are kInvalidArgument.
inline constexpr int kMaxExplained = 1024;
inline constexpr int kMaxExplainedRead = 64;  // with their records
// The most documents of packed rows in an answer.
inline constexpr uint64_t kMaxExplainedDocuments = 1024;

// Thread-compatible: one thread at a time may call it.
class Explainer {
 public:
  // Called between two rows: true ends the call with kCancelled.
  using Cancelled = std::function<bool()>;

  // kFailedPrecondition: the job's samples are not in storage. kUnimplemented:
  // an operator without a CPU kernel.
  static absl::StatusOr<Explainer> Create(std::shared_ptr<const JobRuntime> job,
                                          const ImageLimits& limits);

  // kInvalidArgument, kOutOfRange: the request is wrong. kUnavailable: the
  // index is not available now.
  absl::Status Locate(const v1::LocateSamplesRequest& request,
                      const Cancelled& cancelled,
                      v1::LocateSamplesResponse* response);
  // Has the same errors. A record that cannot be read makes draws unknown.
  absl::Status Explain(const v1::ExplainRowsRequest& request,
                       const Cancelled& cancelled,
                       v1::ExplainRowsResponse* response);

 private:
  // Explains the rows of one source.
  struct OfSource {
    CheckedGraph graph;
    std::unique_ptr<RowProgram> program;
    std::string root;
    // Returns the name that people know a node's value by (explain.proto).
    std::string NameOfNode(uint32_t node) const;
  };

  Explainer(std::shared_ptr<const JobRuntime> job, CheckedJob checked,
            const ImageLimits& limits);
  // Compiles the source's program when it is first needed.
  absl::StatusOr<const OfSource*> SourceOf(uint64_t sample);
  absl::Status CheckRows(const v1::ExplainRowsRequest& request) const;
  // Says which of a packed row's documents are listed.
  struct ListedDocuments {
    uint64_t first = 0, most = 0;
  };
  absl::Status LocateOne(uint64_t sample, const ListedDocuments& documents,
                         v1::StoredRecord* record);
  absl::Status ExplainOne(const v1::ExplainRowsRequest& request, uint32_t row,
                          v1::ExplainedRow* explained);
  absl::Status AddDraws(const v1::ExplainRowsRequest& request, uint64_t sample,
                        v1::ExplainedRow* explained);

  std::shared_ptr<const JobRuntime> job_;
  CheckedJob checked_;
  std::map<uint32_t, OfSource> sources_;  // by number
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace leat::worker
