// SPDX-License-Identifier: Apache-2.0
//
// Supervise: what leat-private does. It starts a private service and lends it
// to the processes that connect to its socket: each connection is a lease, and
// the service ends with the last one. From then on it takes nobody in, so that
// a process that closes and connects again meets a new service, without the
// jobs of the old one.
//
// Messages to a lessee are lines, the first of which says what it is:
//   ready    address, access token, process, lessees with this one,
//   description;
//            with it come the daemons' sockets, so that their names stay bound
//            as long as a lessee lives, who might connect to them
//   failed   the code's number, text: the service did not start
//   log      text: what happened to a daemon; to the oldest lessee alone
// A lessee says nothing. A connection that closes before `ready` means that the
// service is ending: whoever wants one starts the next.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "client/private/embedded.h"

namespace leat::client {

struct SupervisorOptions {
  Embedded::Options daemons;
  // For the first lessee to come, who may have been killed.
  absl::Duration first_lease = absl::Seconds(10);
  std::string description;  // one line
};

// Returns the process's exit code when the service has ended. `listener`:
// of ListenLocal. One thread calls; Embedded has a thread of its own.
int Supervise(Fd listener, SupervisorOptions options);

}  // namespace leat::client
