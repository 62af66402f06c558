// SPDX-License-Identifier: Apache-2.0
//
// TlsProbe makes a handshake with a daemon, to find out what is wrong with the
// certificates of both sides. gRPC only reports that a handshake failed. A
// Hindrance also covers names, ports and firewalls.
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
  // The daemon has answered, and its answer is wrong: it is not starting or
  // stopping, and waiting does not help.
  bool settled = false;
};

// Makes a handshake as a caller with `security` would (empty roots: the
// system's). nullopt: nothing answers at `address`, or it is not a TCP address.
// Takes up to `patience` for each address of the name, and again as long for
// the handshake.
std::optional<TlsProbe> ProbeTls(const std::string& address,
                                 const Security& security, Duration patience);

// Returns the same for the end of an error message: "WHAT: REMEDY". Empty:
// nothing is wrong, or nothing answers.
std::string TlsTrouble(const std::string& address, const Security& security,
                       Duration patience);

struct Hindrance {
  std::string what;  // empty: nothing hinders
  bool settled = false;
};

// Returns why a caller with `security` cannot connect to the daemon at
// `address`: its name does not resolve, no process listens, nothing answers, or
// the result of TlsTrouble. Takes up to `patience` as ProbeTls does, plus the
// resolver's time.
Hindrance WhatHinders(const std::string& address, const Security& security,
                      Duration patience);

}  // namespace leat::rpc
