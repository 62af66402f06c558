// SPDX-License-Identifier: Apache-2.0
//
// Keeps the parts of a listing's trail as the coordinator does.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "worker/source/arranged/listing_trail.h"

namespace leat::worker {

class KeptParts final : public TrailKeeper {
 public:
  absl::StatusOr<std::optional<std::string>> Fetch(size_t part) override {
    if (part >= parts.size()) return std::nullopt;
    return parts[part];
  }
  absl::Status Keep(size_t part, std::string bytes,
                    const ListingProgress& now) override {
    if (!status.ok()) return status;
    progress = now;
    if (bytes.empty()) return absl::OkStatus();
    EXPECT_LE(part, parts.size());
    parts.resize(part);
    parts.push_back(std::move(bytes));
    return parts.size() < most ? absl::OkStatus()
                               : absl::CancelledError("killed");
  }

  std::vector<std::string> parts;
  ListingProgress progress;
  absl::Status status;
  size_t most = SIZE_MAX;  // the listing is killed when there are so many
};

}  // namespace leat::worker
