// SPDX-License-Identifier: Apache-2.0
//
// AbilityGap: what the READY workers lack of what a job needs
// (core/plan/abilities.h).
#pragma once

#include <optional>
#include <string>

#include "core/hash.h"
#include "core/plan/abilities.h"
#include "server/membership/membership.h"

namespace leat::server {

struct AbilityGap {
  Abilities missing;   // that no worker has; all, if each is had by some
  bool apart = false;  // some worker has each of them, and none has all
  // Why a worker lacks the first, as it says itself: "worker a: no file …".
  // Empty: none says so.
  std::string why;

  // For people: `"parquet"`, or `"parquet" and "b" together`.
  std::string Names() const;
  std::string Remedy() const;
};

// Returns nullopt if a READY worker of the class has all that is needed.
// `decoders`: only workers that decode like that count, as for a plan that began
// with them. O(workers) otherwise, and usually O(1). REQUIRES: some such worker
// is READY.
std::optional<AbilityGap> GapOf(const Membership& membership,
                                DecoderClass decoder_class,
                                const Abilities& needed,
                                const std::optional<Digest>& decoders = {});

}  // namespace leat::server
