// SPDX-License-Identifier: Apache-2.0
//
// TlsProbe: a handshake with a daemon, to say what is wrong with the
// certificates of both sides. gRPC says that a handshake failed, and no more.
//
// Thread-safe; blocks.
#pragma once

#include <optional>
#include <string>

#include "core/clock.h"
#include "rpc/auth.h"

namespace leat::rpc {

struct TlsProbe {
  std::string what;    // "HOST:PORT shows a certificate that has expired"
  std::string remedy;  // empty: nothing is wrong
};

// Shakes hands as a caller with `security` does (its roots empty: the
// system's). nullopt: nobody answers at `address`, or it is no address of TCP.
// Takes up to `patience` for each address that the name has, and as long again
// for the handshake.
std::optional<TlsProbe> ProbeTls(const std::string& address,
                                 const Security& security, Duration patience);

// The same for the end of an error message: "WHAT: REMEDY". Empty: nothing is
// wrong, or nobody answers.
std::string TlsTrouble(const std::string& address, const Security& security,
                       Duration patience);

}  // namespace leat::rpc
