// SPDX-License-Identifier: Apache-2.0
//
// What a daemon gives up once it is ready to serve: a filter of system calls
// (seccomp), so that code that somebody has smuggled in cannot start programs,
// look into other processes, mount, load modules, or reach the parts of the
// kernel that daemons never use. The filter forbids by name and allows the
// rest: an allow-list would end daemons with each new C library or driver.
//
// A call that is forbidden fails by EPERM and ends nothing; clone3 fails by
// ENOSYS, since a filter cannot look at its flags, and the C library then uses
// clone, whose flags may ask for no namespace. There is no way back, for the
// process, its threads, and whatever it might start.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leat::rpc {

// Confines all threads of the process, those that run included, and sets
// no_new_privs. `drivers`: device drivers run in this process, which may share
// memory with other processes by calls that are forbidden otherwise.
// kUnavailable: the kernel, or a container around the process, does not take
// the filter. kUnimplemented: a build for sanitizers, which need ptrace.
// REQUIRES: whatever starts programs has done so: a GPU's driver may, when it
// is opened.
absl::Status Confine(bool drivers);

// Does so, unless it is not `wanted`, and logs `process.confined`, or a warning
// `process.not_confined` with the reason, which it returns; empty: the process
// is confined, or is a build for sanitizers, of which nobody needs to be told.
std::string ConfineDaemon(bool wanted, bool drivers);

}  // namespace leat::rpc
