// SPDX-License-Identifier: Apache-2.0
//
// Where a coordinator is, as people write it.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace leat {

// OK: HOST:PORT, [IPV6]:PORT, a socket inside this machine (unix:PATH,
// unix-abstract:NAME), or what names a resolver of gRPC's (dns:..., ipv4:...).
// kInvalidArgument: another text; says what was probably meant, rather than
// that nobody answers there. `what`: whose value it is, for the message.
absl::Status CheckServiceAddress(std::string_view what,
                                 std::string_view address);

}  // namespace leat
