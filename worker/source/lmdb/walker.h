// SPDX-License-Identifier: Apache-2.0
//
// Reads LMDB data files without liblmdb: finds the values, in the order of
// their keys.
//
// Files are untrusted: every page number, size and offset is checked against
// the file, a page is visited at most once, and the depth is bounded, so that
// damage is an error that names the page. Nothing is locked or written. A
// writer that commits meanwhile changes the file's identity, which the reader
// notices (StorageFile).
//
// Supports files of 64-bit little-endian machines, format version 1, whose
// unnamed database has one value per key: the kind that Caffe, Caffe2 and DALI
// use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// A value's bytes in the file.
struct LmdbValue {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  friend bool operator==(const LmdbValue&, const LmdbValue&) = default;
};

struct LmdbListing {
  uint64_t transaction = 0;  // the newest that was committed
  std::vector<LmdbValue> values;
};

// kDataLoss: not LMDB, damaged, or cut off. kFailedPrecondition: of another
// machine, version or kind, or it changed meanwhile (names both).
// kResourceExhausted: over max_files values. kCancelled.
absl::StatusOr<LmdbListing> ListLmdb(const StorageFile& file,
                                     const SourceLimits& limits);

// Returns the newest transaction, to check whether a file is still the listed
// one.
absl::StatusOr<uint64_t> LmdbTransaction(const StorageFile& file);

}  // namespace leat::worker
