// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/plane.h"

#include "core/status.h"

namespace leat::client {

std::string_view Name(Plane plane) {
  switch (plane) {
    case Plane::kGrpc:
      return "grpc";
    case Plane::kShared:
      return "shm";
    case Plane::kDevice:
      return "cuda";
    case Plane::kAuto:
      break;
  }
  return "auto";
}

absl::StatusOr<Plane> PlaneOf(std::string_view name) {
  for (const Plane plane :
       {Plane::kAuto, Plane::kGrpc, Plane::kShared, Plane::kDevice})
    if (Name(plane) == name) return plane;
  return InvalidArgument("plane \"{}\": want auto, grpc, shm or cuda", name);
}

}  // namespace leat::client
