// SPDX-License-Identifier: Apache-2.0
//
// A worker takes records and their forms from another one over a real server,
// and its rows equal those of a worker with storage alone, whatever the other
// one answers.
#include "worker/serving/records_service.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/call/channel.h"
#include "rpc/server/server.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/cache/disk_forms_fixture.h"
#include "worker/job/job_table.h"
#include "worker/serving/record_client.h"
#include "worker/serving/shard_mover.h"

namespace leat::worker {
namespace {

using leat::testing::MakeJpeg;
using ::testing::HasSubstr;

constexpr uint64_t kImages = 40;
constexpr uint64_t kTogether = 8;  // of them are read by one request
// Longer than an answer takes on a busy machine.
constexpr auto kStorageTakes = std::chrono::milliseconds(400);

// Takes a while for each record, and as long for several together.
class SlowSource final : public FormatSource {
 public:
  explicit SlowSource(std::shared_ptr<const Source> source,
                      Duration takes = kStorageTakes)
      : source_(std::move(source)), takes_(takes) {}
  uint64_t num_samples() const override { return source_->num_samples(); }
  uint64_t RecordOf(uint64_t sample) const override {
    return source_->RecordOf(sample);
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    std::this_thread::sleep_for(takes_);
    ++reads;
    return source_->Read(sample);
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override {
    std::this_thread::sleep_for(takes_);
    ++reads;
    return source_->ReadMany(samples);
  }
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits&) const override {
    return std::min<size_t>(samples.size(), kTogether);
  }
  const Digest& fingerprint() const override { return source_->fingerprint(); }
  std::string Describe(uint64_t sample) const override {
    return source_->Describe(sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return source_->Locate(sample);
  }

  mutable std::atomic<uint64_t> reads{0};

 private:
  const std::shared_ptr<const Source> source_;
  const Duration takes_;
};

// Changes the true service's answers.
class Meddler final : public v1::RecordsService::Service {
 public:
  using Change = std::function<void(const v1::GetRecordRequest& request,
                                    v1::GetRecordResponse* answer)>;
  Meddler(const std::string& address, Change change)
      : stub_(v1::RecordsService::NewStub(rpc::MakeChannel(address, {}))),
        change_(std::move(change)) {}

  grpc::Status GetRecord(grpc::ServerContext*,
                         const v1::GetRecordRequest* request,
                         v1::GetRecordResponse* answer) override {
    grpc::ClientContext context;
    const grpc::Status status = stub_->GetRecord(&context, *request, answer);
    if (status.ok()) change_(*request, answer);
    return status;
  }

 private:
  const std::unique_ptr<v1::RecordsService::Stub> stub_;
  const Change change_;
};

// Makes the checksum and the proof match the answer.
void Seal(const rpc::WorkerKey& key, const v1::GetRecordRequest& request,
          v1::GetRecordResponse* answer) {
  answer->set_crc32c(ExtendCrc32c(Crc32c(answer->record()),
                                  std::as_bytes(std::span(answer->form()))));
  answer->set_proof(*key.Prove(request, answer->crc32c()));
}

// `owner_` is the worker that owns all shards; jobs of Asking are another's.
class RecordsServiceTest : public DiskFormsTest {
 protected:
  RecordsServiceTest() {
    std::vector<std::string> files;
    for (uint32_t seed = 1; seed <= kImages; ++seed)
      files.push_back(MakeJpeg({.width = 160, .height = 120, .seed = seed}));
    WriteImages(files);
    fetcher_.Add(job_);
    address_ = Serve(records_service_.service());
    ShardsAreOf(address_);
  }
  ~RecordsServiceTest() override {
    records_service_.Stop();
    servers_.clear();
  }

  static std::string NewAddress() {
    static std::atomic<int> number = 0;
    return fmt::format("unix-abstract:leat-records-{}-{}", getpid(), ++number);
  }
  std::string Serve(grpc::Service* service) {
    const std::string address = NewAddress();
    auto server = rpc::Server::Start({.address = address}, {}, {service});
    EXPECT_TRUE(server.ok()) << server.status();
    servers_.push_back(*std::move(server));
    return address;
  }
  // Puts another service between the owner and the asking worker.
  void Meddle(Meddler::Change change) {
    meddlers_.push_back(std::make_unique<Meddler>(address_, std::move(change)));
    ShardsAreOf(Serve(meddlers_.back().get()));
  }
  void ShardsAreOf(const std::string& address) {
    v1::OwnedShards message;
    message.set_dataset_id(job_.info.datasets[0].id);
    const uint32_t shards = job_.info.datasets[0].shards.num_shards();
    message.set_num_shards(shards);
    message.set_owned(std::string((shards + 7) / 8, '\0'));
    v1::ShardsOfPeer* const of = message.add_peers();
    of->mutable_peer()->set_name("owner");
    of->mutable_peer()->set_address(address);
    of->mutable_peer()->set_public_key(key_->public_key());
    for (uint32_t shard = 0; shard < shards; ++shard) of->add_shards(shard);
    asking_owns_.Set(message.dataset_id(), OwnedShards::From(message));
  }
  // Makes this worker the one that asks the owner of these shards.
  void Own(const std::vector<MovedShard>& shards) {
    OwnedShards owned;
    owned.owned.resize(shards.size(), true);
    for (const MovedShard& each : shards) {
      owned.peers.push_back(each.from);
      owned.peer_of.push_back(each.shard + 1);
    }
    asking_owns_.Set(job_.info.datasets[0].id, std::move(owned));
  }
  JobTable::Runtime Load(JobTable* jobs) {
    absl::StatusOr<JobTable::Runtime> loaded = NotFound("not loaded");
    std::atomic<bool> done = false;
    jobs->Get(job_.key(), Epilogue::kWorker,
              [&](absl::StatusOr<JobTable::Runtime> runtime) {
                loaded = std::move(runtime);
                done = true;
                done.notify_all();
              });
    done.wait(false);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *loaded : nullptr;
  }
  // Makes the owner keep all records and their forms.
  void FillTheOwner() {
    const JobTable::Runtime loaded = Load(&owner_jobs_);
    ASSERT_NE(loaded, nullptr);
    owner_use_ = loaded->BeginUse();
    for (uint64_t epoch = 0; epoch < 4; ++epoch) CheckEpoch(*loaded, epoch);
    ASSERT_EQ(owner_cache_.stats().records, kImages);
  }
  // Returns a job of a worker that keeps `bytes` and owns nothing.
  std::shared_ptr<const JobRuntime> Asking(
      SampleCache* cache, std::shared_ptr<const Source> source = nullptr) {
    if (source == nullptr) source = Storage();
    contexts_.push_back(std::make_unique<RuntimeContext>(
        RuntimeContext{.kernels = ImageKernels({}),
                       .cache = cache,
                       .bad_samples = &bad_,
                       .ownership = &asking_owns_,
                       .asker = &client_,
                       .forms = JpegFormCodec()}));
    auto job = JobRuntime::Create(job_.info, {std::move(source)},
                                  contexts_.back().get());
    EXPECT_TRUE(job.ok()) << job.status();
    return *std::move(job);
  }
  std::shared_ptr<const Source> Storage() const {
    auto source =
        OpenSource(job_.info.spec.pipeline.nodes[0], job_.blob, SourceLimits{});
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  // Like CheckEpoch, for rows whose records are read together before.
  void CheckTogether(const JobRuntime& job, uint64_t epoch) {
    if (plain_ == nullptr) plain_ = Job(&nothing_, nullptr);
    std::vector<RowOf> rows;
    for (uint64_t sample = 0; sample < records_; ++sample) {
      rows.push_back({.epoch = epoch, .sample = sample});
      if (rows.size() < kTogether) continue;
      const std::vector<RowRecords> records = job.ReadTogether(rows);
      for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].records = &records[i];
        ASSERT_EQ(Compute(job, rows[i]),
                  Compute(*plain_, epoch, rows[i].sample))
            << "epoch " << epoch << " sample " << rows[i].sample;
      }
      rows.clear();
    }
  }
  v1::GetRecordRequest Request(uint64_t record) {
    v1::GetRecordRequest request;
    const Digest key = plain_->sources()[0]->records().dataset_key();
    request.set_dataset(key.data(), key.size());
    request.set_record(record);
    request.set_nonce(std::string(rpc::kNonceBytes, 'n'));
    return request;
  }
  absl::Status Call(const v1::GetRecordRequest& request) {
    const auto stub =
        v1::RecordsService::NewStub(rpc::MakeChannel(address_, {}));
    grpc::ClientContext context;
    v1::GetRecordResponse answer;
    const grpc::Status status = stub->GetRecord(&context, request, &answer);
    return {static_cast<absl::StatusCode>(status.error_code()),
            status.error_message()};
  }

  const std::shared_ptr<const rpc::WorkerKey> key_ = *rpc::WorkerKey::Make();
  RichCache owner_cache_{64 << 20, &uses_, kBothForms};
  Ownership all_owned_, asking_owns_;
  const RuntimeContext owner_context_{.kernels = ImageKernels({}),
                                      .cache = &owner_cache_,
                                      .bad_samples = &bad_,
                                      .ownership = &all_owned_};
  FakeFetcher fetcher_;
  JobTable owner_jobs_{{}, &fetcher_, &owner_context_};
  std::shared_ptr<const void> owner_use_;
  std::atomic<bool> refuse_{false};
  RecordCalls records_service_{
      [this](std::string_view, const grpc::ServerContextBase&) {
        return refuse_ ? Unauthenticated("the token is wrong")
                       : absl::OkStatus();
      },
      &owner_jobs_, JpegFormCodec(), key_};
  FakeClock clock_;
  RecordClient client_{{}, clock_};
  std::string address_;
  std::vector<std::unique_ptr<Meddler>> meddlers_;
  std::vector<std::unique_ptr<rpc::Server>> servers_;
};

TEST_F(RecordsServiceTest, RecordsAndFormsComeFromTheOwnerAndNotFromStorage) {
  FillTheOwner();
  RichCache cache(0, &uses_, kBothForms);
  const auto source = std::make_shared<SlowSource>(Storage());
  const auto job = Asking(&cache, source);
  for (uint64_t epoch = 7; epoch < 10; ++epoch) CheckEpoch(*job, epoch);
  EXPECT_EQ(source->reads, 1u) << "to know what storage takes";
  EXPECT_EQ(client_.counters().found, 3 * kImages - 1);
  EXPECT_EQ(records_service_.given(), 3 * kImages - 1);
  EXPECT_GE(DecodesByForms(cache), 3 * kImages - FormShelf::kFirstPlain - 1);
}

TEST_F(RecordsServiceTest, RecordsWhosePixelsAreLargeComeWithoutThem) {
  FillTheOwner();
  const SampleCache::DatasetPtr dataset =
      owner_cache_.Open(plain_->sources()[0]->records().dataset_key(),
                        job_.info.datasets[0].id, job_.info.spec.name);
  const std::optional<StoredSample> before = owner_cache_.Find(dataset, 3);
  ASSERT_TRUE(before && before->form != nullptr);
  ASSERT_TRUE(owner_cache_.forms().KeepForm(dataset, 3, before->form->file,
                                            {.form = before->form->kept.form,
                                             .kind = JpegFormKind::kPixels,
                                             .bytes = kMaxRecordBytes + 1}));
  ASSERT_GT(owner_cache_.Find(dataset, 3)->bytes(), kMaxRecordBytes);
  EXPECT_TRUE(Call(Request(3)).ok()) << Call(Request(3));
}

TEST_F(RecordsServiceTest, RecordsThatOneRequestBringsComeFromTheOwner) {
  FillTheOwner();
  RichCache cache(0, &uses_, kBothForms);
  const auto source = std::make_shared<SlowSource>(Storage());
  const auto job = Asking(&cache, source);
  for (uint64_t epoch = 7; epoch < 10; ++epoch) CheckTogether(*job, epoch);
  EXPECT_EQ(source->reads, 1u) << "to know what storage takes";
  EXPECT_EQ(client_.counters().found, 3 * kImages - kTogether);
  EXPECT_GT(DecodesByForms(cache), kImages);
}

TEST_F(RecordsServiceTest, AnOwnerThatHangsLeavesRequestsToStorage) {
  FillTheOwner();
  std::promise<void> over;
  const std::shared_future<void> is_over = over.get_future();
  Meddle([is_over](const auto&, auto*) { is_over.wait(); });
  RichCache cache(0, &uses_, kBothForms);
  const auto source =
      std::make_shared<SlowSource>(Storage(), std::chrono::milliseconds(5));
  CheckTogether(*Asking(&cache, source), 1);
  EXPECT_EQ(client_.counters().failed, 1u);
  EXPECT_EQ(source->reads, kImages / kTogether);
  over.set_value();
}

// With their forms, and without a row that requests them.
TEST_F(RecordsServiceTest, ShardsThatMoveAreTakenFromTheirOwnerBefore) {
  FillTheOwner();
  RichCache cache(64 << 20, &uses_, kBothForms);
  const auto source = std::make_shared<SlowSource>(Storage());
  const auto job = Asking(&cache, source);
  const auto use = job->BeginUse();
  JobTable jobs({}, &fetcher_, contexts_.back().get());
  Load(&jobs);
  std::vector<MovedShard> shards;
  const ShardTable& table = job_.info.datasets[0].shards;
  for (uint32_t shard = 0; shard < table.num_shards(); ++shard)
    shards.push_back(
        {shard, asking_owns_.PeerOf(job_.info.datasets[0].id, shard)});
  Own(shards);
  ShardMover mover(&jobs, &asking_owns_);
  mover.Moved(job_.info.datasets[0].id, shards);
  const MonotonicTime end = Clock::Real().Now() + std::chrono::seconds(30);
  while (cache.stats().records < kImages && Clock::Real().Now() < end)
    std::this_thread::yield();
  EXPECT_EQ(cache.stats().records, kImages);
  for (uint64_t epoch = 7; epoch < 9; ++epoch) CheckEpoch(*job, epoch);
  EXPECT_EQ(source->reads, 0u);
  EXPECT_GE(DecodesByForms(cache), kImages);
  EXPECT_EQ(client_.counters().found, kImages);
}

TEST_F(RecordsServiceTest, NothingIsTakenWithoutRoomForIt) {
  FillTheOwner();
  RichCache cache(20'000, &uses_, kBothForms);
  const auto job = Asking(&cache);
  const auto use = job->BeginUse();
  const Peer peer = *asking_owns_.PeerOf(job_.info.datasets[0].id, 0);
  uint64_t taken = 0;
  for (uint64_t sample = 0; sample < kImages; ++sample)
    taken += job->sources()[0]->records().TakeFrom(peer, sample) ? 1 : 0;
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, kImages);
  EXPECT_LE(cache.stats().bytes, 20'000u);
}

TEST_F(RecordsServiceTest, WhatTheOwnerDoesNotKeepComesFromStorage) {
  RichCache cache(0, &uses_, kBothForms);
  const auto job = Asking(&cache, std::make_shared<SlowSource>(Storage()));
  records_ = PeerRecords::kFirst + 1;
  CheckEpoch(*job, 1);
  EXPECT_EQ(client_.counters().found, 0u);
  EXPECT_EQ(client_.counters().missing, PeerRecords::kFirst) << "does not pay";
}

TEST_F(RecordsServiceTest, AnswersThatAreNotTheOwnersAreRefused) {
  FillTheOwner();
  const auto stranger = *rpc::WorkerKey::Make();
  const std::vector<Meddler::Change> changes = {
      [](const auto&, auto* answer) { answer->mutable_record()->at(99) ^= 1; },
      [](const auto&, auto* answer) { answer->clear_proof(); },
      [](const auto&, auto* answer) { answer->set_crc32c(1); },
      [](const auto&, auto* answer) { answer->clear_record(); },
      [&](const auto& request, auto* answer) {
        Seal(*stranger, request, answer);
      },
      // These proofs are of another record, and of another call.
      [&](const auto& request, auto* answer) {
        v1::GetRecordRequest other = request;
        other.set_record(request.record() + 1);
        Seal(*key_, other, answer);
      },
      [&](const auto& request, auto* answer) {
        v1::GetRecordRequest other = request;
        other.set_nonce(std::string(rpc::kNonceBytes, 'n'));
        Seal(*key_, other, answer);
      }};
  for (size_t i = 0; i < changes.size(); ++i) {
    Meddle(changes[i]);
    RichCache cache(0, &uses_, kBothForms);
    CheckEpoch(*Asking(&cache), i);
    EXPECT_EQ(client_.counters().found, 0u) << i;
    // The owner is not asked again for a second, which does not pass.
    EXPECT_EQ(client_.counters().refused, i + 1) << i;
  }
}

// The owner's own key signs it, so only the contents can be wrong.
TEST_F(RecordsServiceTest, WrongRecordsAndFormsOfTheOwnerAreNotUsed) {
  FillTheOwner();
  std::string other_form;
  const auto seal = [&](Meddler::Change change) {
    return [this, change](const v1::GetRecordRequest& request,
                          v1::GetRecordResponse* answer) {
      change(request, answer);
      Seal(*key_, request, answer);
    };
  };
  const std::vector<Meddler::Change> changes = {
      seal([](const auto&, auto* answer) { answer->set_record("LeR1"); }),
      seal([](const auto&, auto* answer) {
        answer->mutable_record()->resize(answer->record().size() - 1);
      }),
      // The record declares one field, and the reader returns two.
      seal([](const auto&, auto* answer) {
        answer->mutable_record()->at(4) = 1;
      }),
      // These forms are damaged, of another record, and of no kind.
      seal([](const auto&, auto* answer) {
        if (!answer->form().empty())
          answer->mutable_form()->at(answer->form().size() / 2) ^= 1;
      }),
      seal([&](const auto&, auto* answer) {
        std::swap(other_form, *answer->mutable_form());
      }),
      seal([](const auto&, auto* answer) { answer->set_form_kind(3); }),
      seal([](const auto&, auto* answer) { answer->set_form_kind(1 << 30); })};
  for (size_t i = 0; i < changes.size(); ++i) {
    Meddle(changes[i]);
    RichCache cache(0, &uses_, kBothForms);
    const auto job = Asking(&cache);
    CheckEpoch(*job, i);
    EXPECT_EQ(DecodesByForms(cache), 0u) << i;
    EXPECT_EQ(client_.counters().refused, i + 1) << "it is left alone";
  }
}

TEST_F(RecordsServiceTest, AnOwnerThatDoesNotAnswerIsLeftAlone) {
  FillTheOwner();
  refuse_ = true;
  RichCache cache(0, &uses_, kBothForms);
  const auto job = Asking(&cache);
  CheckEpoch(*job, 1);
  EXPECT_EQ(client_.counters().failed, 1u);
  clock_.Advance(RecordClient::kFirstPause);
  CheckEpoch(*job, 1);
  EXPECT_EQ(client_.counters().failed, 2u);
  clock_.Advance(RecordClient::kFirstPause);  // the second pause is longer
  CheckEpoch(*job, 1);
  EXPECT_EQ(client_.counters().failed, 2u);
  ShardsAreOf(NewAddress());  // without a listener
  CheckEpoch(*Asking(&cache), 2);
  EXPECT_EQ(client_.counters().failed, 3u);
  client_.Stop();
  refuse_ = false;
  ShardsAreOf(address_);
  CheckEpoch(*Asking(&cache), 3);
  EXPECT_EQ(client_.counters().found, 0u);
}

TEST_F(RecordsServiceTest, BadRequestsAreNamed) {
  FillTheOwner();
  EXPECT_TRUE(Call(Request(3)).ok());
  EXPECT_EQ(Call(Request(kImages)).code(), absl::StatusCode::kNotFound);
  v1::GetRecordRequest request = Request(3);
  request.set_dataset("x");
  EXPECT_THAT(Call(request).message(), HasSubstr("dataset: 1 bytes, want 32"));
  request.set_dataset(std::string(32, 'x'));
  EXPECT_EQ(Call(request).code(), absl::StatusCode::kNotFound);
  request = Request(3);
  request.set_nonce("");
  EXPECT_THAT(Call(request).message(), HasSubstr("a nonce of 0 bytes"));
  refuse_ = true;
  EXPECT_EQ(Call(Request(3)).code(), absl::StatusCode::kUnauthenticated);
  refuse_ = false;
  records_service_.Stop();
  EXPECT_EQ(Call(Request(3)).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace leat::worker
