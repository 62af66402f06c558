// SPDX-License-Identifier: Apache-2.0
//
// TlsProbe: a handshake with a daemon, to say what is wrong with the
// certificate that it shows. gRPC says that a handshake failed, and no more.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/cli/doctor.h"

namespace leat::cli {

// `ca`: file of the authorities to trust; empty: the system's. nullopt: nobody
// answers there, or it is no address of TCP. Takes up to `patience` for each
// address that the name has.
std::optional<Diagnosis> ProbeTls(const std::string& address,
                                  const std::string& ca,
                                  absl::Duration patience);

}  // namespace leat::cli
