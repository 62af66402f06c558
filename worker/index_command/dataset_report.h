// SPDX-License-Identifier: Apache-2.0
//
// ReportDataset: what a dataset holds, without a service: `leat-worker index`,
// which `leat index` starts.
//
// The dataset is listed as a worker lists it, so that records, shards, classes
// and the fingerprint are those that a service would have. The index is not
// kept: of one that comes in blocks the head and a few blocks, spread evenly,
// of any other the whole, which SourceLimits::max_index_bytes bounds. Some
// records of what was kept are read, which says how large the fields are, and
// which records are bad.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/source/guess/reader.h"
#include "worker/source/source.h"

namespace leat::worker {

struct ReportOptions {
  std::string uri;
  KnownReader known;
  uint64_t read_records = 100;  // at most
  bool seek = false;            // writes the seek file, too (seek_indexer.h)
  // A quick look: of many large files a few are listed, spread evenly, and what
  // is not known when `limits.cancelled` is set is left out. A look has no
  // fingerprint where it has not listed all, and of a local image folder it has
  // nothing but the format: whoever looks counts files without a worker.
  bool look = false;
  SourceLimits limits;
};

// What has been done, for whoever looks at it from another thread.
struct ReportProgress {
  std::atomic<uint64_t> index_records{0}, index_bytes{0};
  std::atomic<uint64_t> records_read{0};
};

// Of how many files a look lists all.
inline constexpr size_t kMaxLookedFiles = 8;

// A JSON object; docs/OPERATIONS.md has its fields. Errors are GuessReader's,
// BuildIndex's, OpenSource's, WriteSeekFile's; a look that is cancelled has
// those of GuessReader only. Bad records are no error, but in
// the report.
absl::StatusOr<std::string> ReportDataset(const ReportOptions& options,
                                          ReportProgress* progress);

}  // namespace leat::worker
