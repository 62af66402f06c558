// SPDX-License-Identifier: Apache-2.0
#include "client/engine/link.h"

#include <utility>

#include "client/coordinator/credentials.h"
#include "core/mutex.h"
#include "core/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "rpc/call/auth.h"
#include "rpc/call/channel.h"
#include "rpc/call/client_stream.h"

namespace leat::client {
namespace {

constexpr char kRowsMethod[] = "/leat.v1.WorkerService/Rows";
// Bound on queued requests and withdrawals; each request names many rows.
constexpr size_t kMaxQueuedRequests = 4096;

using Buffer = grpc::ByteBuffer;

// TLS protects better, and data within one kernel's memory is not altered.
bool WantsChecksums(const rpc::Security& security, std::string_view address) {
  return security.ca_pem.empty() && security.cert_pem.empty() &&
         !address.starts_with("unix");
}

class Receiver : public rpc::StreamHandler<Buffer> {
 public:
  Receiver(std::weak_ptr<rpc::Stream<Buffer>> stream,
           std::shared_ptr<LinkHandler> handler, bool checksums)
      : stream_(std::move(stream)),
        handler_(std::move(handler)),
        checksums_(checksums) {}

  void OnMessage(Buffer message) override {
    if (!error_.ok()) return;
    const absl::StatusOr<rpc::RowsFrame> frame = rpc::DecodeRows(message);
    message.Clear();
    error_ = frame.ok() ? Handle(*frame) : Unreadable(frame.status());
    if (error_.ok()) return;
    if (const auto stream = stream_.lock()) stream->Cancel();
  }

  void OnClosed(const absl::Status& status) override {
    std::exchange(handler_, nullptr)->OnClosed(error_.ok() ? status : error_);
  }

 private:
  // With checksums, unreadable messages are blamed on the connection, not on
  // the worker.
  absl::Status Unreadable(const absl::Status& status) const {
    if (!checksums_ || is_first_ || absl::IsDataLoss(status)) return status;
    return DataLoss("changed on its way: {}", Message(status));
  }

  // An older worker's messages have no checksum, the first one included.
  absl::Status Handle(const rpc::RowsFrame& frame) {
    const bool has_checksum = frame.header.has_crc32c();
    if (std::exchange(is_first_, false))
      checksums_ = checksums_ && has_checksum;
    else if (checksums_ && !has_checksum)
      return DataLoss("a RowsResponse lost its checksum on its way");
    return handler_->OnRows(frame);
  }

  const std::weak_ptr<rpc::Stream<Buffer>> stream_;
  std::shared_ptr<LinkHandler> handler_;
  bool checksums_;  // required in each message
  bool is_first_ = true;
  absl::Status error_;  // the worker or the connection broke the protocol
};

class GrpcLink : public Link {
 public:
  GrpcLink(std::shared_ptr<rpc::Stream<Buffer>> stream, bool checksums)
      : stream_(std::move(stream)), checksums_(checksums) {}
  absl::Status Send(const v1::RowsRequest& request) override {
    if (!checksums_) return stream_->Send(rpc::EncodeMessage(request));
    if (!request.has_open()) return stream_->Send(rpc::EncodeChecked(request));
    v1::RowsRequest open = request;
    open.mutable_open()->set_checksums(true);
    return stream_->Send(rpc::EncodeChecked(open));
  }
  void Cancel() override { stream_->Cancel(); }

 private:
  const std::shared_ptr<rpc::Stream<Buffer>> stream_;
  const bool checksums_;
};

// The objects that a stream needs while it lives.
struct StreamChannel {
  explicit StreamChannel(std::shared_ptr<grpc::Channel> its_channel)
      : channel(std::move(its_channel)), stub(channel) {}
  const std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
};

}  // namespace

LinkFactory GrpcLinks(std::shared_ptr<const Credentials> credentials) {
  return [credentials = std::move(credentials)](
             const std::string& address, std::shared_ptr<LinkHandler> handler) {
    const rpc::Security security = credentials->Now();
    auto connection =
        std::make_shared<StreamChannel>(rpc::MakeChannel(address, security));
    const auto bind = [&connection](grpc::ClientContext* context,
                                    grpc::CompletionQueue* queue) {
      return connection->stub.PrepareCall(context, kRowsMethod, queue);
    };
    const bool checksums = WantsChecksums(security, address);
    const auto make = [&](const std::shared_ptr<rpc::Stream<Buffer>>& stream) {
      return std::make_shared<Receiver>(stream, handler, checksums);
    };
    return std::make_shared<GrpcLink>(
        rpc::ClientStream<Buffer, Buffer>::Start(security, kMaxQueuedRequests,
                                                 bind, make, connection),
        checksums);
  };
}

}  // namespace leat::client
