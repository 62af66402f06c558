// SPDX-License-Identifier: Apache-2.0
//
// Listings with a storage or coordinator that holds some of them up.
#include "worker/session/listings.h"

#include <unistd.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/call/grpc_status.h"
#include "rpc/server/server.h"
#include "rpc/wire/block_messages.h"
#include "rpc/wire/messages.h"
#include "tests/worker/source/storage/http/http_server.h"
#include "worker/session/coordinator_client.h"
#include "worker/session/directive_queue.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Holds things up by name until they are released.
class Gate {
 public:
  // Passes `name`; waits there while it is held.
  void Pass(const std::string& name) {
    MutexLock lock(&mu_);
    came_.push_back(name);
    changed_.NotifyAll();
    while (held_.contains(name)) changed_.Wait(&mu_);
  }
  void Hold(const std::string& name) {
    MutexLock lock(&mu_);
    held_.insert(name);
  }
  void ReleaseAll() {
    MutexLock lock(&mu_);
    held_.clear();
    changed_.NotifyAll();
  }
  // Waits until `count` have come, and returns their names in this order.
  std::vector<std::string> Came(size_t count) {
    MutexLock lock(&mu_);
    while (came_.size() < count) changed_.Wait(&mu_);
    return came_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::set<std::string> held_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> came_ ABSL_GUARDED_BY(mu_);
};

// Takes workers' answers, and returns no block of a look.
class FakeCoordinator final : public v1::CoordinatorService::Service {
 public:
  FakeCoordinator()
      : server_(rpc::Server::Start(
                    {.address = fmt::format(
                         "unix-abstract:leat-listings-test-{}", getpid())},
                    rpc::Security(), {this})
                    .value()) {}
  const std::string& address() const { return server_->address(); }

  grpc::Status UploadIndex(grpc::ServerContext*,
                           const v1::UploadIndexRequest* request,
                           v1::UploadIndexResponse*) override {
    if (request->has_failure())
      answers.Pass(fmt::format("{}:{} failed", request->failure().dataset_id(),
                               request->failure().request_id()));
    if (request->has_looked())
      answers.Pass(fmt::format("{}:{} looked", request->looked().dataset_id(),
                               request->looked().request_id()));
    return grpc::Status::OK;
  }
  grpc::Status GetIndexBlock(
      grpc::ServerContext*, const v1::GetIndexBlockRequest* request,
      grpc::ServerWriter<v1::GetIndexBlockResponse>*) override {
    looks.Pass(request->sha256());
    return {grpc::StatusCode::NOT_FOUND, "there is no such block"};
  }

  Gate answers, looks;

 private:
  const std::unique_ptr<rpc::Server> server_;
};

// A dataset is an object with its name, on a server that has none.
class ListingsTest : public ::testing::Test {
 protected:
  ListingsTest() {
    setenv("no_proxy", "127.0.0.1", 1);
    storage_ = Storage::Create({}).value();
    ListingOptions options;
    options.threads = 3;
    options.source_limits.storage = storage_.get();
    listings_ = std::make_unique<Listings>(options, &client_);
    EXPECT_EQ(listings_->started(), absl::OkStatus());
  }
  ~ListingsTest() override {
    objects_.ReleaseAll();
    coordinator_.looks.ReleaseAll();
    listings_.reset();
  }
  v1::IndexDataset Directive(const std::string& dataset, uint64_t request) {
    v1::IndexDataset directive;
    directive.set_dataset_id(dataset);
    directive.set_request_id(request);
    directive.set_max_index_bytes(1 << 20);
    directive.set_index_block_bytes(1 << 20);
    *directive.mutable_reader() = rpc::ToProto(Node{
        .op = "readers.tfrecord",
        .inputs = {},
        .args = {
            {"paths", std::vector<std::string>{server_.url() + "/" + dataset}},
            {"features", std::vector<std::string>{"x"}},
            {"types", std::vector<std::string>{"encoded"}}}});
    return directive;
  }
  v1::IndexDataset LookAt(const std::string& dataset, uint64_t request) {
    v1::IndexDataset directive = Directive(dataset, request);
    const IndexBlock block = {
        .sha256 = HashOf(dataset), .bytes = 1, .samples = 0};
    *directive.mutable_look() = rpc::ToProto(block);
    directive.set_look_only(true);
    return directive;
  }
  static std::string LookOf(const std::string& dataset) {
    const Digest name = HashOf(dataset);
    return {reinterpret_cast<const char*>(name.data()), name.size()};
  }

  Gate objects_;
  HttpServer server_{[this](const HttpServer::Request& request) {
    objects_.Pass(request.Path());
    return HttpServer::Reply{.status = 404};
  }};
  FakeCoordinator coordinator_;
  CoordinatorClient client_{{.address = coordinator_.address()},
                            rpc::Security()};
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Listings> listings_;
};

TEST_F(ListingsTest, OneThatHangsDoesNotHoldUpAnother) {
  objects_.Hold("/hangs");
  listings_->Add(Directive("hangs", 1));
  EXPECT_THAT(objects_.Came(1), ElementsAre("/hangs"));
  listings_->Add(Directive("sound", 2));
  EXPECT_THAT(coordinator_.answers.Came(1), ElementsAre("sound:2 failed"));
  v1::Heartbeat heartbeat;
  listings_->AddUnderWay(&heartbeat);
  EXPECT_EQ(heartbeat.listings(0).dataset_id(), "hangs");
  EXPECT_EQ(heartbeat.listings(0).request_id(), 1u);
  objects_.ReleaseAll();
  EXPECT_THAT(coordinator_.answers.Came(2),
              ElementsAre("sound:2 failed", "hangs:1 failed"));
  heartbeat.Clear();
  listings_->AddUnderWay(&heartbeat);
  EXPECT_EQ(heartbeat.listings_size(), 0) << "before it is answered";
}

// Among the waiting directives, the coordinator wants the last.
TEST_F(ListingsTest, ADatasetIsNotListedTwiceAtATime) {
  objects_.Hold("/twice");
  listings_->Add(Directive("twice", 1));
  objects_.Came(1);
  for (const uint64_t request : {2, 3, 4})
    listings_->Add(Directive("twice", request));
  listings_->Add(Directive("sound", 5));
  coordinator_.answers.Came(1);
  EXPECT_THAT(objects_.Came(2), ElementsAre("/twice", "/sound"));
  objects_.ReleaseAll();
  EXPECT_THAT(
      coordinator_.answers.Came(3),
      ElementsAre("sound:5 failed", "twice:1 failed", "twice:4 failed"));
}

TEST_F(ListingsTest, ALookThatHangsDoesNotHoldUpAnother) {
  coordinator_.looks.Hold(LookOf("hangs"));
  listings_->Add(LookAt("hangs", 1));
  EXPECT_THAT(coordinator_.looks.Came(1), ElementsAre(LookOf("hangs")));
  listings_->Add(LookAt("hangs", 2));
  listings_->Add(LookAt("sound", 3));
  EXPECT_THAT(coordinator_.answers.Came(1), ElementsAre("sound:3 looked"));
  EXPECT_THAT(coordinator_.looks.Came(2),
              ElementsAre(LookOf("hangs"), LookOf("sound")));
}

TEST_F(ListingsTest, StopEndsAllThatHang) {
  for (const std::string dataset : {"a", "b", "c", "d"}) {
    objects_.Hold("/" + dataset);
    listings_->Add(Directive(dataset, 1));
  }
  EXPECT_THAT(objects_.Came(3), SizeIs(3));
  listings_->Stop();
  storage_->Stop();
  listings_.reset();  // otherwise the test does not end
  EXPECT_THAT(objects_.Came(3), SizeIs(3)) << "that which waited never began";
}

WantedListing Wanted(const std::string& dataset, uint64_t request) {
  WantedListing wanted;
  wanted.directive.set_dataset_id(dataset);
  wanted.directive.set_request_id(request);
  return wanted;
}

// A wait would never end here.
std::string Pop(DirectiveQueue* queue) {
  const std::optional<WantedListing> wanted = queue->Pop();
  if (!wanted) return "closed";
  return fmt::format("{}:{}", wanted->directive.dataset_id(),
                     wanted->directive.request_id());
}

TEST(DirectiveQueue, GivesWhatCameFirstUnlessItsDatasetIsInHand) {
  DirectiveQueue queue(8);
  for (const auto& [dataset, request] :
       {std::pair("a", 1), {"b", 2}, {"a", 3}, {"c", 4}, {"b", 5}})
    EXPECT_TRUE(queue.Add(Wanted(dataset, request)));
  EXPECT_EQ(Pop(&queue), "a:1");
  EXPECT_EQ(Pop(&queue), "b:2");
  EXPECT_EQ(Pop(&queue), "c:4");
  queue.Done("b");
  queue.Done("a");
  EXPECT_EQ(Pop(&queue), "a:3");
  EXPECT_EQ(Pop(&queue), "b:5");
}

TEST(DirectiveQueue, ANewerOneTakesThePlaceOfOneThatWaits) {
  DirectiveQueue queue(2);
  EXPECT_TRUE(queue.AddNewer(Wanted("a", 1)));
  EXPECT_TRUE(queue.AddNewer(Wanted("b", 2)));
  EXPECT_TRUE(queue.AddNewer(Wanted("a", 3))) << "it wants no room";
  WantedListing more = Wanted("c", 4);
  EXPECT_FALSE(queue.AddNewer(std::move(more)));
  EXPECT_EQ(more.directive.dataset_id(), "c");
  EXPECT_EQ(Pop(&queue), "a:3");
  EXPECT_TRUE(queue.AddNewer(Wanted("a", 5))) << "that in hand is let be";
  EXPECT_EQ(Pop(&queue), "b:2");
  queue.Close();
  EXPECT_FALSE(queue.AddNewer(Wanted("a", 6)));
  EXPECT_EQ(Pop(&queue), "closed");
}

}  // namespace
}  // namespace leat::worker
