// SPDX-License-Identifier: Apache-2.0
//
// KeepReceiveMemory and LibraryFolder set up, and look at, the client's process.
#pragma once

#include <string>

namespace leat::client {

// Lets the C library keep the memory that gRPC receives into, instead of giving
// it back to the kernel and faulting it in again for every message: half of the
// CPU time of a stream. Once a process; does nothing where the environment
// (MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES, ...) has a say already.
void KeepReceiveMemory();
// The folder of the file that holds this library's code; empty: not known.
std::string LibraryFolder();

}  // namespace leat::client
