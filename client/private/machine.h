// SPDX-License-Identifier: Apache-2.0
//
// Two functions on the process that has loaded the client library. Any thread
// may call them. Neither reports an error: where the process cannot be changed
// or examined, it stays as it is, or the result is empty.
#pragma once

#include <string>

namespace leat::client {

// Lets the C library keep the memory that gRPC receives into, instead of
// returning it to the kernel and faulting it in again for every message, which
// takes half of the CPU time of a stream. Acts once per process; does nothing
// if the environment (MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES, ...) sets this
// already.
void KeepReceiveMemory();
// Returns the folder of the file with this library's code; empty: unknown.
std::string LibraryFolder();

}  // namespace leat::client
