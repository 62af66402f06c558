// SPDX-License-Identifier: Apache-2.0
#include "worker/session/registration.h"

#include <unistd.h>

#include "core/log.h"
#include "core/status.h"
#include "fmt/format.h"
#include "rpc/process/machine.h"
#include "rpc/tls/server_tls.h"
#include "worker/source/reader_abilities.h"

namespace leat::worker {
std::string DefaultName(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  const std::string last =
      colon == std::string::npos ? "" : listen.substr(colon + 1);
  if (last.empty() || last == "0")
    return fmt::format("{}-{}", rpc::HostName(), getpid());
  return fmt::format("{}-{}", rpc::HostName(), last);
}

std::string Reachable(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  if (host != "0.0.0.0" && host != "[::]") return address;
  return rpc::HostName() + address.substr(colon);
}

void WarnOfCertificate(const rpc::Security& security,
                       const std::string& address) {
  const absl::Status fits = rpc::CheckName(security, address);
  if (!fits.ok())
    LOG_WARN("tls.other_name error=\"{}\" note=\"consumers refuse it\"",
             Message(fits));
}

void AddProgram(const Config& config, const GpuWorker& gpus,
                v1::RegisterWorker* registration) {
  registration->set_pool(config.pool);
  registration->set_version(std::string(rpc::kLeatVersion));
  registration->set_threads(static_cast<uint32_t>(config.threads));
  for (const DecoderClass each : gpus.decoder_classes())
    registration->add_decoder_classes(static_cast<v1::DecoderClass>(each));
  for (const ReaderAbility& each : ReaderAbilities()) {
    if (each.has.ok()) {
      registration->add_abilities(each.name);
      continue;
    }
    LOG_INFO("worker.lacks ability={} why=\"{}\"", each.name,
             Message(each.has));
    v1::LackedAbility& lacked = *registration->add_lacked();
    lacked.set_name(each.name);
    lacked.set_why(std::string(Message(each.has)));
  }
}

void AddMachine(const std::vector<GpuInfo>& gpus,
                v1::RegisterWorker* registration) {
  for (const GpuInfo& gpu : gpus) {
    v1::Device& device = *registration->add_devices();
    device.set_index(static_cast<uint32_t>(gpu.index));
    device.set_uuid(gpu.uuid);
    device.set_name(gpu.name);
    device.set_memory_bytes(gpu.memory_bytes);
    device.set_compute(gpu.compute);
    device.set_jpeg_engines(static_cast<uint32_t>(gpu.jpeg_engines));
    device.set_jpeg_cores(static_cast<uint32_t>(gpu.jpeg_cores));
    device.set_nvjpeg_version(gpu.decoder_version);
  }
  registration->set_host(rpc::HostName());
  registration->set_pid(static_cast<uint64_t>(getpid()));
}

}  // namespace leat::worker
