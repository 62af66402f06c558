// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics of `leat doctor`: finds problems on this machine, and in the
// service as the coordinator reports it, with a remedy for each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/base/view.h"
#include "client/leat/admin.h"

namespace leat::cli {

// LocalFacts holds this process's view of this machine.
struct LocalFacts {
  uint64_t descriptors = 0;                   // the soft limit
  std::optional<uint64_t> shm_free_bytes;     // of /dev/shm; none: it does not
                                              // exist
  std::optional<bool> clock_is_synchronised;  // none: unknown
  unsigned cpus = 0;                          // usable ones
  double cpu_quota = 0;                       // of a cgroup, in CPUs; 0: none
  unsigned numa_nodes = 1;
  bool has_gpu = false;       // the device exists
  std::string gpu_driver;     // its version; empty: none
  uint64_t locked_bytes = 0;  // limit on locked memory; ~0: unlimited
};

struct Diagnosis {
  std::string code;      // "DESCRIPTORS"
  std::string severity;  // "ok", "warn", "error"
  std::string evidence;
  std::string remedy;  // empty: ok
};

LocalFacts GatherLocal();
// Returns one diagnosis for each check, good ones too.
std::vector<Diagnosis> DiagnoseLocal(const LocalFacts& facts);
// `status`: GetStatusResponse; its findings are included.
std::vector<Diagnosis> DiagnoseService(const Json& status,
                                       std::string_view own_version,
                                       absl::Time now);
// The result of a handshake with a worker; nullopt: no answer there.
struct WorkerProbe {
  std::string name, address;
  std::optional<TlsProbe> probe;
};
// Returns the diagnosis of the workers that were probed, out of `ready`.
Diagnosis DiagnoseWorkers(const std::vector<WorkerProbe>& probes, size_t ready);
View DiagnosesView(const std::vector<Diagnosis>& diagnoses);

}  // namespace leat::cli
