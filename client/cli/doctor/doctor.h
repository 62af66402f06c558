// SPDX-License-Identifier: Apache-2.0
//
// Doctor: what is not as it should be, each with what to do about it: of this
// machine, and of the service as the coordinator tells it.
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

// LocalFacts holds what this process sees of this machine.
struct LocalFacts {
  uint64_t descriptors = 0;                   // the soft limit
  std::optional<uint64_t> shm_free_bytes;     // of /dev/shm; none: not there
  std::optional<bool> clock_is_synchronised;  // none: the system does not say
  unsigned cpus = 0;                          // that may be used
  double cpu_quota = 0;                       // of a cgroup, in CPUs; 0: none
  unsigned numa_nodes = 1;
  bool has_gpu = false;       // the device is there
  std::string gpu_driver;     // its version; empty: none
  uint64_t locked_bytes = 0;  // that may be locked; ~0: without a limit
};

struct Diagnosis {
  std::string code;      // "DESCRIPTORS"
  std::string severity;  // "ok", "warn", "error"
  std::string evidence;
  std::string remedy;  // empty: ok
};

LocalFacts GatherLocal();
// One for each check, good ones too.
std::vector<Diagnosis> DiagnoseLocal(const LocalFacts& facts);
// `status`: GetStatusResponse; its findings are among them.
std::vector<Diagnosis> DiagnoseService(const Json& status,
                                       std::string_view own_version,
                                       absl::Time now);
// What a handshake with a worker gave; nullopt: nobody answers there.
struct WorkerProbe {
  std::string name, address;
  std::optional<TlsProbe> probe;
};
// Of some of `ready` workers.
Diagnosis DiagnoseWorkers(const std::vector<WorkerProbe>& probes, size_t ready);
View DoctorView(const std::vector<Diagnosis>& diagnoses);

}  // namespace leat::cli
