// SPDX-License-Identifier: Apache-2.0
#include "server/state/kept_plans.h"

#include <tuple>

namespace leat::server {
namespace {

const std::set<Digest> kNoPlans;

}  // namespace

void KeptPlans::Came(const Digest& plan_hash, DecoderClass decoder_class) {
  const auto settled = settled_.find(plan_hash);
  if (settled == settled_.end()) {
    unsettled_[decoder_class].insert(plan_hash);
    return;
  }
  unsettled_[decoder_class].erase(plan_hash);
  const Settled& at = settled->second;
  DecoderGroup& group = groups_[{decoder_class, at.digest}];
  group.decoders = {decoder_class, at.digest, at.libraries};
  ++group.plans;
}

void KeptPlans::Went(const Digest& plan_hash, DecoderClass decoder_class) {
  unsettled_[decoder_class].erase(plan_hash);
  const auto settled = settled_.find(plan_hash);
  if (settled == settled_.end()) return;
  const auto group = groups_.find({decoder_class, settled->second.digest});
  if (--group->second.plans == 0) groups_.erase(group);
  settled_.erase(settled);
}

void KeptPlans::Apply(WallTime at, const DecodersSettled& settled, bool keep,
                      const ClassOf& class_of) {
  for (const Digest& plan : settled.plans) {
    const std::optional<DecoderClass> decoder_class = class_of(plan);
    if ((!decoder_class && !keep) || settled_.contains(plan)) continue;
    settled_[plan] = {settled.digest, settled.libraries, at};
    if (decoder_class) Came(plan, *decoder_class);
  }
}

void KeptPlans::AddEvents(std::vector<Event>* events) const {
  std::map<std::tuple<WallTime, Digest, std::string>, DecodersSettled> settled;
  for (const auto& [plan, at] : settled_) {
    DecodersSettled& event = settled[{at.at, at.digest, at.libraries}];
    event.digest = at.digest;
    event.libraries = at.libraries;
    event.plans.push_back(plan);
  }
  for (auto& [key, event] : settled)
    events->push_back({std::get<WallTime>(key), std::move(event)});
}

std::optional<Decoders> KeptPlans::Of(const Digest& plan_hash,
                                      DecoderClass decoder_class) const {
  const auto settled = settled_.find(plan_hash);
  if (settled == settled_.end()) return std::nullopt;
  return Decoders{decoder_class, settled->second.digest,
                  settled->second.libraries};
}

const std::set<Digest>& KeptPlans::Unsettled(DecoderClass decoder_class) const {
  const auto it = unsettled_.find(decoder_class);
  return it == unsettled_.end() ? kNoPlans : it->second;
}

std::vector<DecoderGroup> KeptPlans::Groups() const {
  std::vector<DecoderGroup> groups;
  for (const auto& [key, group] : groups_) groups.push_back(group);
  return groups;
}

}  // namespace leat::server
