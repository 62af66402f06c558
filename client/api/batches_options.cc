// SPDX-License-Identifier: Apache-2.0
#include "client/api/batches_options.h"

#include <algorithm>
#include <cstdlib>

#include "absl/time/time.h"
#include "core/status.h"

namespace leat::client {

absl::Status CheckOptions(const BatchesOptions& options) {
  if (options.window < 1 || options.window > 64)
    return InvalidArgument("window {}: want 1 to 64 steps", options.window);
  if (options.row_timeout <= absl::ZeroDuration())
    return InvalidArgument("row_timeout {}: want more than 0",
                           absl::FormatDuration(options.row_timeout));
  if (options.device < -1)
    return InvalidArgument("device {}: want -1 (host memory) or a CUDA device",
                           options.device);
  return absl::OkStatus();
}

absl::StatusOr<Transport> TransportFromEnvironment(
    const BatchesOptions& options) {
  const char* const name = std::getenv("LEAT_TRANSPORT");
  if (name == nullptr || *name == '\0') return Transport::kAuto;
  absl::StatusOr<Transport> transport = TransportOf(name);
  if (!transport.ok()) return Annotate(transport.status(), "LEAT_TRANSPORT");
  if (*transport == Transport::kDevice && options.device < 0)
    return FailedPrecondition(
        "LEAT_TRANSPORT=cuda: these batches are in host memory (device={})",
        options.device);
  return transport;
}

uint32_t BoundedWindow(const BatchesOptions& options, size_t batch_bytes) {
  const uint64_t fit =
      options.max_window_bytes / std::max<size_t>(1, batch_bytes);
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(fit < 2 ? 0 : fit - 2, 1, options.window));
}

}  // namespace leat::client
