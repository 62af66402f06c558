// SPDX-License-Identifier: Apache-2.0
#include "worker/source/file_error.h"

#include <cerrno>
#include <system_error>

#include "core/status.h"

namespace leat::worker {

absl::Status FileError(int error, std::string_view what,
                       std::string_view path) {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      code = absl::StatusCode::kNotFound;
      break;
    case EACCES:
    case EPERM:
      code = absl::StatusCode::kPermissionDenied;
      break;
    case ELOOP:
    case ENAMETOOLONG:
    case EISDIR:
      code = absl::StatusCode::kFailedPrecondition;
      break;
    case EIO:
    case EINTR:
    case EAGAIN:
    case ESTALE:
    case ETIMEDOUT:
    case EBUSY:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      code = absl::StatusCode::kUnavailable;
      break;
    default:
      break;
  }
  return MakeStatus(code, "cannot {} {}: {}", what, path,
                    std::generic_category().message(error));
}

}  // namespace leat::worker
