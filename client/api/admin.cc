// SPDX-License-Identifier: Apache-2.0
#include "client/api/admin.h"

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

}  // namespace

template <class Request, class Response>
absl::StatusOr<std::string> ControlAdmin::Get(
    Control::AdminMethod<Request, Response> method, const Request& request) {
  Response response;
  absl::Status status = control_.Call(method, request, &response);
  if (!status.ok()) return status;
  return ToJsonNumbers(response).dump();
}

// Returns all pages as one answer.
template <class Request, class Response>
absl::StatusOr<std::string> ControlAdmin::GetAll(
    Control::AdminMethod<Request, Response> method) {
  Response all;
  Request request;
  std::string token;
  do {
    request.set_page_token(token);
    Response page;
    absl::Status status = control_.Call(method, request, &page);
    if (!status.ok()) return status;
    token = page.next_page_token();
    if (!token.empty() && token == request.page_token())
      return Internal("the coordinator gives page \"{}\" twice", token);
    page.clear_next_page_token();
    all.MergeFrom(page);
  } while (!token.empty());
  nlohmann::json json = ToJsonNumbers(all);
  json.erase("next_page_token");
  return json.dump();
}

template <class Request, class Response>
absl::Status ControlAdmin::Do(Control::AdminMethod<Request, Response> method,
                              std::string_view name) {
  Request request;
  request.set_name(std::string(name));
  Response response;
  return control_.Call(method, request, &response);
}

using Stub = v1::AdminService::Stub;

absl::StatusOr<std::string> ControlAdmin::GetStatus() {
  return Get(&Stub::GetStatus, v1::GetStatusRequest());
}
absl::StatusOr<std::string> ControlAdmin::ListWorkers() {
  return GetAll(&Stub::ListWorkers);
}
absl::StatusOr<std::string> ControlAdmin::ListJobs() {
  return GetAll(&Stub::ListJobs);
}
absl::StatusOr<std::string> ControlAdmin::ListDatasets() {
  return GetAll(&Stub::ListDatasets);
}
absl::StatusOr<std::string> ControlAdmin::ListShards(std::string_view dataset) {
  v1::ListShardsRequest request;
  request.set_dataset(std::string(dataset));
  return Get(&Stub::ListShards, request);
}
absl::StatusOr<std::string> ControlAdmin::ListConsumers() {
  return GetAll(&Stub::ListConsumers);
}
absl::StatusOr<std::string> ControlAdmin::GetBottleneck(std::string_view job,
                                                        absl::Duration since) {
  v1::GetBottleneckRequest request;
  request.set_job(std::string(job));
  *request.mutable_since() = ProtoOf(since);
  return Get(&Stub::GetBottleneck, request);
}
absl::Status ControlAdmin::DeleteJob(std::string_view name) {
  return Do<v1::DeleteJobRequest>(&Stub::DeleteJob, name);
}
absl::Status ControlAdmin::DeleteDataset(std::string_view name) {
  return Do<v1::DeleteDatasetRequest>(&Stub::DeleteDataset, name);
}
absl::Status ControlAdmin::RefreshDataset(std::string_view name) {
  return Do<v1::RefreshDatasetRequest>(&Stub::RefreshDataset, name);
}
absl::Status ControlAdmin::DrainWorker(std::string_view name) {
  return Do<v1::DrainWorkerRequest>(&Stub::DrainWorker, name);
}
absl::Status ControlAdmin::UndrainWorker(std::string_view name) {
  return Do<v1::UndrainWorkerRequest>(&Stub::UndrainWorker, name);
}
absl::Status ControlAdmin::SetLogLevel(std::string_view level,
                                       std::string_view worker) {
  v1::SetLogLevelRequest request;
  request.set_level(std::string(level));
  request.set_worker(std::string(worker));
  v1::SetLogLevelResponse response;
  return control_.Call(&Stub::SetLogLevel, request, &response);
}

absl::StatusOr<std::string> ControlAdmin::CreateAccessToken(
    std::string_view role, std::string_view name, absl::Duration lifetime) {
  v1::CreateAccessTokenRequest request;
  request.set_role(std::string(role));
  request.set_name(std::string(name));
  if (lifetime > absl::ZeroDuration())
    request.mutable_lifetime()->set_seconds(absl::ToInt64Seconds(lifetime));
  return Get(&Stub::CreateAccessToken, request);
}
absl::StatusOr<std::string> ControlAdmin::ListAccessTokens() {
  return Get(&Stub::ListAccessTokens, v1::ListAccessTokensRequest());
}
absl::Status ControlAdmin::RevokeAccessToken(std::string_view token) {
  v1::RevokeAccessTokenRequest request;
  request.set_token(std::string(token));
  v1::RevokeAccessTokenResponse response;
  return control_.Call(&Stub::RevokeAccessToken, request, &response);
}

absl::StatusOr<std::string> ControlAdmin::ListPools() {
  v1::ListPoolsResponse response;
  const absl::Status status = control_.Call(&v1::PoolService::Stub::ListPools,
                                            v1::ListPoolsRequest(), &response);
  if (!status.ok()) return status;
  return ToJsonNumbers(response).dump();
}
absl::Status ControlAdmin::SetPool(std::string_view name, uint32_t min,
                                   uint32_t max) {
  v1::SetPoolRequest request;
  request.set_name(std::string(name));
  request.set_min(min);
  request.set_max(max);
  v1::SetPoolResponse response;
  return control_.Call(&v1::PoolService::Stub::SetPool, request, &response);
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
  v1::MuteFindingResponse response;
  return control_.Call(&Stub::MuteFinding, request, &response);
}
absl::Status ControlAdmin::UnmuteFinding(std::string_view code) {
  v1::UnmuteFindingRequest request;
  request.set_code(std::string(code));
  v1::UnmuteFindingResponse response;
  return control_.Call(&Stub::UnmuteFinding, request, &response);
}

}  // namespace leat::client
