// SPDX-License-Identifier: Apache-2.0
//
// Reads workers' reports about listings and looks, and consumers' reports about
// workers.
#include <algorithm>
#include <string>
#include <vector>

#include "core/status.h"
#include "rpc/wire/block_messages.h"
#include "rpc/wire/messages.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

constexpr int kMaxClasses = 1'000'000;

std::vector<std::string> ChangesOf(
    const google::protobuf::RepeatedPtrField<std::string>& protos) {
  constexpr int kMaxChanges = 8;
  std::vector<std::string> changes;
  for (int i = 0; i < std::min(protos.size(), kMaxChanges); ++i)
    changes.push_back(Cut(protos[i]));
  return changes;
}

std::vector<PassedOver> PassedOverOf(
    const google::protobuf::RepeatedPtrField<v1::PassedOver>& protos) {
  std::vector<PassedOver> passed_over;
  for (const v1::PassedOver& proto : protos)
    if (passed_over.size() < kMaxPassedOver)
      passed_over.push_back(
          {Cut(proto.what()), proto.count(), Cut(proto.first())});
  return passed_over;
}

}  // namespace

absl::StatusOr<IndexHeader> FromProto(const v1::IndexHeader& proto) {
  IndexHeader header;
  header.dataset_id = proto.dataset_id();
  header.request_id = proto.request_id();
  ASSIGN_OR_RETURN(header.fingerprint,
                   DigestOf("fingerprint", proto.fingerprint()));
  if (!proto.content().empty()) {
    ASSIGN_OR_RETURN(header.content, DigestOf("content", proto.content()));
  }
  ASSIGN_OR_RETURN(header.shards, rpc::FromProto(proto.shards()));
  header.bytes = proto.bytes();
  if (proto.classes_size() > kMaxClasses)
    return InvalidArgument("{} classes: want at most {}", proto.classes_size(),
                           kMaxClasses);
  header.classes.assign(proto.classes().begin(), proto.classes().end());
  ASSIGN_OR_RETURN(header.types, rpc::FromProto(proto.types()));
  ASSIGN_OR_RETURN(header.groups, rpc::GroupsFrom(proto.groups(),
                                                  header.shards.num_samples()));
  header.index_bytes = proto.index_bytes();
  ASSIGN_OR_RETURN(header.index_sha256,
                   DigestOf("index_sha256", proto.index_sha256()));
  header.name = Cut(proto.name());
  ASSIGN_OR_RETURN(header.blocks, rpc::BlocksFrom(proto.blocks()));
  if (proto.has_look()) {
    ASSIGN_OR_RETURN(header.look, rpc::FromProto(proto.look()));
  }
  header.changes = ChangesOf(proto.changes());
  header.passed_over = PassedOverOf(proto.passed_over());
  return header;
}

DatasetLooked FromProto(const v1::IndexLooked& proto) {
  return {.reader_id = proto.dataset_id(),
          .request_id = proto.request_id(),
          .entries = proto.entries(),
          .total = proto.total(),
          .changes = ChangesOf(proto.changes()),
          .lists = proto.lists()};
}

absl::StatusOr<IndexProgress> FromProto(const v1::IndexProgress& proto) {
  IndexProgress progress{.dataset_id = proto.dataset_id(),
                         .request_id = proto.request_id(),
                         .walked = proto.walked(),
                         .total = proto.total(),
                         .part = proto.part()};
  if (proto.has_trail()) {
    ASSIGN_OR_RETURN(progress.trail, rpc::FromProto(proto.trail()));
  }
  return progress;
}

std::vector<UnreachedWorker> FromProto(const v1::UnreachedWorkers& proto) {
  constexpr int kMostWorkers = 8;
  std::vector<UnreachedWorker> workers;
  for (int i = 0; i < std::min(proto.workers_size(), kMostWorkers); ++i)
    workers.push_back(
        {Cut(proto.workers(i).worker()), Cut(proto.workers(i).why())});
  return workers;
}

}  // namespace leat::server
