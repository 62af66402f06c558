// SPDX-License-Identifier: Apache-2.0
//
// ReportDataset: reports the contents of a dataset, without a service, for
// `leat-worker index`, which `leat index` starts.
//
// The dataset is listed as a worker lists it, so that records, shards, classes
// and the fingerprint are those of a service. The index is not kept: if it
// comes in blocks, the head and a few blocks, spread evenly, are kept,
// otherwise the whole, which SourceLimits::max_index_bytes bounds. Some records
// of the kept part are read, to determine how large the fields are, and which
// records are bad.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/guess/reader.h"
#include "worker/source/source.h"

namespace leat::worker {

struct ReportOptions {
  std::string uri;
  KnownReader known;
  uint64_t read_records = 100;  // at most
  bool seek = false;            // also writes the seek file (seek_indexer.h)
  // Lengths of rows that the documents of token files are packed into, to say
  // how full they are.
  std::vector<uint64_t> rows = {2048, 4096, 8192, 32768};
  // Makes a quick look: of many large files a few are listed, spread evenly,
  // and values that are not known when `limits.cancelled` is set are left out.
  // A look has no fingerprint unless it has listed all files, and for a local
  // image folder it has only the format: its files can be counted without a
  // worker.
  bool look = false;
  SourceLimits limits;
};

// The progress, which other threads may read.
struct ReportProgress {
  std::atomic<uint64_t> index_records{0}, index_bytes{0};
  std::atomic<uint64_t> records_read{0};
};

// A look lists all files if there are at most this many.
inline constexpr size_t kMaxLookedFiles = 8;

// Returns a JSON object; docs/run/datasets.md lists its fields. Errors are
// those of GuessReader, BuildIndex, OpenSource and WriteSeekFile; a look that
// is cancelled has only those of GuessReader. Bad records are not an error; the
// report has them.
absl::StatusOr<std::string> ReportDataset(const ReportOptions& options,
                                          ReportProgress* progress);

}  // namespace leat::worker
