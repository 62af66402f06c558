// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include "absl/strings/cord.h"

namespace leat {

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(),
                         fmt::format("{}: {}", context, Message(status)));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace leat
