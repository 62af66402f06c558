// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/selection_messages.h"

#include <algorithm>
#include <cstdint>

#include "core/plan/shard_table.h"
#include "core/status.h"

namespace leat::rpc {

v1::Selection ToProto(const Arrangement& arrangement) {
  v1::Selection proto;
  proto.set_where(arrangement.where);
  proto.set_balanced(arrangement.by_class);
  proto.set_by(arrangement.by);
  if (const SampleWeights& weights = arrangement.weights; IsSet(weights)) {
    v1::SampleWeights* out = proto.mutable_weights();
    out->mutable_list()->Add(weights.list.begin(), weights.list.end());
    out->set_uri(weights.uri);
  }
  const Numbers& samples = arrangement.samples;
  if (!IsSet(samples)) return proto;
  v1::Numbers* numbers = proto.mutable_samples();
  numbers->set_uri(samples.uri);
  numbers->set_begin(samples.begin);
  numbers->set_end(samples.end);
  numbers->set_step(samples.step);
  uint64_t before = 0;
  for (const uint64_t number : samples.list) {
    numbers->add_gaps(static_cast<int64_t>(number - before));
    before = number;
  }
  return proto;
}

v1::Selection ToProto(const Selection& selection) {
  v1::Selection proto = ToProto(selection.arrangement);
  proto.set_balanced(selection.balanced);
  for (const GroupShare& share : selection.shares) {
    v1::GroupShare* out = proto.add_shares();
    out->set_name(share.name);
    out->set_share(share.share);
  }
  return proto;
}

v1::Packing ToProto(const PackNode& pack) {
  v1::Packing proto;
  proto.set_fit(pack.packing.how == PackHow::kFit);
  proto.set_length(pack.packing.length);
  proto.set_overlap(pack.packing.overlap);
  proto.set_longer(static_cast<v1::Packing::Longer>(pack.packing.longer));
  proto.set_max_documents(pack.packing.max_documents);
  for (const uint32_t output : pack.outputs) proto.add_outputs(output);
  for (const double fill : pack.fill_values) proto.add_fill_values(fill);
  return proto;
}

absl::StatusOr<PackNode> FromProto(const v1::Packing& proto) {
  PackNode pack{
      .packing = {.how = proto.fit() ? PackHow::kFit : PackHow::kCut,
                  .length = proto.length(),
                  .overlap = proto.overlap(),
                  .longer = static_cast<PackLonger>(
                      std::clamp<int>(proto.longer(), 0, UINT8_MAX)),
                  .max_documents = proto.max_documents()},
      .outputs = {proto.outputs().begin(), proto.outputs().end()},
      .fill_values = {proto.fill_values().begin(), proto.fill_values().end()}};
  RETURN_IF_ERROR(CheckPackNode(pack));
  return pack;
}

void SetGroups(const std::vector<Group>& groups,
               google::protobuf::RepeatedPtrField<v1::Group>* protos) {
  protos->Reserve(static_cast<int>(groups.size()));
  for (const Group& group : groups) {
    v1::Group* out = protos->Add();
    out->set_name(group.name);
    out->set_samples(group.samples);
    out->set_weight(group.weight);
  }
}

absl::StatusOr<Arrangement> ArrangementFrom(const v1::Selection& proto) {
  const v1::Numbers& numbers = proto.samples();
  if (numbers.gaps_size() > static_cast<int>(kMaxListedNumbers))
    return InvalidArgument(
        "samples: a list of {}: want at most {}, a range, or a .npy file",
        numbers.gaps_size(), kMaxListedNumbers);
  Arrangement arrangement{.samples = {.list = {},
                                      .uri = numbers.uri(),
                                      .begin = numbers.begin(),
                                      .end = numbers.end(),
                                      .step = numbers.step()},
                          .where = proto.where(),
                          .by = proto.by(),
                          .weights = {.list = {proto.weights().list().begin(),
                                               proto.weights().list().end()},
                                      .uri = proto.weights().uri()}};
  uint64_t number = 0;
  for (const int64_t gap : numbers.gaps()) {
    number += static_cast<uint64_t>(gap);
    if (number >= kMaxSamples)
      return InvalidArgument("samples has {}: want numbers below {}", number,
                             kMaxSamples);
    arrangement.samples.list.push_back(number);
  }
  // The groups of the dataset are runs of all its samples, and need no
  // arrangement by themselves.
  const bool of_groups = proto.balanced() || proto.shares_size() > 0;
  arrangement.by_class =
      of_groups && Chooses(arrangement) && !IsGrouped(arrangement);
  // Texts and hashes of what comes from here need a condition that is one.
  RETURN_IF_ERROR(CheckArrangement(arrangement));
  return arrangement;
}

absl::StatusOr<Selection> FromProto(const v1::Selection& proto) {
  if (proto.shares_size() > static_cast<int>(kMaxGroups))
    return InvalidArgument("weights has {} groups: want at most {}",
                           proto.shares_size(), kMaxGroups);
  Selection selection{
      .arrangement = {}, .balanced = proto.balanced(), .shares = {}};
  ASSIGN_OR_RETURN(selection.arrangement, ArrangementFrom(proto));
  for (const v1::GroupShare& share : proto.shares())
    selection.shares.push_back({share.name(), share.share()});
  return selection;
}

absl::StatusOr<std::vector<Group>> GroupsFrom(
    const google::protobuf::RepeatedPtrField<v1::Group>& protos,
    uint64_t samples) {
  if (protos.size() > static_cast<int>(kMaxGroups))
    return InvalidArgument("{} groups: want at most {}", protos.size(),
                           kMaxGroups);
  std::vector<Group> groups;
  groups.reserve(protos.size());
  uint64_t sum = 0;
  for (const v1::Group& proto : protos) {
    groups.push_back({proto.name(), proto.samples(), proto.weight()});
    // Numbers that are too large do not overflow the sum: they exceed it.
    if (proto.samples() > samples - sum)
      return InvalidArgument(
          "groups have more than the dataset's {} samples: group \"{}\" has "
          "{} behind {}",
          samples, proto.name(), proto.samples(), sum);
    sum += proto.samples();
  }
  if (!groups.empty() && sum != samples)
    return InvalidArgument("groups have {} samples, the dataset {}", sum,
                           samples);
  return groups;
}

}  // namespace leat::rpc
