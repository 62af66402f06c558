// SPDX-License-Identifier: Apache-2.0
#include "worker/session/coordinator_client.h"

#include <unistd.h>

#include <optional>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "rpc/call/grpc_status.h"
#include "rpc/server/server.h"
#include "rpc/wire/messages.h"

namespace leat::worker {
namespace {

// Knows one job, and answers callers with its token.
class FakeCoordinator final : public v1::CoordinatorService::Service {
 public:
  explicit FakeCoordinator(const JobInfo& job) : job_(rpc::ToProto(job)) {
    server_ =
        rpc::Server::Start({.address = fmt::format(
                                "unix-abstract:leat-client-test-{}", getpid())},
                           security_, {this})
            .value();
  }
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest*,
                      v1::GetJobResponse* response) override {
    if (const absl::Status known = rpc::CheckMetadata(security_, *context);
        !known.ok())
      return rpc::ToGrpc(known);
    if (stopping) return grpc::Status::CANCELLED;
    *response->mutable_job() = job_;
    if (began_with) *response->mutable_decoders() = *began_with;
    return grpc::Status::OK;
  }
  const std::string& address() const { return server_->address(); }

  std::optional<v1::Decoders> began_with;
  bool stopping = false;

 private:
  const v1::Job job_;
  const rpc::Security security_{.token = "new"};
  std::unique_ptr<rpc::Server> server_;
};

JobInfo JobWithPaths(size_t paths) {
  JobInfo job;
  std::vector<std::string> names;
  for (size_t i = 0; i < paths; ++i)
    names.push_back(fmt::format("s3://{:0>60}/{:0>10}.tfrecord", "bucket", i));
  job.spec.name = "j";
  job.spec.batch = 1;
  job.spec.pipeline.nodes = {{"readers.tfrecord", {}, {{"paths", names}}}};
  job.spec.pipeline.outputs = {{"x", {0, 0}}};
  job.datasets.resize(1);
  job.datasets[0].id = "d";
  job.datasets[0].reader = CanonicalText(job.spec.pipeline.nodes[0]);
  job.datasets[0].shards = *ShardTable::Uniform(paths, 1);
  job.plan_hash = PlanHash(job.spec, job.datasets);
  return job;
}

TEST(CoordinatorClient, GetsAJobWhoseReaderNamesAsManyFilesAsThereMayBe) {
  const JobInfo job = JobWithPaths(65'536);
  ASSERT_GT(rpc::ToProto(job).ByteSizeLong(), 8u << 20);
  const FakeCoordinator coordinator(job);
  CoordinatorClient client({.address = coordinator.address()},
                           {.token = "new"});
  const absl::StatusOr<JobInfo> got = client.FetchJob("any");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->plan_hash, job.plan_hash);
}

v1::Decoders DecodersOf(char digest, const std::string& libraries,
                        v1::DecoderClass of = v1::DECODER_CLASS_EXACT) {
  v1::Decoders decoders;
  decoders.set_decoder_class(of);
  decoders.set_digest(std::string(32, digest));
  decoders.set_libraries(libraries);
  return decoders;
}

TEST(CoordinatorClient, TakesNoJobThatBeganWithOtherDecoders) {
  FakeCoordinator coordinator(JobWithPaths(1));
  CoordinatorClient client(
      {.address = coordinator.address(),
       .decoders = {DecodersOf('n', "nv", v1::DECODER_CLASS_NVJPEG),
                    DecodersOf('m', "mine")}},
      {.token = "new"});
  EXPECT_TRUE(client.FetchJob("any").ok()) << "no worker has served it";
  coordinator.began_with = DecodersOf('m', "mine, by another name");
  EXPECT_TRUE(client.FetchJob("any").ok());
  coordinator.began_with = DecodersOf('o', "others");
  const absl::Status refused = client.FetchJob("any").status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << "others may serve it";
  EXPECT_EQ(FaultOf(refused), Fault::kWorker) << "asking again is no use";
  EXPECT_EQ(Message(refused),
            "job j began with exact decoders 6f6f6f6f6f6f (others), this "
            "worker's are 6d6d6d6d6d6d (mine): it would make other bytes");
  coordinator.began_with = DecodersOf('n', "nv", v1::DECODER_CLASS_NVJPEG);
  EXPECT_TRUE(client.FetchJob("any").ok()) << "each class has its own";
}

TEST(CoordinatorClient, TellsACallThatACoordinatorCancelsFromItsOwnEnd) {
  FakeCoordinator coordinator(JobWithPaths(1));
  coordinator.stopping = true;
  CoordinatorClient client({.address = coordinator.address()},
                           {.token = "new"});
  EXPECT_EQ(
      client.FetchJob("any").status(),
      Unavailable("the coordinator at {} is stopping", coordinator.address()));
  client.Shutdown();
  EXPECT_TRUE(absl::IsCancelled(client.FetchJob("any").status()));
}

TEST(CoordinatorClient, ShowsTheTokenThatItWasGivenLast) {
  const FakeCoordinator coordinator(JobWithPaths(1));
  CoordinatorClient client({.address = coordinator.address()},
                           {.token = "old"});
  EXPECT_TRUE(absl::IsUnauthenticated(client.FetchJob("any").status()));
  const auto before = client.connection();
  client.ReplaceSecurity({.token = "new"});
  EXPECT_TRUE(client.FetchJob("any").ok());
  EXPECT_EQ(before->security.token, "old") << "a stream keeps its own";
}

}  // namespace
}  // namespace leat::worker
