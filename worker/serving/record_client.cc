// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/record_client.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "core/crc32c.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/access/worker_key.h"
#include "rpc/call/channel.h"
#include "rpc/call/grpc_status.h"
#include "worker/serving/records_service.h"

namespace leat::worker {
namespace {

// A record, its form, and the message around them.
constexpr int kMaxAnswerBytes = kMaxRecordBytes + (1 << 20);

absl::Status CheckAnswer(const Peer& peer, const v1::GetRecordRequest& request,
                         const v1::GetRecordResponse& answer) {
  const uint32_t crc = ExtendCrc32c(Crc32c(answer.record()),
                                    std::as_bytes(std::span(answer.form())));
  if (crc != answer.crc32c())
    return DataLoss("the record does not fit its checksum");
  return peer.public_key.empty()
             ? absl::OkStatus()
             : rpc::CheckProof(peer.public_key, request, answer);
}

std::vector<std::byte> BytesOf(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void Warn(std::string_view what, const Peer& peer, const absl::Status& why) {
  LOG_WARN("record.{} peer={} address={} error=\"{}\"", what, peer.name,
           peer.address, Message(why));
}

}  // namespace

struct RecordClient::Connection {
  Connection(const std::string& address, rpc::Security its_security)
      : security(std::move(its_security)),
        stub(v1::RecordsService::NewStub(
            rpc::MakeChannel(address, security, kMaxAnswerBytes))) {}

  const rpc::Security security;
  const std::unique_ptr<v1::RecordsService::Stub> stub;
  // Guarded by the client's lock.
  MonotonicTime not_before{};
  Duration pause = kFirstPause;
};

RecordClient::RecordClient(rpc::Security security, const Clock& clock)
    : clock_(clock), security_(std::move(security)) {}
RecordClient::~RecordClient() = default;

absl::StatusOr<std::shared_ptr<RecordClient::Connection>> RecordClient::Connect(
    const Peer& peer) {
  std::shared_ptr<Connection> left_out;  // destroyed without the lock
  MutexLock lock(&mu_);
  if (calls_.stopped()) return Cancelled("the worker stops");
  if (calls_.size() >= kMaxCalls)
    return Unavailable("{} records are being asked for: the limit", kMaxCalls);
  if (const auto it = connections_.find(peer.address);
      it != connections_.end()) {
    if (clock_.Now() < it->second->not_before)
      return Unavailable("{} did not answer a moment ago", peer.name);
    return it->second;
  }
  if (connections_.size() >= kMaxConnections) {
    const auto any = connections_.begin();
    left_out = std::move(any->second);
    connections_.erase(any);
  }
  return connections_
      .emplace(peer.address,
               std::make_shared<Connection>(peer.address, security_))
      .first->second;
}

absl::StatusOr<PackedRecord> RecordClient::Ask(const Peer& peer,
                                               const Digest& dataset,
                                               uint64_t record,
                                               uint16_t form_version,
                                               Duration timeout) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection, Connect(peer));
  v1::GetRecordRequest request;
  request.set_dataset(dataset.data(), dataset.size());
  request.set_record(record);
  request.set_form_version(form_version);
  ASSIGN_OR_RETURN(*request.mutable_nonce(), rpc::MakeNonce());
  v1::GetRecordResponse answer;
  absl::Status status;
  {
    rpc::CallSet::Call call(&calls_, connection->security, timeout);
    status = rpc::FromGrpc(
        connection->stub->GetRecord(&call.context, request, &answer));
  }
  if (status.ok()) {
    status = CheckAnswer(peer, request, answer);
    ++(status.ok() ? found_ : refused_);
    if (!status.ok()) Warn("refused", peer, status);
  } else if (absl::IsNotFound(status)) {
    ++missing_;
  } else {
    ++failed_;
    if (!absl::IsCancelled(status)) Warn("unanswered", peer, status);
  }
  Ended(connection.get(), status);
  RETURN_IF_ERROR(status);
  return PackedRecord{.record = BytesOf(answer.record()),
                      .form = BytesOf(answer.form()),
                      .form_kind = answer.form_kind()};
}

void RecordClient::Refuse(const Peer& peer) {
  const absl::Status why = DataLoss("it is not what was asked for");
  ++refused_;
  Warn("refused", peer, why);
  std::shared_ptr<Connection> connection;
  {
    MutexLock lock(&mu_);
    const auto it = connections_.find(peer.address);
    if (it != connections_.end()) connection = it->second;
  }
  if (connection != nullptr) Ended(connection.get(), why);
}

void RecordClient::Ended(Connection* connection, const absl::Status& status) {
  MutexLock lock(&mu_);
  if (status.ok() || absl::IsNotFound(status)) {
    connection->pause = kFirstPause;
    return;
  }
  const MonotonicTime now = clock_.Now();
  if (now < connection->not_before) return;  // another call has counted
  connection->not_before = now + connection->pause;
  connection->pause = std::min(2 * connection->pause, kMostPause);
}

void RecordClient::ReplaceSecurity(rpc::Security security) {
  decltype(connections_) connections;  // destroyed without the lock
  MutexLock lock(&mu_);
  security_ = std::move(security);
  std::swap(connections, connections_);
}

void RecordClient::Stop() { calls_.Stop(); }

RecordClient::Counters RecordClient::counters() const {
  return {.found = found_,
          .missing = missing_,
          .failed = failed_,
          .refused = refused_};
}

}  // namespace leat::worker
