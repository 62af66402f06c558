// SPDX-License-Identifier: Apache-2.0
#include "client/api/admin.h"

#include <utility>

#include "client/coordinator/message_json.h"
#include "core/status.h"
#include "rpc/wire/times.h"

namespace leat::client {
namespace {

// Duration of a call that follows events. The caller repeats it for more, so
// that a call whose connection broke unnoticed does not wait for ever.
constexpr absl::Duration kFollowFor = absl::Minutes(1);

google::protobuf::Duration ProtoOf(absl::Duration duration) {
  return rpc::ToProto(absl::ToChronoNanoseconds(duration));
}

// Sets the field of a request that says what it is about, if it has one.
template <class Request>
void SetName(std::string_view name, Request* request) {
  if constexpr (requires { request->set_name(""); })
    request->set_name(std::string(name));
  else if constexpr (requires { request->set_dataset(""); })
    request->set_dataset(std::string(name));
  else if constexpr (requires { request->set_token(""); })
    request->set_token(std::string(name));
  else if constexpr (requires { request->set_code(""); })
    request->set_code(std::string(name));
}

template <class Stub, class Request, class Response>
using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&,
                                      Response*);

// Makes one call, and drops its response.
template <class Stub, class Request, class Response>
absl::Status Send(Control& control, Method<Stub, Request, Response> method,
                  const Request& request) {
  Response response;
  return control.Call(method, request, &response);
}
template <class Stub, class Request, class Response>
absl::Status SendNamed(Control& control, Method<Stub, Request, Response> method,
                       std::string_view name) {
  Request request;
  SetName(name, &request);
  return Send(control, method, request);
}

// Returns the response as JSON; all pages of a list are one answer.
template <class Stub, class Request, class Response>
absl::StatusOr<std::string> Ask(Control& control,
                                Method<Stub, Request, Response> method,
                                Request request) {
  constexpr bool kPaged = requires { request.set_page_token(""); };
  Response all;
  std::string token;
  do {
    if constexpr (kPaged) request.set_page_token(token);
    Response page;
    RETURN_IF_ERROR(control.Call(method, request, &page));
    if constexpr (kPaged) {
      token = page.next_page_token();
      if (!token.empty() && token == request.page_token())
        return Internal("the coordinator gives page \"{}\" twice", token);
    }
    all.MergeFrom(page);
  } while (!token.empty());
  nlohmann::json json = ToJsonNumbers(all);
  if constexpr (kPaged) json.erase("next_page_token");
  return json.dump();
}
template <class Stub, class Request, class Response>
absl::StatusOr<std::string> AskNamed(Control& control,
                                     Method<Stub, Request, Response> method,
                                     std::string_view name) {
  Request request;
  SetName(name, &request);
  return Ask(control, method, std::move(request));
}

using Stub = v1::AdminService::Stub;
using Pools = v1::PoolService::Stub;

}  // namespace

absl::StatusOr<std::string> ControlAdmin::Get(std::string_view what,
                                              std::string_view name) {
  if (what == "status") return AskNamed(control_, &Stub::GetStatus, name);
  if (what == "workers") return AskNamed(control_, &Stub::ListWorkers, name);
  if (what == "jobs") return AskNamed(control_, &Stub::ListJobs, name);
  if (what == "datasets") return AskNamed(control_, &Stub::ListDatasets, name);
  if (what == "consumers")
    return AskNamed(control_, &Stub::ListConsumers, name);
  if (what == "pools") return AskNamed(control_, &Pools::ListPools, name);
  if (what == "tokens")
    return AskNamed(control_, &Stub::ListAccessTokens, name);
  if (what != "shards")
    return InvalidArgument(
        "\"{}\": want status, workers, jobs, datasets, shards, consumers, "
        "pools or tokens",
        what);
  if (name.empty())
    return InvalidArgument("shards: want the name of a dataset");
  return AskNamed(control_, &Stub::ListShards, name);
}

absl::Status ControlAdmin::Do(std::string_view verb, std::string_view name) {
  if (verb == "delete-job") return SendNamed(control_, &Stub::DeleteJob, name);
  if (verb == "delete-dataset")
    return SendNamed(control_, &Stub::DeleteDataset, name);
  if (verb == "refresh-dataset")
    return SendNamed(control_, &Stub::RefreshDataset, name);
  if (verb == "drain") return SendNamed(control_, &Stub::DrainWorker, name);
  if (verb == "undrain") return SendNamed(control_, &Stub::UndrainWorker, name);
  if (verb == "revoke-token")
    return SendNamed(control_, &Stub::RevokeAccessToken, name);
  if (verb == "unmute") return SendNamed(control_, &Stub::UnmuteFinding, name);
  return InvalidArgument(
      "\"{}\": want delete-job, delete-dataset, refresh-dataset, drain, "
      "undrain, revoke-token or unmute",
      verb);
}

absl::StatusOr<std::string> ControlAdmin::GetBottleneck(std::string_view job,
                                                        absl::Duration since) {
  v1::GetBottleneckRequest request;
  request.set_job(std::string(job));
  *request.mutable_since() = ProtoOf(since);
  return Ask(control_, &Stub::GetBottleneck, std::move(request));
}
absl::Status ControlAdmin::SetLogLevel(std::string_view level,
                                       std::string_view worker) {
  v1::SetLogLevelRequest request;
  request.set_level(std::string(level));
  request.set_worker(std::string(worker));
  return Send(control_, &Stub::SetLogLevel, request);
}

absl::StatusOr<std::string> ControlAdmin::CreateAccessToken(
    std::string_view role, std::string_view name, absl::Duration lifetime) {
  v1::CreateAccessTokenRequest request;
  request.set_role(std::string(role));
  request.set_name(std::string(name));
  if (lifetime > absl::ZeroDuration())
    request.mutable_lifetime()->set_seconds(absl::ToInt64Seconds(lifetime));
  return Ask(control_, &Stub::CreateAccessToken, std::move(request));
}
absl::Status ControlAdmin::SetPool(std::string_view name, uint32_t min,
                                   uint32_t max) {
  v1::SetPoolRequest request;
  request.set_name(std::string(name));
  request.set_min(min);
  request.set_max(max);
  return Send(control_, &Pools::SetPool, request);
}
absl::Status ControlAdmin::WatchPool(
    std::string_view name, absl::Duration within,
    const std::function<bool(const std::string& pool)>& on_pool) {
  v1::WatchPoolRequest request;
  request.set_name(std::string(name));
  return control_.WatchPool(
      request, within, [&](const v1::WatchPoolResponse& response) {
        return on_pool(ToJsonNumbers(response.pool()).dump());
      });
}
absl::Status ControlAdmin::WatchEvents(
    const EventsQuery& query,
    const std::function<bool(std::string_view json)>& on_events) {
  v1::WatchEventsRequest request;
  request.set_after(query.after);
  request.set_instance(query.instance);
  request.set_subject(query.subject);
  request.set_follow(query.follow);
  if (query.since) *request.mutable_since() = ProtoOf(*query.since);
  bool answered = false;
  const absl::Status status = control_.ReadAll<v1::WatchEventsResponse>(
      &Stub::WatchEvents, request,
      query.follow ? kFollowFor : control_.timeout(),
      [&](const v1::WatchEventsResponse& response) {
        answered = true;
        return on_events(ToJsonNumbers(response).dump());
      });
  const bool over =
      query.follow && answered && absl::IsDeadlineExceeded(status);
  return over ? absl::OkStatus() : status;
}
absl::Status ControlAdmin::MuteFinding(std::string_view code,
                                       absl::Duration lifetime) {
  v1::MuteFindingRequest request;
  request.set_code(std::string(code));
  if (lifetime > absl::ZeroDuration())
    *request.mutable_lifetime() = ProtoOf(lifetime);
  return Send(control_, &Stub::MuteFinding, request);
}

}  // namespace leat::client
