// SPDX-License-Identifier: Apache-2.0
//
// TlsProbe: a handshake with a daemon, to say what is wrong with the
// certificates of both sides. gRPC says that a handshake failed, and no more.
// A Hindrance says it also of names, ports and firewalls.
//
// Thread-safe; blocks.
#pragma once

#include <optional>
#include <string>

#include "core/clock.h"
#include "rpc/call/auth.h"

namespace leat::rpc {

struct TlsProbe {
  std::string what;    // "HOST:PORT shows a certificate that has expired"
  std::string remedy;  // empty: nothing is wrong
  // The daemon has spoken, and what it said is wrong: it is not about to end or
  // to start, and time does not mend it.
  bool settled = false;
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

struct Hindrance {
  std::string what;  // empty: nothing hinders
  bool settled = false;
};

// Why a caller with `security` cannot talk to the daemon at `address`: its name
// does not resolve, nobody listens, nothing answers, or what TlsTrouble says.
// Takes up to `patience` as ProbeTls does, and what the resolver takes.
Hindrance WhatHinders(const std::string& address, const Security& security,
                      Duration patience);

}  // namespace leat::rpc
