// SPDX-License-Identifier: Apache-2.0
#include "server/membership/ability_gap.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "server/state/decoders.h"

namespace leat::server {

std::string AbilityGap::Names() const {
  std::string names = fmt::format("\"{}\"", fmt::join(missing, "\" and \""));
  if (apart) names += " together";
  return names;
}

std::string AbilityGap::Remedy() const {
  return fmt::format("{}; leat describe worker NAME says what one has",
                     HowToHave(missing.front()));
}

std::optional<AbilityGap> GapOf(const Membership& membership,
                                DecoderClass decoder_class,
                                const Abilities& needed,
                                const std::optional<Digest>& decoders) {
  if (needed.empty()) return std::nullopt;
  std::set<std::string> had;
  for (const auto& [name, worker] : membership.workers()) {
    const WorkerRegistration& own = *worker.registration;
    if (worker.state() != WorkerState::kReady || !own.Has(decoder_class) ||
        (decoders && !DecodesAs(own, decoder_class, *decoders)))
      continue;
    if (HasAll(own.abilities, needed)) return std::nullopt;
    had.insert(own.abilities.begin(), own.abilities.end());
  }
  AbilityGap gap;
  std::ranges::set_difference(needed, had, std::back_inserter(gap.missing));
  if (gap.missing.empty()) {
    gap.missing = needed;
    gap.apart = true;
  }
  for (const auto& [name, worker] : membership.workers()) {
    const auto& lacked = worker.registration->lacked;
    const auto said = lacked.find(gap.missing.front());
    if (worker.state() != WorkerState::kReady || said == lacked.end()) continue;
    gap.why = fmt::format("worker {}: {}", name, said->second);
    break;
  }
  return gap;
}

}  // namespace leat::server
