// SPDX-License-Identifier: Apache-2.0
#include "server/state/dataset_records.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/status.h"

namespace leat::server {
namespace {

void Fill(const IndexBlock& block, stored::v1::StoredIndexBlock* to) {
  to->set_sha256(BytesOf(block.sha256));
  to->set_bytes(block.bytes);
  to->set_samples(block.samples);
}

using StoredPassedOvers =
    google::protobuf::RepeatedPtrField<stored::v1::StoredPassedOver>;

void Fill(const std::vector<PassedOver>& passed_over, StoredPassedOvers* to) {
  for (const PassedOver& each : passed_over) {
    stored::v1::StoredPassedOver* stored = to->Add();
    stored->set_what(each.what);
    stored->set_count(each.count);
    stored->set_first(each.first);
  }
}

void Fill(const std::vector<Group>& groups,
          google::protobuf::RepeatedPtrField<stored::v1::StoredGroup>* to) {
  for (const Group& group : groups) {
    stored::v1::StoredGroup* stored = to->Add();
    stored->set_name(group.name);
    stored->set_samples(group.samples);
    stored->set_weight(group.weight);
  }
}

absl::StatusOr<IndexBlock> Decode(const stored::v1::StoredIndexBlock& from) {
  IndexBlock block;
  ASSIGN_OR_RETURN(block.sha256, DigestOf("a block's hash", from.sha256(),
                                          absl::StatusCode::kDataLoss));
  block.bytes = from.bytes();
  block.samples = from.samples();
  return block;
}

std::vector<PassedOver> Decode(const StoredPassedOvers& from) {
  std::vector<PassedOver> passed_over;
  for (const stored::v1::StoredPassedOver& each : from)
    passed_over.push_back({each.what(), each.count(), each.first()});
  return passed_over;
}

absl::StatusOr<ShardTable> Decode(const stored::v1::StoredShards& from) {
  if (from.sizes().empty())
    return ShardTable::Uniform(from.num_samples(), from.shard_size());
  return ShardTable::FromSizes(
      std::vector<uint64_t>(from.sizes().begin(), from.sizes().end()));
}

absl::StatusOr<ValueType> Decode(const stored::v1::StoredType& from) {
  const auto first = static_cast<uint32_t>(kFirstDType),
             last = static_cast<uint32_t>(kLastDType);
  if (from.dtype() < first || from.dtype() > last)
    return DataLoss("a dataset's dtype {}: want {} to {}", from.dtype(), first,
                    last);
  return ValueType{
      from.encoded() ? ValueType::Kind::kEncoded : ValueType::Kind::kTensor,
      static_cast<DType>(from.dtype()),
      {from.shape().begin(), from.shape().end()}};
}

std::vector<Group> Decode(
    const google::protobuf::RepeatedPtrField<stored::v1::StoredGroup>& from) {
  std::vector<Group> groups;
  for (const stored::v1::StoredGroup& group : from)
    groups.push_back({group.name(), group.samples(), group.weight()});
  return groups;
}

}  // namespace

void ToStored(const DatasetIndexed& indexed, stored::v1::DatasetIndexed* to) {
  const DatasetInfo& info = indexed.dataset;
  to->set_id(info.id);
  to->set_name(info.name);
  to->set_reader(info.reader);
  to->set_fingerprint(BytesOf(info.fingerprint));
  if (info.content != Digest{}) to->set_content(BytesOf(info.content));
  stored::v1::StoredShards* shards = to->mutable_shards();
  shards->set_num_samples(info.shards.num_samples());
  if (info.shards.uniform()) {
    shards->set_shard_size(info.shards.shard_size());
  } else {
    for (uint32_t i = 0; i < info.shards.num_shards(); ++i)
      shards->add_sizes(info.shards.range(i).size());
  }
  to->set_bytes(info.bytes);
  to->mutable_classes()->Assign(info.classes.begin(), info.classes.end());
  for (const ValueType& type : info.types) {
    stored::v1::StoredType* stored = to->add_types();
    stored->set_encoded(type.kind == ValueType::Kind::kEncoded);
    stored->set_dtype(static_cast<uint32_t>(type.dtype));
    stored->mutable_shape()->Add(type.shape.begin(), type.shape.end());
  }
  Fill(info.groups, to->mutable_groups());
  to->set_index_bytes(indexed.index_bytes);
  to->set_index_sha256(BytesOf(indexed.index_sha256));
  if (indexed.look) Fill(*indexed.look, to->mutable_look());
  Fill(indexed.passed_over, to->mutable_passed_over());
  to->set_base_id(indexed.base_id);
  to->set_arrangement(info.arrangement);
  for (const IndexBlock& block : *indexed.blocks) Fill(block, to->add_blocks());
}

void ToStored(const DatasetListedAgain& again,
              stored::v1::DatasetListedAgain* to) {
  to->set_id(again.id);
  if (again.look) Fill(*again.look, to->mutable_look());
  Fill(again.passed_over, to->mutable_passed_over());
}

absl::StatusOr<DatasetListedAgain> FromStored(
    const stored::v1::DatasetListedAgain& from) {
  DatasetListedAgain again{.id = from.id(),
                           .look = std::nullopt,
                           .passed_over = Decode(from.passed_over())};
  if (from.has_look()) {
    ASSIGN_OR_RETURN(again.look, Decode(from.look()));
  }
  return again;
}

absl::StatusOr<DatasetIndexed> FromStored(
    const stored::v1::DatasetIndexed& from) {
  DatasetIndexed indexed;
  DatasetInfo& info = indexed.dataset;
  info.id = from.id();
  info.name = from.name();
  info.reader = from.reader();
  ASSIGN_OR_RETURN(info.fingerprint,
                   DigestOf("a fingerprint", from.fingerprint(),
                            absl::StatusCode::kDataLoss));
  if (!from.content().empty()) {
    ASSIGN_OR_RETURN(info.content, DigestOf("a content's hash", from.content(),
                                            absl::StatusCode::kDataLoss));
  }
  ASSIGN_OR_RETURN(info.shards, Decode(from.shards()));
  info.bytes = from.bytes();
  info.classes.assign(from.classes().begin(), from.classes().end());
  for (const stored::v1::StoredType& type : from.types()) {
    ASSIGN_OR_RETURN(info.types.emplace_back(), Decode(type));
  }
  info.groups = Decode(from.groups());
  indexed.index_bytes = from.index_bytes();
  ASSIGN_OR_RETURN(indexed.index_sha256,
                   DigestOf("an index's hash", from.index_sha256(),
                            absl::StatusCode::kDataLoss));
  if (from.has_look()) {
    ASSIGN_OR_RETURN(indexed.look, Decode(from.look()));
  }
  indexed.passed_over = Decode(from.passed_over());
  indexed.base_id = from.base_id();
  info.arrangement = from.arrangement();
  std::vector<IndexBlock> blocks(static_cast<size_t>(from.blocks_size()));
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSIGN_OR_RETURN(blocks[i], Decode(from.blocks(static_cast<int>(i))));
  }
  indexed.blocks =
      std::make_shared<const std::vector<IndexBlock>>(std::move(blocks));
  return indexed;
}

}  // namespace leat::server
