// SPDX-License-Identifier: Apache-2.0
//
// Blocks of indexes over real sockets.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>

#include "core/pipeline/arguments.h"
#include "core/pipeline/long_list.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/wire/block_messages.h"
#include "server/calls/block_transfer.h"
#include "server/calls/list_blocks.h"
#include "tests/server/calls/service_fixture.h"

namespace leat::server {
namespace {

namespace fs = std::filesystem;
using grpc::StatusCode;
using testing::HasSubstr;

std::string BytesOf(const Digest& digest) {
  return {digest.begin(), digest.end()};
}

class ServiceBlocksTest : public ServiceTest {
 protected:
  ServiceBlocksTest() {
    std::string name = (fs::temp_directory_path() / "leat-service-XXXXXX");
    root_ = mkdtemp(name.data());
    config_.state_dir = root_ / "state";
    // The fake worker sends no heartbeats.
    config_.coordinator.membership.lost_after = std::chrono::minutes(2);
    Start();
  }
  ~ServiceBlocksTest() override {
    daemon_.reset();
    fs::remove_all(root_);
  }

  static IndexBlock BlockOf(const std::string& bytes, uint64_t samples) {
    return {.sha256 = HashOf(bytes), .bytes = bytes.size(), .samples = samples};
  }
  std::vector<bool> Find(const v1::IndexDataset& asked,
                         const std::vector<IndexBlock>& blocks) {
    v1::FindIndexBlocksRequest request;
    request.set_dataset_id(asked.dataset_id());
    request.set_request_id(asked.request_id());
    for (const IndexBlock& block : blocks)
      *request.add_blocks() = rpc::ToProto(block);
    v1::FindIndexBlocksResponse response;
    EXPECT_TRUE(
        client_->coordinator()
            .FindIndexBlocks(client_->Context().get(), request, &response)
            .ok());
    return {response.present().begin(), response.present().end()};
  }
  grpc::Status Get(const Digest& name, std::string* bytes) {
    v1::GetIndexBlockRequest request;
    request.set_sha256(BytesOf(name));
    const auto context = client_->Context();
    auto reader = client_->coordinator().GetIndexBlock(context.get(), request);
    v1::GetIndexBlockResponse response;
    bytes->clear();
    while (reader->Read(&response)) *bytes += response.chunk();
    return reader->Finish();
  }
  v1::GetIndexBlocksResponse Indexes(const std::vector<std::string>& ids,
                                     StatusCode code = StatusCode::OK) {
    v1::GetIndexBlocksRequest request;
    for (const std::string& id : ids) request.add_dataset_ids(id);
    v1::GetIndexBlocksResponse response;
    EXPECT_EQ(client_->coordinator()
                  .GetIndexBlocks(client_->Context().get(), request, &response)
                  .error_code(),
              code);
    return response;
  }
  // Has a dataset listed, with these bytes as its blocks. Returns its ID.
  std::string List(FakeWorker* worker, const std::string& name,
                   const std::vector<std::string>& bytes) {
    v1::CreateJobResponse created;
    std::future<grpc::Status> creating = std::async(
        [&] { return client_->Create(SpecOf(name, "/" + name), &created); });
    const v1::IndexDataset asked = worker->Asked();
    std::vector<IndexBlock> blocks;
    for (const std::string& each : bytes) {
      blocks.push_back(BlockOf(each, blocks.empty() ? 0 : 1000));
      EXPECT_TRUE(worker->Put(asked, blocks.back(), each).ok());
    }
    EXPECT_TRUE(worker->Upload(FakeWorker::HeaderOf(asked, blocks)).ok());
    EXPECT_TRUE(creating.get().ok());
    return asked.dataset_id();
  }
  fs::path root_;
};

TEST_F(ServiceBlocksTest, SmallIndexesComeTogether) {
  FakeWorker worker(client_.get(), "a");
  const std::string small = List(&worker, "small", {"head", "block"});
  const std::string large =
      List(&worker, "large", {"head", std::string(20'000, 'x')});
  const auto both = Indexes({small, "none", large, small});
  ASSERT_EQ(both.indexes_size(), 4);
  EXPECT_EQ(both.indexes(0).index(), "headblock");
  EXPECT_EQ(both.indexes(0).index_sha256().size(), 32u);
  EXPECT_EQ(both.indexes(1).index_sha256(), "") << "there is none";
  EXPECT_EQ(both.indexes(2).index(), "");
  EXPECT_EQ(both.indexes(2).blocks_size(), 2);
  EXPECT_EQ(both.indexes(3).index(), "headblock");
  Indexes({}, StatusCode::INVALID_ARGUMENT);
  Indexes(std::vector<std::string>(65, small), StatusCode::INVALID_ARGUMENT);
  // A block that is damaged is left to GetIndexBlock, which tells.
  std::ofstream(root_ / "state/blocks" / ToHex(HashOf("block")),
                std::ios::binary)
      << "clock";
  EXPECT_EQ(Indexes({small}).indexes(0).index(), "");
}

// 16 KiB each: as many as fit into 1 MiB.
TEST_F(ServiceBlocksTest, AnAnswerAboutIndexesIsBounded) {
  FakeWorker worker(client_.get(), "a");
  const std::string id =
      List(&worker, "j", {"head", std::string((16 << 10) - 4, 'x')});
  const auto many = Indexes(std::vector<std::string>(64, id));
  EXPECT_EQ(many.indexes_size(), 63);
  EXPECT_EQ(many.indexes(62).index().size(), 16u << 10);
}

TEST_F(ServiceBlocksTest, AnIndexGoesUpAndComesDownInBlocks) {
  const std::string head = "head", large((2 << 20) + 3, 'x'), small = "small";
  const std::vector<IndexBlock> blocks = {BlockOf(head, 0), BlockOf(large, 600),
                                          BlockOf(small, 400)};
  FakeWorker worker(client_.get(), "a");
  v1::CreateJobResponse created;
  std::future<grpc::Status> creating =
      std::async([&] { return client_->Create(SpecOf("j", "/d"), &created); });
  const v1::IndexDataset asked = worker.Asked();
  EXPECT_EQ(worker.Put(asked, blocks[1], small).error_code(),
            StatusCode::DATA_LOSS);
  EXPECT_EQ(worker.Put(asked, blocks[2], large).error_code(),
            StatusCode::DATA_LOSS);
  EXPECT_TRUE(worker.Put(asked, blocks[1], large).ok());
  EXPECT_EQ(Find(asked, blocks), (std::vector<bool>{false, true, false}));
  v1::IndexDataset stranger = asked;
  stranger.set_request_id(asked.request_id() + 1);
  EXPECT_EQ(worker.Put(stranger, blocks[0], head).error_code(),
            StatusCode::NOT_FOUND);
  EXPECT_TRUE(worker.Put(asked, blocks[0], head).ok());
  EXPECT_TRUE(worker.Put(asked, blocks[2], small).ok());
  ASSERT_TRUE(worker.Upload(FakeWorker::HeaderOf(asked, blocks)).ok());
  ASSERT_TRUE(creating.get().ok());

  const v1::GetIndexBlocksResponse index = Indexes({asked.dataset_id()});
  ASSERT_EQ(index.indexes_size(), 1);
  EXPECT_EQ(*rpc::BlocksFrom(index.indexes(0).blocks()), blocks);
  EXPECT_EQ(index.indexes(0).index(), "") << "2 MiB do not come with it";
  std::string bytes;
  EXPECT_TRUE(Get(blocks[1].sha256, &bytes).ok());
  EXPECT_EQ(bytes, large);
  EXPECT_EQ(Get(HashOf("none"), &bytes).error_code(), StatusCode::NOT_FOUND);
  // The coordinator names damage on its disk.
  const fs::path file = root_ / "state/blocks" / ToHex(blocks[2].sha256);
  std::ofstream(file, std::ios::binary) << "smell";
  const grpc::Status status = Get(blocks[2].sha256, &bytes);
  EXPECT_EQ(status.error_code(), StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr(ToHex(blocks[2].sha256)));
}

TEST_F(ServiceBlocksTest, AStrangerMovesNoBlocks) {
  client_ = std::make_unique<Client>(daemon_->address(), "guess");
  std::string bytes;
  const IndexBlock block = BlockOf("x", 1);
  EXPECT_EQ(Get(block.sha256, &bytes).error_code(),
            StatusCode::UNAUTHENTICATED);
  FakeWorker worker(client_.get(), "a");
  EXPECT_EQ(worker.Put({}, block, "x").error_code(),
            StatusCode::UNAUTHENTICATED);
  v1::FindIndexBlocksResponse found;
  EXPECT_EQ(client_->coordinator()
                .FindIndexBlocks(client_->Context().get(), {}, &found)
                .error_code(),
            StatusCode::UNAUTHENTICATED);
  v1::GetIndexBlocksResponse index;
  EXPECT_EQ(client_->coordinator()
                .GetIndexBlocks(client_->Context().get(), {}, &index)
                .error_code(),
            StatusCode::UNAUTHENTICATED);
}

class ServiceListsTest : public ServiceBlocksTest {
 protected:
  ServiceListsTest() {
    spec_.pipeline.nodes[0] = {
        "readers.files",
        {},
        {{"files", std::vector<std::string>(200'000, "/a")},
         {"labels", std::vector<int64_t>(200'000, 3)}}};
    EXPECT_TRUE(ShortenLists(&spec_.pipeline).ok());
  }
  LongList List(const char* name) const {
    return std::get<LongList>(spec_.pipeline.nodes[0].args.at(name));
  }
  grpc::Status PutList(const Digest& name, std::string_view bytes) {
    v1::PutListBlockRequest request;
    request.set_sha256(BytesOf(name));
    request.set_bytes(std::string(bytes));
    v1::PutListBlockResponse response;
    return client_->coordinator().PutListBlock(client_->Context().get(),
                                               request, &response);
  }
  std::vector<bool> FindList(const LongList& list) {
    v1::FindListBlocksRequest request;
    for (size_t i = 0; i < list.blocks.size(); ++i) {
      request.add_blocks()->set_sha256(BytesOf(list.blocks[i]));
      request.mutable_blocks(static_cast<int>(i))
          ->set_bytes(BlockBytes(list, i));
    }
    v1::FindListBlocksResponse found;
    EXPECT_TRUE(client_->coordinator()
                    .FindListBlocks(client_->Context().get(), request, &found)
                    .ok());
    return {found.present().begin(), found.present().end()};
  }

  JobSpec spec_ = SpecOf("j", "/d");
};

TEST_F(ServiceListsTest, AJobIsMadeWhenAllBlocksOfItsListsAreThere) {
  const LongList files = List("files"), labels = List("labels");
  ASSERT_EQ(labels.blocks.size(), 2);
  FakeWorker worker(client_.get(), "a");
  v1::CreateJobResponse created;
  grpc::Status status = client_->Create(spec_, &created);
  EXPECT_EQ(status.error_code(), StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(),
              HasSubstr("readers.files: argument files: block " +
                        ToHex(files.blocks[0])));
  EXPECT_TRUE(PutList(files.blocks[0], leat::BlockOf(files, 0)).ok());
  EXPECT_TRUE(PutList(labels.blocks[1], leat::BlockOf(labels, 1)).ok());
  EXPECT_TRUE(PutList(labels.blocks[1], leat::BlockOf(labels, 1)).ok())
      << "again";
  EXPECT_EQ(FindList(labels), (std::vector<bool>{false, true}));
  EXPECT_THAT(client_->Create(spec_, &created).error_message(),
              HasSubstr(ToHex(labels.blocks[0])));
  EXPECT_TRUE(PutList(labels.blocks[0], leat::BlockOf(labels, 0)).ok());

  // A coordinator with a state keeps them.
  worker.Vanish();
  Start();
  EXPECT_EQ(FindList(labels), (std::vector<bool>{true, true}));
  FakeWorker second(client_.get(), "a");
  std::future<grpc::Status> creating =
      std::async([&] { return client_->Create(spec_, &created); });
  const v1::IndexDataset asked = second.Asked();
  const v1::LongList& told = asked.reader().args().at("labels").list_value();
  EXPECT_EQ(told.count(), 200'000);
  std::string bytes;
  EXPECT_TRUE(Get(labels.blocks[1], &bytes).ok());
  EXPECT_EQ(bytes, leat::BlockOf(labels, 1));
  ASSERT_EQ(second.Upload(FakeWorker::HeaderOf(asked, {})).error_code(),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(creating.get().ok());
}

TEST_F(ServiceListsTest, WhatIsNoBlockOfAListIsRefused) {
  const std::string large(kListBlockBytes + 1, 'x');
  EXPECT_EQ(PutList(HashOf("x"), "y").error_code(), StatusCode::DATA_LOSS);
  EXPECT_EQ(PutList(HashOf(""), "").error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(PutList(HashOf(large), large).error_code(),
            StatusCode::INVALID_ARGUMENT);
  v1::FindListBlocksRequest request;
  request.add_blocks()->set_sha256("short");
  v1::FindListBlocksResponse found;
  EXPECT_EQ(client_->coordinator()
                .FindListBlocks(client_->Context().get(), request, &found)
                .error_code(),
            StatusCode::INVALID_ARGUMENT);
  client_ = std::make_unique<Client>(daemon_->address(), "guess");
  EXPECT_EQ(PutList(HashOf("x"), "x").error_code(),
            StatusCode::UNAUTHENTICATED);
}

TEST_F(ServiceListsTest, NewBlocksHaveABoundForEachHour) {
  ListBlocks lists(&daemon_->coordinator(),
                   {.max_new_bytes = 10, .window = std::chrono::hours(1)});
  Now now = Now::Of(Clock::Real());
  const auto put = [&](const std::string& bytes) {
    v1::PutListBlockRequest request;
    request.set_sha256(BytesOf(HashOf(bytes)));
    request.set_bytes(bytes);
    return lists.Put(request, now);
  };
  EXPECT_TRUE(put("12345678").ok());
  EXPECT_TRUE(put("12345678").ok()) << "it is there already";
  EXPECT_THAT(std::string(Message(put("abc"))),
              HasSubstr("lists of 8 bytes were brought lately: the limit is 10 "
                        "in 3600 s"));
  EXPECT_TRUE(put("ab").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(put("c")));
  now.mono += std::chrono::hours(1);
  EXPECT_TRUE(put("c").ok());
}

TEST(TransferSlots, AreBounded) {
  TransferSlots slots(2);
  EXPECT_TRUE(slots.Take());
  EXPECT_TRUE(slots.Take());
  EXPECT_FALSE(slots.Take());
  slots.Give();
  EXPECT_TRUE(slots.Take());
}

}  // namespace
}  // namespace leat::server
