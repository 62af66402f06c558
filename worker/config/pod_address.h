// SPDX-License-Identifier: Apache-2.0
//
// PodAddress: the name that Kubernetes gives a pod of a headless Service.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat::worker {

// Returns "10-1-2-3.DOMAIN:7412" for "10.1.2.3:7412", and "fd00--1.DOMAIN:7412"
// for "fd00::1:7412" or "[fd00::1]:7412": a certificate is valid for *.DOMAIN,
// and addresses are not known before pods are. kInvalidArgument: no IP:PORT, or
// no domain.
absl::StatusOr<std::string> PodAddress(std::string_view advertise,
                                       std::string_view domain);

}  // namespace leat::worker
