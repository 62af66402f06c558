// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/transport.h"

#include "core/status.h"

namespace leat::client {

std::string_view Name(Transport transport) {
  switch (transport) {
    case Transport::kGrpc:
      return "grpc";
    case Transport::kShared:
      return "shm";
    case Transport::kDevice:
      return "cuda";
    case Transport::kAuto:
      break;
  }
  return "auto";
}

absl::StatusOr<Transport> TransportOf(std::string_view name) {
  for (const Transport transport : {Transport::kAuto, Transport::kGrpc,
                                    Transport::kShared, Transport::kDevice})
    if (Name(transport) == name) return transport;
  return InvalidArgument("transport \"{}\": want auto, grpc, shm or cuda",
                         name);
}

}  // namespace leat::client
