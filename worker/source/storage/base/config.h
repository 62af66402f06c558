// SPDX-License-Identifier: Apache-2.0
//
// StorageConfig: every bound of storage, in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace leat::worker {

using StorageMs = std::chrono::milliseconds;

struct StorageConfig {
  // Limits of concurrent requests.
  int connections = 64;                    // of the process; more requests wait
  int parallel_ranges = 8;                 // of one ReadAt or ReadRanges
  uint64_t range_bytes = 8 << 20;          // larger reads are split
  uint64_t coalesce_gap_bytes = 64 << 10;  // ReadRanges reads over such gaps

  // Limits of time.
  StorageMs connect_timeout{3'000};
  StorageMs request_timeout{60'000};  // of one try
  StorageMs stall_timeout{10'000};    // of a try that receives nothing
  StorageMs silence{3'000};           // of a try, until it is reported
  StorageMs deadline{180'000};        // of a call with all its tries

  // Tries of one request; each wait is random in [0, step], steps double.
  int max_tries = 20;
  StorageMs first_backoff{50};
  StorageMs max_backoff{5'000};
  // The longest wait that a server may demand.
  StorageMs max_retry_after{30'000};

  // A late range is requested a second time. It is late if it takes longer than
  // hedge_factor times the 95th percentile of recent ranges, and longer than
  // hedge_after. At most max_hedges at a time, and one per hedge_every
  // requests; 0: never.
  StorageMs hedge_after{500};
  double hedge_factor = 2;
  int max_hedges = 4;
  int hedge_every = 10;

  // A disk cache for ranges of objects (disk_cache.h); empty: none.
  std::string disk_cache;
  uint64_t disk_cache_bytes = 0;

  // Folders that jobs name, and this machine's copy of each. Paths are
  // absolute, without a slash at the end.
  std::map<std::string, std::string> local_copies;

  // The local files that are kept open while no read uses them
  // (open_file_budget.h); 0: as the process's limit of descriptors allows.
  size_t max_open_files = 0;

  // The paths that may be read, as for AllowedReads::Create; nullopt:
  // everything.
  std::optional<std::vector<std::string>> allow;

  // Listings.
  uint64_t max_list_entries = 100'000'000;
  int max_list_depth = 64;  // nested directories
  uint64_t max_page_bytes = 16 << 20;

  // Addresses of services; empty: from the environment (AWS_ENDPOINT_URL_S3,
  // AWS_REGION, ...), then the profile, then Amazon's.
  std::string s3_endpoint;
  std::string s3_region;
  std::string gs_endpoint = "https://storage.googleapis.com";
  std::string ca_bundle;   // a file; empty: AWS_CA_BUNDLE, then the system's
  bool anonymous = false;  // s3 and gs without signatures
};

}  // namespace leat::worker
