// SPDX-License-Identifier: Apache-2.0
//
// Converts a dataset's groups to and from their stored form, for records.cc.
#pragma once

#include <vector>

#include "core/plan/selection.h"
#include "leat/stored/v1/records.pb.h"

namespace leat::server {

using StoredGroups =
    google::protobuf::RepeatedPtrField<stored::v1::StoredGroup>;

inline void FillGroups(const std::vector<Group>& groups, StoredGroups* to) {
  for (const Group& group : groups) {
    stored::v1::StoredGroup* stored = to->Add();
    stored->set_name(group.name);
    stored->set_samples(group.samples);
  }
}

inline std::vector<Group> GroupsOf(const StoredGroups& from) {
  std::vector<Group> groups;
  for (const stored::v1::StoredGroup& group : from)
    groups.push_back({group.name(), group.samples()});
  return groups;
}

}  // namespace leat::server
