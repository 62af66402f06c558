// SPDX-License-Identifier: Apache-2.0
//
// StoredFile: an opened object of storage, and what listings say of objects.
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

// What lies under a name now.
struct StoredObject {
  // Of List: the path below the listed URI ("a/b.tar"). Of Stat: the URI.
  std::string name;
  uint64_t size = 0;
  // Stable text: "size=10 mtime_ns=17", `size=10 etag="d41d"`. Equal text,
  // equal bytes: part of fingerprints; Open takes it back.
  std::string identity;
};

// A local directory as it is now.
struct StoredFolder {
  // When an entry was added, removed or renamed last.
  int64_t modified_ns = 0;
  // Its path without symbolic links; empty: the system does not tell it.
  std::string real_path;
};

// One opened object. Immutable, thread-safe. It may outlive its Storage.
class StoredFile {
 public:
  virtual ~StoredFile() = default;
  // For messages: the URI without passwords and signatures.
  virtual const std::string& name() const = 0;
  virtual uint64_t size() const = 0;
  virtual const std::string& identity() const = 0;
  // Fills `into` whole, or is an error that names the URI, offset and wanted
  // bytes; `into` then holds anything. kOutOfRange: past the end.
  // kFailedPrecondition: the object changed since it was opened (names both
  // identities). kNotFound, kPermissionDenied, kUnauthenticated: as storage
  // says. kUnavailable, kDeadlineExceeded: still failing after all retries.
  virtual absl::Status ReadAt(uint64_t offset,
                              std::span<std::byte> into) const = 0;
  // Fills all ranges (any order, may overlap); neighbours come in one request
  // where storage is remote. Errors as ReadAt, the first that is met.
  virtual absl::Status ReadRanges(std::span<const ReadRange> ranges) const = 0;
};

// Reads the object whole. kResourceExhausted: larger than `max_bytes`.
absl::StatusOr<std::string> ReadWhole(const StoredFile& file,
                                      uint64_t max_bytes);

}  // namespace leat::worker
