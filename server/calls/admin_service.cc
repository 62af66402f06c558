// SPDX-License-Identifier: Apache-2.0
#include "server/calls/admin_service.h"

#include <algorithm>
#include <array>

#include "core/log.h"
#include "core/status.h"
#include "rpc/wire/times.h"
#include "server/calls/event_stream.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

// A lifetime beyond any plan.
constexpr int64_t kMaxLifetimeSeconds = int64_t{100} * 365 * 86'400;

constexpr Duration kSinceMost = std::chrono::hours(1);

// Bounds of a page: entries, and bytes after which it ends.
constexpr size_t kPageOfWorkers = 1000, kPageOfJobs = 100, kPageOfDatasets = 16;
constexpr size_t kPageBytes = 2 << 20;
constexpr size_t kMaxPageToken = 4096;

// Fills a page from `list`; `key_of` names an entry, as the start of the next
// page.
template <class Request, class Response, class Field, class List, class KeyOf>
absl::Status FillPage(const Request& request, size_t most, Response* response,
                      Field* field, const List& list, const KeyOf& key_of) {
  if (request.page_token().size() > kMaxPageToken)
    return InvalidArgument("page_token: {} bytes: want a next_page_token",
                           request.page_token().size());
  Page page{request.page_token(), most};
  if (request.page_size() > 0)
    page.limit = std::min<size_t>(page.limit, request.page_size());
  const auto views = list(page);
  size_t bytes = 0, taken = 0;
  for (const auto& view : views) {
    *field->Add() = ToProto(view);
    bytes += field->Get(field->size() - 1).ByteSizeLong();
    ++taken;
    if (bytes >= kPageBytes) break;
  }
  if (taken < views.size() || views.size() == page.limit)
    response->set_next_page_token(key_of(views[taken - 1]));
  return absl::OkStatus();
}

absl::Status CheckLevel(const std::string& level) {
  constexpr std::array<std::string_view, 5> kLevels = {"trace", "debug", "info",
                                                       "warn", "error"};
  if (std::find(kLevels.begin(), kLevels.end(), level) != kLevels.end())
    return absl::OkStatus();
  return InvalidArgument("log level \"{}\": want one of {}", level,
                         fmt::join(kLevels, ", "));
}

// Returns the token that a request describes, with the hash of `text`.
absl::StatusOr<AccessToken> TokenFor(
    const v1::CreateAccessTokenRequest& request, const std::string& text,
    WallTime now) {
  AccessToken token;
  ASSIGN_OR_RETURN(token.role, RoleFrom(request.role()));
  token.id = std::string(TokenId(text));
  token.name = request.name().empty()
                   ? fmt::format("{}-{}", Name(token.role), token.id)
                   : request.name();
  token.sha256 = HashOf(text);
  token.created_at = now;
  if (!request.has_lifetime()) return token;
  const int64_t seconds = request.lifetime().seconds();
  if (seconds < 1 || seconds > kMaxLifetimeSeconds)
    return InvalidArgument("lifetime {} s: want 1 to {}", seconds,
                           kMaxLifetimeSeconds);
  token.expires_at = now + std::chrono::seconds(seconds);
  return token;
}

}  // namespace

UnaryReactor* AdminService::GetStatus(CallContext* context,
                                      const v1::GetStatusRequest*,
                                      v1::GetStatusResponse* response) {
  return Handle(access_, "AdminService/GetStatus", context, [&] {
    *response = view_.Status();
    return absl::OkStatus();
  });
}

UnaryReactor* AdminService::ListWorkers(CallContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) {
  return Handle(access_, "AdminService/ListWorkers", context, [&] {
    return FillPage(
        *request, kPageOfWorkers, response, response->mutable_workers(),
        [&](const Page& page) { return coordinator_->Workers(page); },
        [](const WorkerView& view) { return view.registration->name; });
  });
}

UnaryReactor* AdminService::ListJobs(CallContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) {
  return Handle(access_, "AdminService/ListJobs", context, [&] {
    StatusView::KnownStatistics workers;
    return FillPage(
        *request, kPageOfJobs, response, response->mutable_jobs(),
        [&](const Page& page) { return view_.Jobs(page, &workers); },
        [](const JobView& view) { return view.info->spec.name; });
  });
}

UnaryReactor* AdminService::ListDatasets(CallContext* context,
                                         const v1::ListDatasetsRequest* request,
                                         v1::ListDatasetsResponse* response) {
  return Handle(access_, "AdminService/ListDatasets", context, [&] {
    return FillPage(
        *request, kPageOfDatasets, response, response->mutable_datasets(),
        [&](const Page& page) { return coordinator_->Datasets(page); },
        [](const DatasetView& view) { return view.key; });
  });
}

UnaryReactor* AdminService::ListShards(CallContext* context,
                                       const v1::ListShardsRequest* request,
                                       v1::ListShardsResponse* response) {
  return Handle(access_, "AdminService/ListShards", context,
                [&]() -> absl::Status {
                  ASSIGN_OR_RETURN(const std::vector<ShardView> shards,
                                   coordinator_->Shards(request->dataset()));
                  for (size_t i = 0; i < shards.size(); ++i) {
                    v1::ShardInfo* shard = response->add_shards();
                    shard->set_shard(static_cast<uint32_t>(i));
                    shard->set_first_sample(shards[i].range.begin);
                    shard->set_num_samples(shards[i].range.size());
                    shard->mutable_owners()->Assign(shards[i].owners.begin(),
                                                    shards[i].owners.end());
                    if (shards[i].kept_share)
                      shard->set_kept_share(*shards[i].kept_share);
                  }
                  return absl::OkStatus();
                });
}

UnaryReactor* AdminService::ListConsumers(
    CallContext* context, const v1::ListConsumersRequest* request,
    v1::ListConsumersResponse* response) {
  return Handle(access_, "AdminService/ListConsumers", context, [&] {
    return FillPage(
        *request, kPageOfWorkers, response, response->mutable_consumers(),
        [&](const Page& page) { return coordinator_->Consumers(page); },
        [](const ConsumerView& view) { return view.key; });
  });
}

UnaryReactor* AdminService::GetBottleneck(
    CallContext* context, const v1::GetBottleneckRequest* request,
    v1::GetBottleneckResponse* response) {
  return Handle(
      access_, "AdminService/GetBottleneck", context, [&]() -> absl::Status {
        Duration since = kJudgedBy;
        if (request->has_since()) {
          since = rpc::FromProto(request->since());
          if (since <= Duration(0) || since > kSinceMost)
            return InvalidArgument("since {} s: want more than 0 and up to {}",
                                   request->since().seconds(),
                                   kSinceMost / std::chrono::seconds(1));
        }
        const Now now = Now::Of(*clock_);
        const MonotonicTime from = now.mono - since;
        WorkerSlots workers = coordinator_->WorkersSince(from);
        ASSIGN_OR_RETURN(
            const BottleneckView view,
            coordinator_->BottleneckOf(request->job(), &workers, from, now));
        *response = ToProto(view);
        return absl::OkStatus();
      });
}

grpc::ServerWriteReactor<v1::WatchEventsResponse>* AdminService::WatchEvents(
    CallContext* context, const v1::WatchEventsRequest* request) {
  return StartWatchEvents(coordinator_, access_,
                          access_->Admit("AdminService/WatchEvents", *context),
                          *request, clock_->WallNow());
}

UnaryReactor* AdminService::MuteFinding(CallContext* context,
                                        const v1::MuteFindingRequest* request,
                                        v1::MuteFindingResponse*) {
  return HandleLater(
      access_, "AdminService/MuteFinding", context,
      [&](Coordinator::Done done) {
        std::optional<Duration> lifetime;
        if (request->has_lifetime())
          lifetime = std::chrono::seconds(std::clamp<int64_t>(
              request->lifetime().seconds(), -1, kMaxLifetimeSeconds));
        coordinator_->MuteFinding(request->code(), lifetime, Now::Of(*clock_),
                                  std::move(done));
      });
}

UnaryReactor* AdminService::UnmuteFinding(
    CallContext* context, const v1::UnmuteFindingRequest* request,
    v1::UnmuteFindingResponse*) {
  return HandleLater(access_, "AdminService/UnmuteFinding", context,
                     [&](Coordinator::Done done) {
                       coordinator_->UnmuteFinding(request->code(),
                                                   std::move(done));
                     });
}

UnaryReactor* AdminService::DeleteJob(CallContext* context,
                                      const v1::DeleteJobRequest* request,
                                      v1::DeleteJobResponse*) {
  return HandleLater(
      access_, "AdminService/DeleteJob", context, [&](Coordinator::Done done) {
        coordinator_->DeleteJob(request->name(), std::move(done));
      });
}

UnaryReactor* AdminService::DeleteDataset(
    CallContext* context, const v1::DeleteDatasetRequest* request,
    v1::DeleteDatasetResponse*) {
  return HandleLater(access_, "AdminService/DeleteDataset", context,
                     [&](Coordinator::Done done) {
                       coordinator_->DeleteDataset(request->name(),
                                                   std::move(done));
                     });
}

UnaryReactor* AdminService::RefreshDataset(
    CallContext* context, const v1::RefreshDatasetRequest* request,
    v1::RefreshDatasetResponse*) {
  return HandleLater(access_, "AdminService/RefreshDataset", context,
                     [&](Coordinator::Done done) {
                       coordinator_->RefreshDataset(
                           request->name(), Now::Of(*clock_), std::move(done));
                     });
}

UnaryReactor* AdminService::DrainWorker(CallContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::DrainWorkerResponse*) {
  return HandleLater(access_, "AdminService/DrainWorker", context,
                     [&](Coordinator::Done done) {
                       coordinator_->DrainWorker(
                           request->name(), /*drain=*/true, Now::Of(*clock_),
                           std::move(done));
                     });
}

UnaryReactor* AdminService::UndrainWorker(
    CallContext* context, const v1::UndrainWorkerRequest* request,
    v1::UndrainWorkerResponse*) {
  return HandleLater(access_, "AdminService/UndrainWorker", context,
                     [&](Coordinator::Done done) {
                       coordinator_->DrainWorker(
                           request->name(), /*drain=*/false, Now::Of(*clock_),
                           std::move(done));
                     });
}

UnaryReactor* AdminService::SetLogLevel(CallContext* context,
                                        const v1::SetLogLevelRequest* request,
                                        v1::SetLogLevelResponse*) {
  return Handle(access_, "AdminService/SetLogLevel", context,
                [&]() -> absl::Status {
                  RETURN_IF_ERROR(CheckLevel(request->level()));
                  if (request->worker().empty())
                    return leat::SetLogLevel(request->level());
                  return coordinator_->SetWorkerLogLevel(request->worker(),
                                                         request->level());
                });
}

UnaryReactor* AdminService::CreateAccessToken(
    CallContext* context, const v1::CreateAccessTokenRequest* request,
    v1::CreateAccessTokenResponse* response) {
  return HandleLater(
      access_, "AdminService/CreateAccessToken", context,
      [&](Coordinator::Done done) {
        if (!asks_for_tokens_)
          return done(FailedPrecondition(
              "this coordinator admits callers without an access token: start "
              "it with --access-token-file"));
        const Now now = Now::Of(*clock_);
        absl::StatusOr<std::string> text = rpc::RandomTokenText();
        if (!text.ok()) return done(text.status());
        const absl::StatusOr<AccessToken> token =
            TokenFor(*request, *text, now.wall);
        if (!token.ok()) return done(token.status());
        coordinator_->CreateAccess(
            *token, now,
            [response, info = ToProto(*token), text = *std::move(text),
             done = std::move(done)](const absl::Status& created) {
              if (created.ok()) {
                *response->mutable_info() = info;
                response->set_token(text);
              }
              done(created);
            });
      });
}

UnaryReactor* AdminService::ListAccessTokens(
    CallContext* context, const v1::ListAccessTokensRequest*,
    v1::ListAccessTokensResponse* response) {
  return Handle(access_, "AdminService/ListAccessTokens", context, [&] {
    for (const AccessToken& token : coordinator_->Access())
      *response->add_tokens() = ToProto(token);
    return absl::OkStatus();
  });
}

UnaryReactor* AdminService::RevokeAccessToken(
    CallContext* context, const v1::RevokeAccessTokenRequest* request,
    v1::RevokeAccessTokenResponse*) {
  return HandleLater(access_, "AdminService/RevokeAccessToken", context,
                     [&](Coordinator::Done done) {
                       coordinator_->RevokeAccess(
                           request->token(), Now::Of(*clock_), std::move(done));
                     });
}

}  // namespace leat::server
