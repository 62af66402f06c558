// SPDX-License-Identifier: Apache-2.0
//
// StorageFile: an opened object of storage, and the data of listings about
// objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::worker {

struct ReadRange {
  uint64_t offset = 0;
  std::span<std::byte> into;
};

// The present object under a name.
struct StoredObject {
  // From List: the path below the listed URI ("a/b.tar"). From Stat: the URI.
  std::string name;
  uint64_t size = 0;
  // Stable text: "size=10 mtime_ns=17", `size=10 etag="d41d"`. Equal text means
  // equal bytes; part of fingerprints, and accepted by Open.
  std::string identity;
};

// The present state of a local directory.
struct StoredFolder {
  // When an entry was last added, removed or renamed.
  int64_t modified_ns = 0;
  // Its path without symbolic links; empty: the system does not report it.
  std::string real_path;
};

// One opened object. Immutable, thread-safe. It may outlive its Storage.
class StorageFile {
 public:
  virtual ~StorageFile() = default;
  // For messages: the URI without passwords and signatures.
  virtual const std::string& name() const = 0;
  virtual uint64_t size() const = 0;
  virtual const std::string& identity() const = 0;
  // Fills `into` completely, or returns an error that names the URI, offset and
  // wanted bytes; `into` then holds anything. kOutOfRange: past the end.
  // kFailedPrecondition: the object changed since it was opened (names both
  // identities). kNotFound, kPermissionDenied, kUnauthenticated: as storage
  // returns. kUnavailable, kDeadlineExceeded: still failing after all retries.
  virtual absl::Status ReadAt(uint64_t offset,
                              std::span<std::byte> into) const = 0;
  // Fills all ranges (in any order, may overlap); neighbours are read by one
  // request if storage is remote. Errors as ReadAt, the first that occurs.
  virtual absl::Status ReadRanges(std::span<const ReadRange> ranges) const = 0;
};

// Reads the object whole. kResourceExhausted: larger than `max_bytes`.
absl::StatusOr<std::string> ReadWhole(const StorageFile& file,
                                      uint64_t max_bytes);

}  // namespace leat::worker
