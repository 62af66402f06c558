// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>

#include "core/plan/checked_job.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "leat/v1/admin.grpc.pb.h"
#include "leat/v1/coordinator.grpc.pb.h"
#include "rpc/call/server_stream.h"
#include "rpc/wire/messages.h"
#include "tests/client/engine/fake_cluster.h"

namespace leat::client {
namespace {

using Request = v1::ConsumerSessionRequest;
using Response = v1::ConsumerSessionResponse;

}  // namespace

JobInfo MakeFakeJob(const FakeJobOptions& options) {
  JobInfo info;
  info.spec.name = options.name;
  info.spec.batch = options.batch;
  info.spec.seed = 7;
  info.spec.last_batch = options.last_batch;
  Graph& graph = info.spec.pipeline;
  graph.nodes.push_back(
      {"readers.image_folder", {}, {{"path", std::string("/fake")}}});
  graph.nodes.push_back({"decode", {{0, 0}}, {}});
  graph.nodes.push_back(
      {"resize", {{1, 0}}, {{"size", std::vector<int64_t>{6, 5}}}});
  graph.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  if (options.external) {
    graph.nodes = {
        {"readers.external",
         {},
         {{"num_samples", static_cast<int64_t>(options.samples)},
          {"types", std::vector<std::string>{"uint8[6,5,3]", "int32"}},
          {"name", std::string("photos")}}}};
    graph.outputs[0].second = {0, 0};
  }
  const CheckedJob job = *CheckJob(info.spec);
  const CheckedGraph& checked = job.sources[0];
  info.datasets.resize(1);
  graph = checked.graph;
  info.schema = checked.schema;
  info.datasets[0].reader = CanonicalText(graph.nodes[checked.reader]);
  info.datasets[0].id = ToHex(HashOf(info.datasets[0].reader));
  info.datasets[0].name = "fake";
  info.datasets[0].shards = *ShardTable::Uniform(options.samples, 10);
  info.plan_hash = PlanHash(info.spec, info.datasets);
  return info;
}

class FakeCoordinator::Handler : public rpc::StreamHandler<Request> {
 public:
  Handler(FakeCoordinator* owner, std::shared_ptr<rpc::Stream<Response>> stream)
      : owner_(owner), stream_(std::move(stream)) {}

  void OnMessage(Request request) override {
    if (request.has_open()) {
      v1::Assignment assignment;
      {
        MutexLock lock(&owner_->mu_);
        assignment = owner_->assignment_;
      }
      if (assignment.version() > 0) Push(assignment);
    } else {
      MutexLock lock(&owner_->mu_);
      owner_->report_ = request.stats();
      ++owner_->reports_;
      owner_->reported_.NotifyAll();
    }
  }
  void Push(const v1::Assignment& assignment) {
    Response response;
    *response.mutable_assignment() = assignment;
    MutexLock lock(&mu_);
    if (stream_) (void)stream_->Send(response);
  }
  void OnClosed(const absl::Status&) override {
    MutexLock lock(&mu_);
    stream_.reset();
  }

 private:
  FakeCoordinator* const owner_;
  Mutex mu_;
  std::shared_ptr<rpc::Stream<Response>> stream_ ABSL_GUARDED_BY(mu_);
};

class FakeCoordinator::Service
    : public v1::CoordinatorService::WithCallbackMethod_ConsumerSession<
          v1::CoordinatorService::Service> {
 public:
  explicit Service(FakeCoordinator* owner) : owner_(owner) {}

  grpc::Status CreateJob(
      grpc::ServerContext* context, const v1::CreateJobRequest* request,
      grpc::ServerWriter<v1::CreateJobResponse>* to) override {
    if (auto s = rpc::CheckMetadata(owner_->security_, *context); !s.ok())
      return rpc::ToGrpc(s);
    if (request->spec().name() != owner_->job_.spec.name)
      return rpc::ToGrpc(AlreadyExists("another spec"));
    v1::CreateJobResponse response;
    response.set_waiting("worker w lists /data");
    to->Write(response);
    response.clear_waiting();
    *response.mutable_job() = rpc::ToProto(owner_->job_);
    to->Write(response);
    return grpc::Status::OK;
  }
  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest*,
                     v1::HelloResponse* response) override {
    if (auto s = rpc::CheckMetadata(owner_->security_, *context); !s.ok())
      return rpc::ToGrpc(s);
    response->set_version("fake");
    return grpc::Status::OK;
  }
  grpc::Status GetJob(grpc::ServerContext* context,
                      const v1::GetJobRequest* request,
                      v1::GetJobResponse* response) override {
    if (request->name() != owner_->job_.spec.name)
      return rpc::ToGrpc(NotFound("no job \"{}\"", request->name()));
    *response->mutable_job() = rpc::ToProto(owner_->job_);
    return grpc::Status::OK;
  }
  grpc::ServerBidiReactor<Request, Response>* ConsumerSession(
      grpc::CallbackServerContext* context) override {
    return rpc::ServerStream<Request, Response>::Start(
        context, 100, [this](std::shared_ptr<rpc::Stream<Response>> stream) {
          auto handler = std::make_shared<Handler>(owner_, std::move(stream));
          MutexLock lock(&owner_->mu_);
          owner_->sessions_.push_back(handler);
          return handler;
        });
  }

 private:
  FakeCoordinator* const owner_;
};

class FakeCoordinator::AdminService : public v1::AdminService::Service {
 public:
  explicit AdminService(FakeCoordinator* owner) : owner_(owner) {}
  grpc::Status GetStatus(grpc::ServerContext* context,
                         const v1::GetStatusRequest*,
                         v1::GetStatusResponse* response) override {
    if (auto s = rpc::CheckMetadata(owner_->security_, *context); !s.ok())
      return rpc::ToGrpc(s);
    ++owner_->status_calls_;
    response->set_version("fake");
    response->set_sequence(12345678901234);
    return grpc::Status::OK;
  }
  // Five workers, two per page.
  grpc::Status ListWorkers(grpc::ServerContext*,
                           const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override {
    int next = request->page_token().empty()
                   ? 0
                   : std::atoi(request->page_token().c_str());
    for (int i = 0; i < 2 && next < 5; ++i)
      response->add_workers()->set_name("w" + std::to_string(next++));
    if (next < 5) response->set_next_page_token(std::to_string(next));
    return grpc::Status::OK;
  }
  // The same page for ever.
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse* response) override {
    response->set_next_page_token("again");
    return grpc::Status::OK;
  }
  grpc::Status DeleteJob(grpc::ServerContext*,
                         const v1::DeleteJobRequest* request,
                         v1::DeleteJobResponse*) override {
    return rpc::ToGrpc(NotFound("no job \"{}\"", request->name()));
  }

 private:
  FakeCoordinator* const owner_;
};

FakeCoordinator::FakeCoordinator(JobInfo job, std::string token)
    : job_(std::move(job)),
      security_{.token = std::move(token)},
      address_(UniqueAddress()) {
  Start();
}

FakeCoordinator::~FakeCoordinator() { Kill(); }

void FakeCoordinator::Start() {
  service_ = std::make_unique<Service>(this);
  admin_ = std::make_unique<AdminService>(this);
  auto server = rpc::Server::Start({.address = address_}, security_,
                                   {service_.get(), admin_.get()});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void FakeCoordinator::Kill() {
  server_.reset();
  service_.reset();
  admin_.reset();
}

void FakeCoordinator::SetWorkers(const std::vector<const FakeWorker*>& workers,
                                 uint64_t instance) {
  v1::Assignment assignment;
  assignment.set_dataset_id(job_.datasets[0].id);
  assignment.set_instance(instance);
  const size_t per_shard = std::min<size_t>(workers.size(), 2);
  assignment.set_owners_per_shard(static_cast<uint32_t>(per_shard));
  for (const FakeWorker* worker : workers) {
    v1::WorkerRef* ref = assignment.add_workers();
    ref->set_name(worker->name());
    ref->set_address(worker->address());
    ref->set_public_key(worker->public_key());
  }
  for (uint32_t s = 0; s < job_.datasets[0].shards.num_shards(); ++s)
    for (size_t i = 0; i < per_shard; ++i) {
      const size_t owner = (s + i) % workers.size();
      assignment.mutable_owners()->push_back(static_cast<char>(owner));
      assignment.mutable_owners()->push_back(0);
    }
  std::vector<std::weak_ptr<Handler>> sessions;
  {
    MutexLock lock(&mu_);
    assignment.set_version(assignment_.version() + 1);
    assignment_ = assignment;
    sessions = sessions_;
  }
  for (const auto& session : sessions)
    if (const auto handler = session.lock()) handler->Push(assignment);
}

void FakeCoordinator::AwaitReports(int reports) {
  MutexLock lock(&mu_);
  while (reports_ < reports) reported_.Wait(&mu_);
}

v1::ConsumerStats FakeCoordinator::last_report() {
  MutexLock lock(&mu_);
  return report_;
}

}  // namespace leat::client
