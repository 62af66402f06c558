// SPDX-License-Identifier: Apache-2.0
//
// Control: the client's calls to the coordinator. It maps transport errors to
// sentences that say what to do.
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/coordinator/consumer_session.h"
#include "client/coordinator/credentials.h"
#include "grpcpp/channel.h"
#include "leat/v1/admin.grpc.pb.h"
#include "leat/v1/coordinator.grpc.pb.h"
#include "leat/v1/pool.grpc.pb.h"
#include "rpc/call/auth.h"

namespace leat::client {

class Control {
 public:
  // `token_file`: as in Credentials.
  Control(std::string address, rpc::Security security, absl::Duration timeout,
          std::string token_file = {});

  // Calls Hello, which is cheap for the coordinator, until it answers or
  // `deadline`. kUnavailable: no answer (names address and reason); at once if
  // a handshake shows a fault that no wait repairs, such as a certificate for
  // another name. Other errors, at once: another version, the token, or not a
  // coordinator.
  absl::Status Connect(absl::Time deadline);

  template <class Request, class Response>
  using AdminMethod = grpc::Status (v1::AdminService::Stub::*)(
      grpc::ClientContext*, const Request&, Response*);
  template <class Request, class Response>
  using CoordinatorMethod = grpc::Status (v1::CoordinatorService::Stub::*)(
      grpc::ClientContext*, const Request&, Response*);

  template <class Request, class Response>
  using PoolMethod = grpc::Status (v1::PoolService::Stub::*)(
      grpc::ClientContext*, const Request&, Response*);

  // Makes one call, with the connection's timeout or `timeout`.
  template <class Request, class Response>
  absl::Status Call(AdminMethod<Request, Response> method,
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    Prepare(&context, timeout_);
    return Map(((*admin_).*method)(&context, request, response), context);
  }
  template <class Request, class Response>
  absl::Status Call(PoolMethod<Request, Response> method,
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    Prepare(&context, timeout_);
    return Map(((*pools_).*method)(&context, request, response), context);
  }
  template <class Request, class Response>
  absl::Status Call(CoordinatorMethod<Request, Response> method,
                    const Request& request, Response* response,
                    absl::Duration timeout) {
    grpc::ClientContext context;
    Prepare(&context, timeout);
    return Map(((*coordinator_).*method)(&context, request, response), context);
  }

  // OK: `on_response` returned false, or `within` is over.
  absl::Status WatchPool(
      const v1::WatchPoolRequest& request, absl::Duration within,
      const std::function<bool(const v1::WatchPoolResponse&)>& on_response);
  // Makes a call with many answers, for at most `timeout`. `on_response`
  // returns whether to continue; if not, the call ends with OK.
  template <class Response, class Request>
  absl::Status ReadAll(
      std::unique_ptr<grpc::ClientReader<Response>> (
          v1::AdminService::Stub::*method)(grpc::ClientContext*,
                                           const Request&),
      const Request& request, absl::Duration timeout,
      const std::function<bool(const Response&)>& on_response) {
    grpc::ClientContext context;
    Prepare(&context, timeout);
    const auto reader = ((*admin_).*method)(&context, request);
    Response response;
    bool stopped = false;
    while (!stopped && reader->Read(&response))
      stopped = !on_response(response);
    if (stopped) context.TryCancel();
    const absl::Status status = Map(reader->Finish(), context);
    return stopped ? absl::OkStatus() : status;
  }

  // Creates the job, and waits no longer than `within`. `on_waiting` (may be
  // null) runs on this thread, and gets what the coordinator waits for.
  absl::Status CreateJob(
      const v1::CreateJobRequest& request, absl::Duration within,
      const std::function<void(std::string_view)>& on_waiting,
      v1::CreateJobResponse* response);

  // Opens ConsumerSession streams.
  Session::Opener Sessions() const;

  const std::string& address() const { return address_; }
  const std::shared_ptr<const Credentials>& credentials() const {
    return credentials_;
  }
  rpc::Security security() const { return credentials_->Now(); }
  absl::Duration timeout() const { return timeout_; }

 private:
  void Prepare(grpc::ClientContext* context, absl::Duration timeout) const;
  absl::Status Map(const grpc::Status& status,
                   const grpc::ClientContext& context) const;

  const std::string address_;
  const std::shared_ptr<const Credentials> credentials_;
  const absl::Duration timeout_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
  const std::shared_ptr<v1::CoordinatorService::Stub> coordinator_;
  const std::unique_ptr<v1::PoolService::Stub> pools_;
};

}  // namespace leat::client
