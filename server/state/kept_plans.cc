// SPDX-License-Identifier: Apache-2.0
#include "server/state/kept_plans.h"

#include <tuple>

namespace leat::server {
namespace {

const std::set<Digest> kNoPlans;

}  // namespace

void KeptPlans::Came(const Digest& plan_hash, DecoderClass decoder_class) {
  const auto pinned = pinned_.find(plan_hash);
  if (pinned == pinned_.end()) {
    unpinned_[decoder_class].insert(plan_hash);
    return;
  }
  unpinned_[decoder_class].erase(plan_hash);
  const Pinned& at = pinned->second;
  DecoderGroup& group = groups_[{decoder_class, at.digest}];
  group.decoders = {decoder_class, at.digest, at.libraries};
  ++group.plans;
}

void KeptPlans::Went(const Digest& plan_hash, DecoderClass decoder_class) {
  unpinned_[decoder_class].erase(plan_hash);
  const auto pinned = pinned_.find(plan_hash);
  if (pinned == pinned_.end()) return;
  const auto group = groups_.find({decoder_class, pinned->second.digest});
  if (--group->second.plans == 0) groups_.erase(group);
  pinned_.erase(pinned);
}

void KeptPlans::Apply(WallTime at, const DecodersPinned& pinned, bool keep,
                      const ClassOf& class_of) {
  for (const Digest& plan : pinned.plans) {
    const std::optional<DecoderClass> decoder_class = class_of(plan);
    if ((!decoder_class && !keep) || pinned_.contains(plan)) continue;
    pinned_[plan] = {pinned.digest, pinned.libraries, at};
    if (decoder_class) Came(plan, *decoder_class);
  }
}

void KeptPlans::AddEvents(std::vector<Event>* events) const {
  std::map<std::tuple<WallTime, Digest, std::string>, DecodersPinned> pinned;
  for (const auto& [plan, at] : pinned_) {
    DecodersPinned& event = pinned[{at.at, at.digest, at.libraries}];
    event.digest = at.digest;
    event.libraries = at.libraries;
    event.plans.push_back(plan);
  }
  for (auto& [key, event] : pinned)
    events->push_back({std::get<WallTime>(key), std::move(event)});
}

std::optional<Decoders> KeptPlans::Of(const Digest& plan_hash,
                                      DecoderClass decoder_class) const {
  const auto pinned = pinned_.find(plan_hash);
  if (pinned == pinned_.end()) return std::nullopt;
  return Decoders{decoder_class, pinned->second.digest,
                  pinned->second.libraries};
}

const std::set<Digest>& KeptPlans::Unpinned(DecoderClass decoder_class) const {
  const auto it = unpinned_.find(decoder_class);
  return it == unpinned_.end() ? kNoPlans : it->second;
}

std::vector<DecoderGroup> KeptPlans::Groups() const {
  std::vector<DecoderGroup> groups;
  for (const auto& [key, group] : groups_) groups.push_back(group);
  return groups;
}

}  // namespace leat::server
