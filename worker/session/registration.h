// SPDX-License-Identifier: Apache-2.0
//
// How a worker names itself to its coordinator, and what it says of its
// machine.
#pragma once

#include <string>
#include <vector>

#include "leat/v1/coordinator.pb.h"
#include "rpc/call/auth.h"
#include "worker/compute/gpu_worker.h"
#include "worker/config/config.h"

namespace leat::worker {

// Unique on a host, and the same after a restart where the port of `listen` is
// fixed.
std::string DefaultName(const std::string& listen);
// A listener on every interface is reached by the host's name.
std::string Reachable(const std::string& address);
// Says in the log that consumers who are told `address` will refuse the
// certificate.
void WarnOfCertificate(const rpc::Security& security,
                       const std::string& address);
// Pool, version, threads and what it decodes.
void AddProgram(const Config& config, const GpuWorker& gpus,
                v1::RegisterWorker* registration);
// Host, process and GPUs.
void AddMachine(const std::vector<GpuInfo>& gpus,
                v1::RegisterWorker* registration);

}  // namespace leat::worker
