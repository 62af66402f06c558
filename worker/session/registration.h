// SPDX-License-Identifier: Apache-2.0
//
// Defines how a worker names itself to its coordinator, and describes its
// machine.
#pragma once

#include <string>
#include <vector>

#include "leat/v1/coordinator.pb.h"
#include "rpc/call/auth.h"
#include "worker/compute/gpu_worker.h"
#include "worker/config/config.h"

namespace leat::worker {

// Returns a name that is unique on a host, and the same after a restart if the
// port of `listen` is fixed.
std::string DefaultName(const std::string& listen);
// Returns an address that others can reach: the host's name for a listener on
// every interface.
std::string Reachable(const std::string& address);
// Logs a warning if consumers that get `address` will refuse the certificate.
void WarnOfCertificate(const rpc::Security& security,
                       const std::string& address);
// Adds the pool, version, threads, decoder classes and abilities, and logs which
// abilities it lacks.
void AddProgram(const Config& config, const GpuWorker& gpus,
                v1::RegisterWorker* registration);
// Adds the host, process and GPUs.
void AddMachine(const std::vector<GpuInfo>& gpus,
                v1::RegisterWorker* registration);

}  // namespace leat::worker
