// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/process_name.h"

#include <unistd.h>

#include <array>
#include <random>

#include "fmt/format.h"
#include "rpc/process/machine.h"

namespace leat::client {
namespace {

// Linux gives the host's own namespace this number.
constexpr std::string_view kHostPids = "pid:[4026531836]";

std::string PidNamespace() {
  std::array<char, 64> text{};
  const ssize_t size = readlink("/proc/self/ns/pid", text.data(), text.size());
  return size <= 0 ? "" : std::string(text.data(), static_cast<size_t>(size));
}

}  // namespace

std::string ProcessName(std::string_view host, uint64_t pid,
                        std::string_view pid_namespace, uint32_t random) {
  std::string name = fmt::format("{}/{}", host, pid);
  if (pid_namespace != kHostPids) name += fmt::format("-{:08x}", random);
  return name;
}

std::string OwnProcessName() {
  static const auto random = static_cast<uint32_t>(std::random_device{}());
  return ProcessName(rpc::HostName(), static_cast<uint64_t>(getpid()),
                     PidNamespace(), random);
}

}  // namespace leat::client
