// SPDX-License-Identifier: Apache-2.0
//
// Checks the address of a coordinator, as people write it.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace leat {

// OK for HOST:PORT, [IPV6]:PORT, a socket inside this machine (unix:PATH,
// unix-abstract:NAME), or the name of a gRPC resolver (dns:..., ipv4:...).
// kInvalidArgument: another text; the message says what was probably meant,
// instead of reporting a failed connection. `what` names the value in the
// message.
absl::Status CheckServiceAddress(std::string_view what,
                                 std::string_view address);

}  // namespace leat
