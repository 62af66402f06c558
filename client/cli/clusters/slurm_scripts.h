// SPDX-License-Identifier: Apache-2.0
//
// The two batch scripts of a pool in Slurm: the coordinator's, and a worker's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace leat::cli {

struct SlurmOptions {
  std::string dir;  // shared by all nodes
  uint32_t cpus = 1;
  uint64_t array_size = 0;  // 0: kSlurmArraySize
  std::string listen;       // empty: each node's host name
  std::string tls;          // a folder; empty: no TLS
  bool insecure = false;
  std::vector<std::string> sbatch;       // further flags
  std::vector<std::string> coordinator;  // further flags of leat-coordinator
  std::vector<std::string> worker;       // further flags of leat-worker
  bool once = false;
};

struct SlurmService {
  std::string pool;
  uint32_t min = 0, max = 0;
  SlurmOptions options;
};

// kInvalidArgument: a value that a line of a script cannot hold.
absl::Status CheckScriptText(std::string_view flag, std::string_view text);
// kInvalidArgument: neither certificates nor leave to do without. Reports
// errors that otherwise only the daemons' logs would show later.
absl::Status CheckTlsFolder(const SlurmOptions& slurm);
std::string CoordinatorScript(const SlurmService& service);
std::string WorkerScript(const SlurmService& service);

}  // namespace leat::cli
