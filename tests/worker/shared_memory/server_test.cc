// SPDX-License-Identifier: Apache-2.0
#include "worker/shared_memory/server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/open_files.h"
#include "tests/worker/shared_memory/client.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

constexpr size_t kFields[] = {100, 8};
constexpr uint32_t kRows = 64;
constexpr uint32_t kPlaces[] = {3, 1, 2};

// Waits until `done`: only for what another thread does soon.
template <class Done>
bool Eventually(const Done& done) {
  const MonotonicTime end = Clock::Real().Now() + std::chrono::seconds(10);
  while (!done()) {
    if (Clock::Real().Now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

class SharedMemoryServerTest : public ::testing::Test {
 protected:
  ~SharedMemoryServerTest() override {
    server_.reset();
    EXPECT_EQ(CountMappings(kMemoryName), 0u);
    if (files_ != 0) {
      EXPECT_EQ(CountOpenFiles(), files_);
    }
  }
  void Start(DeviceImporter* importer = nullptr) {
    files_ = CountOpenFiles();
    auto server = SharedMemoryServer::Start(options_, importer);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  // A stream with its memory connection.
  struct Pair {
    std::shared_ptr<StreamSharing> stream;
    std::unique_ptr<SharedMemoryClient> client;
  };
  Pair Connect() {
    Pair pair{server_->OpenStream(),
              std::make_unique<SharedMemoryClient>(server_->address())};
    EXPECT_TRUE(pair.client->Hello(pair.stream->secret()).ok());
    return pair;
  }
  static v1::ShareMemory Good(const ClientMemory& memory, uint64_t id = 1) {
    return memory.Describe(id, kRows, {0, kRows * kFields[0]});
  }

  SharedMemoryOptions options_;
  std::unique_ptr<SharedMemoryServer> server_;
  size_t files_ = 0;
};

TEST_F(SharedMemoryServerTest, SharedMemoryIsTheSameMemory) {
  Start();
  auto [stream, client] = Connect();
  {
    ClientMemory memory(kRows * 108);
    ASSERT_TRUE(client->Share(Good(memory), memory.fd()).ok());
    EXPECT_EQ(server_->counters().bytes, memory.bytes());
    const auto offer = stream->Borrow(1, kPlaces, kFields);
    ASSERT_TRUE(offer.ok()) << offer.status();
    offer->memory->base()[5] = std::byte{77};
    EXPECT_EQ(memory.base()[5], 77);
    EXPECT_EQ(offer->memory->rows(), kRows);
    EXPECT_EQ(offer->memory->device(), -1);
    EXPECT_EQ(offer->memory->field_offsets()[1], kRows * 100);
    EXPECT_TRUE(absl::IsFailedPrecondition(client->Return(1)));
    stream->GiveBack(1, offer->number, kPlaces);
    EXPECT_TRUE(client->Return(1).ok());
    EXPECT_TRUE(absl::IsNotFound(client->Return(1)));
    EXPECT_TRUE(
        absl::IsInvalidArgument(stream->Borrow(1, kPlaces, kFields).status()));
    EXPECT_EQ(CountMappings(kMemoryName), 2u);  // ours, and the offer's
  }
  EXPECT_EQ(CountMappings(kMemoryName), 0u);
  EXPECT_EQ(server_->counters().bytes, 0u);
  EXPECT_EQ(server_->counters().memories, 0u);
}

TEST_F(SharedMemoryServerTest, APlaceIsSharedOnceAtATime) {
  Start();
  auto [stream, client] = Connect();
  ClientMemory memory(kRows * 108);
  ASSERT_TRUE(client->Share(Good(memory), memory.fd()).ok());
  const auto borrow = [&, &stream = stream](std::vector<uint32_t> slots) {
    return stream->Borrow(1, slots, kFields);
  };
  const auto first = borrow({1, 2, 3});
  ASSERT_TRUE(first.ok());
  const auto again = borrow({0, 3});
  EXPECT_TRUE(absl::IsInvalidArgument(again.status()));
  EXPECT_THAT(Message(again.status()), HasSubstr("slot 3"));
  EXPECT_TRUE(absl::IsInvalidArgument(borrow({0, 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(borrow({0, kRows}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(borrow({~0u}).status()));
  const auto zero = borrow({0});  // the refused requests have left nothing
  ASSERT_TRUE(zero.ok());
  const uint32_t three[] = {3};
  stream->GiveBack(1, zero->number, three);  // not its own
  EXPECT_FALSE(borrow({3}).ok());
  stream->GiveBack(1, first->number, three);
  EXPECT_TRUE(borrow({3}).ok());
  EXPECT_FALSE(borrow({1}).ok());
}

TEST_F(SharedMemoryServerTest, WithoutTheSecretNothingIsTaken) {
  Start();
  const auto stream = server_->OpenStream();
  const std::string secret = stream->secret();
  std::string wrong = secret;
  wrong.back() = static_cast<char>(wrong.back() ^ 1);
  for (const std::string& each : {wrong, std::string(), std::string(16, '\0'),
                                  secret + "x", secret.substr(0, 8)}) {
    SharedMemoryClient client(server_->address());
    EXPECT_TRUE(absl::IsUnauthenticated(client.Hello(each)));
    EXPECT_TRUE(client.WaitClosed());
  }
  {
    SharedMemoryClient client(server_->address());
    EXPECT_TRUE(absl::IsFailedPrecondition(client.Hello(secret, 2)));
    EXPECT_TRUE(client.WaitClosed());
  }
  {
    ClientMemory memory(kRows * 108);
    SharedMemoryClient client(server_->address());
    EXPECT_TRUE(
        absl::IsFailedPrecondition(client.Share(Good(memory), memory.fd())));
    EXPECT_TRUE(client.WaitClosed());
  }
  SharedMemoryClient client(server_->address());
  EXPECT_TRUE(client.Hello(secret).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(client.Hello(secret)));
  SharedMemoryClient second(server_->address());
  EXPECT_TRUE(absl::IsFailedPrecondition(second.Hello(secret)));
  stream->Close();
  EXPECT_TRUE(client.WaitClosed());
  SharedMemoryClient late(server_->address());
  EXPECT_FALSE(late.Hello(secret).ok());
}

TEST_F(SharedMemoryServerTest, WhatIsWrongWithAMemoryIsSaidAndNothingIsMapped) {
  Start();
  auto [stream, client] = Connect();
  ClientMemory memory(kRows * 108);
  const v1::ShareMemory good = Good(memory);
  const auto refused = [&client = client](const v1::ShareMemory& share,
                                          int fd) {
    const absl::Status status = client->Share(share, fd);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  };
  const auto changed = [&](auto change) {
    v1::ShareMemory share = good;
    change(share);
    refused(share, memory.fd());
  };
  constexpr uint64_t kHuge = ~uint64_t{0};
  changed([](auto& share) { share.set_memory_id(0); });
  changed(
      [](auto& share) { share.set_kind(v1::ShareMemory::KIND_UNSPECIFIED); });
  changed([](auto& share) { share.set_bytes(0); });
  changed([](auto& share) { share.set_bytes(share.mapped_bytes() + 1); });
  changed([](auto& share) { share.set_mapped_bytes(kPage); });
  changed([](auto& share) { share.set_mapped_bytes(4 * kPage); });
  changed([](auto& share) { share.set_rows(0); });
  changed([](auto& share) { share.set_rows(~0u); });
  changed([](auto& share) { share.clear_field_offsets(); });
  changed([](auto& share) { share.set_field_offsets(1, kHuge); });
  changed([](auto& share) { share.set_field_offsets(1, share.bytes() + 1); });
  changed([](auto& share) {
    for (int i = 0; i < 2000; ++i) share.add_field_offsets(0);
  });
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  refused(good, ends[0]);
  close(ends[0]);
  close(ends[1]);
  const Fd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  refused(good, file.get());
  const Fd directory(open("/", O_RDONLY | O_CLOEXEC));
  refused(good, directory.get());
  const Fd unsealed(memfd_create(kMemoryName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), static_cast<off_t>(memory.bytes())), 0);
  refused(good, unsealed.get());
  fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_GROW);
  refused(good, unsealed.get());
  v1::ShareMemory huge = good;
  huge.set_mapped_bytes(kHuge);
  EXPECT_TRUE(absl::IsResourceExhausted(client->Share(huge, memory.fd())));
  v1::ShareMemory device = good;
  device.set_kind(v1::ShareMemory::KIND_DEVICE);
  EXPECT_TRUE(absl::IsUnimplemented(client->Share(device, memory.fd())));
  // A memfd that may not be written.
  auto sealed = rpc::CreateHostMemory(kMemoryName, memory.bytes());
  fcntl(sealed->get(), F_ADD_SEALS, F_SEAL_WRITE);
  EXPECT_FALSE(client->Share(good, sealed->get()).ok());
  EXPECT_EQ(server_->counters().bytes, 0u);
  EXPECT_EQ(CountMappings(kMemoryName), 1u);

  EXPECT_TRUE(client->Share(good, memory.fd()).ok());
  refused(good, memory.fd());  // the same number again
}

TEST_F(SharedMemoryServerTest, RowsThatTheMemoryDoesNotHoldAreNotWritten) {
  Start();
  auto [stream, client] = Connect();
  ClientMemory memory(kPage);
  const auto share = [&, &client = client](uint64_t id, uint32_t rows,
                                           std::vector<uint64_t> offsets) {
    ASSERT_TRUE(
        client->Share(memory.Describe(id, rows, offsets), memory.fd()).ok());
  };
  share(1, 37, {0, 3700});  // 37 × 100 + 37 × 8 = 3996
  share(2, 37, {397, 0});   // one byte too far
  share(3, 4096, {0, 0});   // rows of the field do not fit
  share(4, 10, {4096, 0});
  share(5, 10, {0});
  share(6, 10, {0, 1000, 2000});
  EXPECT_TRUE(stream->Borrow(1, kPlaces, kFields).ok());
  for (uint64_t id = 2; id <= 7; ++id)
    EXPECT_TRUE(
        absl::IsInvalidArgument(stream->Borrow(id, kPlaces, kFields).status()))
        << id;
  EXPECT_TRUE(
      absl::IsInvalidArgument(stream->Borrow(0, kPlaces, kFields).status()));
}

TEST_F(SharedMemoryServerTest, MemoriesAndBytesAreBounded) {
  options_.limits = {.max_memories_per_stream = 3,
                     .max_memories = 5,
                     .max_shared_bytes = 4 * kPage};
  Start();
  auto a = Connect(), b = Connect();
  ClientMemory page(kPage), two(2 * kPage), five(5 * kPage);
  const auto share = [](Pair& pair, uint64_t id, const ClientMemory& memory) {
    return pair.client->Share(memory.Describe(id, 1, {0}), memory.fd());
  };
  EXPECT_TRUE(absl::IsResourceExhausted(share(a, 1, five)));
  EXPECT_TRUE(share(a, 1, page).ok());
  EXPECT_TRUE(share(a, 2, page).ok());
  EXPECT_TRUE(share(a, 3, page).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(share(a, 4, page)));
  EXPECT_TRUE(absl::IsResourceExhausted(share(b, 1, two)));
  EXPECT_TRUE(share(b, 1, page).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(share(b, 2, page)));
  ASSERT_TRUE(a.client->Return(1).ok());
  EXPECT_TRUE(share(b, 2, page).ok());
}

TEST_F(SharedMemoryServerTest,
       TheConnectionOutlivesTheStreamWhileAGroupWrites) {
  Start();
  auto [stream, client] = Connect();
  ClientMemory memory(kRows * 108);
  ASSERT_TRUE(client->Share(Good(memory), memory.fd()).ok());
  auto offer = stream->Borrow(1, kPlaces, kFields);
  ASSERT_TRUE(offer.ok());
  stream->Close();
  EXPECT_TRUE(
      absl::IsUnavailable(stream->Borrow(1, kPlaces, kFields).status()));
  stream.reset();
  EXPECT_FALSE(client->ClosedNow());
  offer->memory->base()[0] = std::byte{1};
  offer = absl::CancelledError("");
  EXPECT_TRUE(client->WaitClosed());
  EXPECT_EQ(CountMappings(kMemoryName), 1u);
}

TEST_F(SharedMemoryServerTest,
       AConsumerThatClosesTakesItBackButForGroupsInWork) {
  Start();
  auto [stream, client] = Connect();
  absl::StatusOr<StreamSharing::Offer> offer;
  {
    ClientMemory memory(kRows * 108);
    ASSERT_TRUE(client->Share(Good(memory), memory.fd()).ok());
    offer = stream->Borrow(1, kPlaces, kFields);
    client->Close();
  }
  ASSERT_TRUE(offer.ok());
  EXPECT_TRUE(Eventually([&, &stream = stream] {
    return absl::IsUnavailable(stream->Borrow(1, kPlaces, kFields).status());
  }));
  std::memset(offer->memory->base(), 1, kRows * 108);  // still mapped
  EXPECT_EQ(CountMappings(kMemoryName), 1u);
  offer = absl::CancelledError("");
  EXPECT_EQ(CountMappings(kMemoryName), 0u);
}

TEST_F(SharedMemoryServerTest, ThoseWhoSayNothingOrGarbageAreCutOff) {
  options_.handshake_timeout = std::chrono::milliseconds(500);
  Start();
  auto good = Connect();
  SharedMemoryClient silent(server_->address());
  EXPECT_TRUE(silent.WaitClosed());
  std::minstd_rand random(7);
  for (int i = 0; i < 50; ++i) {
    auto pair = Connect();
    std::string bytes(2 + random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random() >> 8);
    bytes[0] = 0;
    ASSERT_GT(send(pair.client->socket(), bytes.data(), bytes.size(), 0), 0);
    EXPECT_TRUE(absl::IsInvalidArgument(pair.client->Reply()));
    EXPECT_TRUE(pair.client->WaitClosed());
  }
  // Understood, but wrong: the connection stays.
  v1::ShareRequest nothing;
  EXPECT_TRUE(absl::IsInvalidArgument(good.client->Call(nothing)));
  EXPECT_TRUE(absl::IsInvalidArgument(good.client->Call(nothing, 0)));
  ClientMemory memory(kRows * 108);
  EXPECT_TRUE(absl::IsInvalidArgument(good.client->Share(Good(memory), -1)));
  EXPECT_TRUE(good.client->Share(Good(memory), memory.fd()).ok());
}

TEST_F(SharedMemoryServerTest, OneThatDoesNotReadItsRepliesIsCutOff) {
  Start();
  auto [stream, client] = Connect();
  v1::ShareRequest request;
  request.mutable_give_back()->set_memory_id(1);
  absl::Status status;
  while (status.ok())
    status = rpc::SendPacket(client->socket(), request, -1,
                             Clock::Real().Now() + std::chrono::seconds(5));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  auto other = Connect();  // no other is affected
}

TEST_F(SharedMemoryServerTest, AtTheBoundOthersWaitForTheirTurn) {
  options_.max_connections = 2;
  Start();
  auto a = Connect();
  auto b = Connect();
  const auto stream = server_->OpenStream();
  SharedMemoryClient waiting(server_->address());
  v1::ShareRequest hello;
  hello.mutable_hello()->set_version(1);
  hello.mutable_hello()->set_secret(stream->secret());
  ASSERT_TRUE(rpc::SendPacket(waiting.socket(), hello, -1,
                              Clock::Real().Now() + std::chrono::seconds(5))
                  .ok());
  EXPECT_EQ(server_->counters().connections, 2u);
  a.client->Close();
  EXPECT_TRUE(waiting.Reply().ok());
}

TEST_F(SharedMemoryServerTest, StoppedWhileMemoryIsInWork) {
  Start();
  auto [stream, client] = Connect();
  ClientMemory memory(kRows * 108);
  ASSERT_TRUE(client->Share(Good(memory), memory.fd()).ok());
  auto offer = stream->Borrow(1, kPlaces, kFields);
  ASSERT_TRUE(offer.ok());
  server_.reset();
  EXPECT_FALSE(client->ClosedNow());
  offer->memory->base()[0] = std::byte{9};
  EXPECT_EQ(memory.base()[0], 9);
  offer = absl::CancelledError("");
  EXPECT_TRUE(client->WaitClosed());
}

class FakeImporter : public DeviceImporter {
 public:
  std::vector<std::string> uuids() const override { return {"00ff"}; }
  absl::StatusOr<std::shared_ptr<const SharedMemory>> Import(
      int fd, const v1::ShareMemory& share) override {
    if (share.device_uuid() != "00ff")
      return NotFound("no GPU {}", share.device_uuid());
    class Memory : public SharedMemory {
     public:
      std::byte* base() const override { return nullptr; }
      int device() const override { return 3; }
      uint32_t rows() const override { return kRows; }
      std::span<const uint64_t> field_offsets() const override {
        return offsets_;
      }
      const std::vector<uint64_t> offsets_ = {0, kRows * 100};
    };
    return std::make_shared<Memory>();
  }
};

TEST_F(SharedMemoryServerTest, AGpusMemoryGoesToTheImporter) {
  FakeImporter importer;
  Start(&importer);
  EXPECT_THAT(server_->device_uuids(), testing::ElementsAre("00ff"));
  auto [stream, client] = Connect();
  ClientMemory memory(kRows * 108);
  v1::ShareMemory share = Good(memory);
  share.set_kind(v1::ShareMemory::KIND_DEVICE);
  EXPECT_TRUE(absl::IsNotFound(client->Share(share, memory.fd())));
  share.set_device_uuid("00ff");
  ASSERT_TRUE(client->Share(share, memory.fd()).ok());
  const auto offer = stream->Borrow(1, kPlaces, kFields);
  ASSERT_TRUE(offer.ok());
  EXPECT_EQ(offer->memory->device(), 3);
}

// Streams open, share, borrow, and end in every order at the same time.
TEST_F(SharedMemoryServerTest, SurvivesStorms) {
  options_.max_connections = 3;
  Start();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int round = 0; round < 25; ++round) {
        auto [stream, client] = Connect();
        ClientMemory memory(kRows * 108);
        std::vector<StreamSharing::Offer> offers;
        for (uint64_t id = 1; id <= 3; ++id) {
          ASSERT_TRUE(client->Share(Good(memory, id), memory.fd()).ok());
          auto offer = stream->Borrow(id, kPlaces, kFields);
          ASSERT_TRUE(offer.ok());
          offers.push_back(*std::move(offer));
        }
        std::thread worker([&] {
          for (auto& offer : offers) {
            offer.memory->base()[0] = std::byte{1};
            offer.memory.reset();
          }
        });
        if (random() % 2 == 0) client->Close();
        if (random() % 2 == 0) stream->Close();
        worker.join();
        stream.reset();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Eventually([&] { return server_->counters().connections == 0; }));
  // A connection that ends releases its memories after it is counted out.
  EXPECT_TRUE(Eventually([&] { return server_->counters().memories == 0; }));
}

}  // namespace
}  // namespace leat::worker
