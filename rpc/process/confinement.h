// SPDX-License-Identifier: Apache-2.0
//
// Confines a daemon once it is ready to serve: a filter of system calls
// (seccomp) prevents injected code from starting programs, inspecting other
// processes, mounting, loading modules, or reaching parts of the kernel that
// daemons never use. The filter forbids by name and allows the rest: an
// allow-list would end daemons with each new C library or driver.
//
// A forbidden call fails with EPERM and ends nothing; clone3 fails with ENOSYS,
// since a filter cannot inspect its flags, and the C library then uses clone,
// whose flags may not request a namespace. Confinement cannot be undone, and
// covers the process, its threads, and whatever it might start.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leat::rpc {

// Confines all threads of the process, including those already running, and
// sets no_new_privs. `drivers`: device drivers run in this process, which may
// share memory with other processes by calls that are forbidden otherwise.
// kUnavailable: the kernel, or a container around the process, rejects the
// filter. kUnimplemented: a build for sanitizers, which need ptrace. REQUIRES:
// code that starts programs has already run: a GPU's driver may start some when
// it is opened.
absl::Status Confine(bool drivers);

// Calls Confine unless not `wanted`, and logs `process.confined`, or a warning
// `process.not_confined` with the reason, which it returns. Empty: the process
// is confined, or is a build for sanitizers, for which no warning is needed.
std::string ConfineDaemon(bool wanted, bool drivers);

}  // namespace leat::rpc
