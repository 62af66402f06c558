// SPDX-License-Identifier: Apache-2.0
//
// Top: activity, sorted. Shares of workers' and consumers' time need two
// answers, so the first table has none.
//
// Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/base/view.h"

namespace leat::cli {

struct TopOptions {
  std::string kind = "workers";  // or jobs, consumers
  std::string sort;  // a column's title, or its prefix; empty: the rate
  size_t rows = 32;  // shown
};

class Top {
 public:
  explicit Top(TopOptions options) : options_(std::move(options)) {}

  // `answer`: from the List call for the kind. kInvalidArgument: no such column
  // (names them).
  absl::StatusOr<View> Next(Json answer, absl::Time now);

 private:
  static constexpr size_t kMaxShares = 6;
  using Counts = std::array<double, kMaxShares>;  // place-seconds since the
                                                  // beginning
  struct Before {
    absl::Time at;
    Counts counts{};
  };

  // Returns per cent of the time since the last answer; "-": there was none.
  std::array<Cell, kMaxShares> Shares(const std::string& name,
                                      const Counts& counts, absl::Time now);
  Table Workers(const Json& workers, absl::Time now);
  Table Consumers(const Json& consumers, absl::Time now);

  const TopOptions options_;
  std::map<std::string, Before> before_, next_;
};

}  // namespace leat::cli
