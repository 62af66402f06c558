// SPDX-License-Identifier: Apache-2.0
//
// Supervise is the program leat-private. It starts a private service and leases
// it to the processes that connect to its socket: each connection is a lease,
// and the service ends with the last one. From then on it accepts no lessee, so
// that a process that closes and connects again gets a new service, without the
// jobs of the old one.
//
// Messages to a lessee consist of lines. The first line is the kind:
//   ready    address, access token, process, lessees with this one,
//            description; with the daemons' sockets, so that their names stay
//            bound as long as a lessee lives, which might connect to them
//   failed   the code's number, text: the service did not start
//   log      text: what happened to a daemon; to the oldest lessee only
// A lessee sends nothing. A connection that closes before `ready` means that
// the service is ending: the process then starts the next one.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "client/private/embedded.h"

namespace leat::client {

struct SupervisorOptions {
  Embedded::Options daemons;
  // How long to wait for the first lessee, which may have been killed.
  absl::Duration first_lease = absl::Seconds(10);
  std::string description;  // one line
};

// Returns the process's exit code when the service has ended. `listener`: from
// ListenLocal. Called by one thread; Embedded has its own.
int Supervise(Fd listener, SupervisorOptions options);

}  // namespace leat::client
