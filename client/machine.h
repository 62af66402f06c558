// SPDX-License-Identifier: Apache-2.0
//
// What this process may use of its machine.
#pragma once

#include <cstdint>
#include <string>

namespace leat::client {

// Cores by affinity and the cgroup's quota, rounded up; at least 1.
uint32_t UsableCores();
std::string HostName();
// The folder of the file that holds this library's code; empty: not known.
std::string LibraryFolder();

}  // namespace leat::client
