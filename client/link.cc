// SPDX-License-Identifier: Apache-2.0
#include "client/link.h"

#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "rpc/auth.h"
#include "rpc/channel.h"
#include "rpc/client_stream.h"

namespace leat::client {
namespace {

constexpr char kRowsMethod[] = "/leat.v1.WorkerService/Rows";
// Asks and withdrawals that wait; each ask is of many rows.
constexpr size_t kMaxQueuedRequests = 4096;

using Buffer = grpc::ByteBuffer;

class Receiver : public rpc::StreamHandler<Buffer> {
 public:
  Receiver(std::weak_ptr<rpc::Stream<Buffer>> stream,
           std::shared_ptr<LinkHandler> handler)
      : stream_(std::move(stream)), handler_(std::move(handler)) {}

  void OnMessage(Buffer message) override {
    if (!error_.ok()) return;
    const absl::StatusOr<rpc::RowsFrame> frame = rpc::DecodeRows(message);
    message.Clear();
    error_ = frame.ok() ? handler_->OnRows(*frame) : frame.status();
    if (error_.ok()) return;
    if (const auto stream = stream_.lock()) stream->Cancel();
  }

  void OnClosed(const absl::Status& status) override {
    std::exchange(handler_, nullptr)->OnClosed(error_.ok() ? status : error_);
  }

 private:
  const std::weak_ptr<rpc::Stream<Buffer>> stream_;
  std::shared_ptr<LinkHandler> handler_;
  absl::Status error_;  // the peer broke the protocol
};

class GrpcLink : public Link {
 public:
  explicit GrpcLink(std::shared_ptr<rpc::Stream<Buffer>> stream)
      : stream_(std::move(stream)) {}
  absl::Status Send(const v1::RowsRequest& request) override {
    return stream_->Send(rpc::EncodeMessage(request));
  }
  void Cancel() override { stream_->Cancel(); }

 private:
  const std::shared_ptr<rpc::Stream<Buffer>> stream_;
};

// What a stream needs for as long as it lives.
struct StreamChannel {
  explicit StreamChannel(std::shared_ptr<grpc::Channel> its_channel)
      : channel(std::move(its_channel)), stub(channel) {}
  const std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
};

}  // namespace

LinkFactory GrpcLinks(const rpc::Security& security) {
  return [security](const std::string& address,
                    std::shared_ptr<LinkHandler> handler) {
    auto connection =
        std::make_shared<StreamChannel>(rpc::MakeChannel(address, security));
    const auto bind = [&connection](
                          grpc::ClientContext* context,
                          grpc::ClientBidiReactor<Buffer, Buffer>* reactor) {
      connection->stub.PrepareBidiStreamingCall(
          context, kRowsMethod, grpc::StubOptions(kRowsMethod), reactor);
    };
    const auto make = [&handler](std::shared_ptr<rpc::Stream<Buffer>> stream) {
      return std::make_shared<Receiver>(stream, handler);
    };
    return std::make_shared<GrpcLink>(rpc::ClientStream<Buffer, Buffer>::Start(
        security, kMaxQueuedRequests, bind, make, connection));
  };
}

}  // namespace leat::client
