// SPDX-License-Identifier: Apache-2.0
#include "server/views/messages.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "rpc/call/auth.h"
#include "rpc/wire/block_messages.h"
#include "rpc/wire/messages.h"
#include "rpc/wire/times.h"
#include "server/membership/assignments.h"
#include "server/membership/kept_shares.h"

namespace leat::server {
namespace {

void Fill(const AccessTokens& from, v1::KnownAccessTokens* to) {
  to->set_instance(from.instance);
  to->set_version(from.version);
  for (const AccessToken& token : from.tokens) {
    v1::KnownAccessToken* proto = to->add_tokens();
    proto->set_id(token.id);
    proto->set_name(token.name);
    proto->set_role(std::string(Name(token.role)));
    proto->set_sha256(token.sha256.data(), token.sha256.size());
    if (token.expires_at)
      *proto->mutable_expires_at() = rpc::ToProto(*token.expires_at);
  }
}

struct MessageToProto {
  v1::WorkerSessionResponse* out;
  void operator()(const Welcome& welcome) const {
    v1::Welcome* proto = out->mutable_welcome();
    proto->set_coordinator_version(std::string(rpc::kLeatVersion));
    *proto->mutable_heartbeat_interval() =
        rpc::ToProto(welcome.heartbeat_interval);
    proto->set_sequence(welcome.sequence);
    if (welcome.access_tokens != nullptr)
      Fill(*welcome.access_tokens, proto->mutable_access_tokens());
  }
  void operator()(const IndexDirective& directive) const {
    v1::IndexDataset* proto = out->mutable_index_dataset();
    proto->set_dataset_id(directive.dataset_id);
    proto->set_request_id(directive.request_id);
    *proto->mutable_reader() = rpc::ToProto(directive.reader);
    proto->set_max_index_bytes(directive.max_index_bytes);
    proto->set_index_block_bytes(directive.index_block_bytes);
    if (directive.look) *proto->mutable_look() = rpc::ToProto(*directive.look);
    proto->set_look_only(directive.look_only);
    for (const IndexBlock& part : directive.trail)
      *proto->add_trail() = rpc::ToProto(part);
    if (directive.base == nullptr) return;
    *proto->mutable_arrangement() = rpc::ToProto(directive.arrangement);
    if (directive.arrangement.pack)
      *proto->mutable_packing() = rpc::ToProto(*directive.arrangement.pack);
    *proto->mutable_base() = rpc::ToProto(*directive.base);
  }
  void operator()(const LogLevelDirective& directive) const {
    out->set_log_level(directive.level);
  }
  void operator()(const std::shared_ptr<const AccessTokens>& tokens) const {
    Fill(*tokens, out->mutable_access_tokens());
  }
  void operator()(const ReportNow& report) const {
    out->mutable_report_now()->set_number(report.number);
  }
  void operator()(const OwnedShards& owned) const {
    v1::OwnedShards* proto = out->mutable_owned_shards();
    proto->set_dataset_id(owned.dataset_id);
    proto->set_num_shards(owned.num_shards);
    proto->set_owned(owned.Bits());
    const Assignment* table = nullptr;
    for (const auto& [peer, shards] : owned.Peers(&table)) {
      v1::ShardsOfPeer* of = proto->add_peers();
      *of->mutable_peer() = ToProto(table->workers[peer]);
      of->mutable_shards()->Assign(shards.begin(), shards.end());
      if (owned.kept == nullptr) continue;
      if (const std::optional<double> share =
              owned.kept->Of(owned.dataset_id, table->workers[peer].name))
        of->set_kept_share(*share);
    }
  }
};

}  // namespace

// Valid UTF-8 stays valid: the text is cut before a lead byte.
std::string Cut(const std::string& text) {
  if (text.size() <= kMaxText) return text;
  size_t end = kMaxText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end);
}

v1::Decoders ToProto(const Decoders& decoders) {
  v1::Decoders proto;
  proto.set_decoder_class(
      static_cast<v1::DecoderClass>(decoders.decoder_class));
  proto.set_digest(decoders.digest.data(), decoders.digest.size());
  proto.set_libraries(decoders.libraries);
  return proto;
}

v1::WorkerSessionResponse ToProto(const WorkerMessage& message) {
  v1::WorkerSessionResponse proto;
  std::visit(MessageToProto{&proto}, message);
  return proto;
}

}  // namespace leat::server
