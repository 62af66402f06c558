// SPDX-License-Identifier: Apache-2.0
//
// Names this process among all consumers of a service.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leat::client {

// Returns "HOST/PID". Containers may share a host's name while each has a
// process 1, so outside the host's own PID namespace it is "HOST/PID-RANDOM",
// the random number in hexadecimal. `pid_namespace`: as Linux has it in
// /proc/self/ns/pid; empty: unknown.
std::string ProcessName(std::string_view host, uint64_t pid,
                        std::string_view pid_namespace, uint32_t random);

// Returns the name of this process. A process that was forked has another one.
std::string OwnProcessName();

}  // namespace leat::client
