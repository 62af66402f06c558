// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstring>
#include <map>

#include "core/status.h"
#include "gtest/gtest.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/call/raw_frame.h"
#include "rpc/call/server_stream.h"
#include "tests/client/engine/fake_cluster.h"

namespace leat::client {
namespace {

constexpr size_t kImageBytes = 6 * 5 * 3;
constexpr size_t kFieldBytes[] = {kImageBytes, sizeof(int32_t)};
using Buffer = grpc::ByteBuffer;

std::shared_ptr<std::vector<std::byte>> Payload(
    const v1::RequestRows& request) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  if (request.supplied_size() > 0) {
    for (int field = 0; field < 2; ++field)
      for (const v1::SuppliedSample& sample : request.supplied()) {
        const auto data = std::as_bytes(std::span(sample.fields(field).data()));
        bytes->insert(bytes->end(), data.begin(), data.end());
      }
    return bytes;
  }
  for (const uint64_t sample : request.samples())
    for (size_t i = 0; i < kImageBytes; ++i)
      bytes->push_back(ImageByte(sample, i));
  for (const uint64_t sample : request.samples()) {
    const int32_t label = Label(sample);
    const auto* raw = reinterpret_cast<const std::byte*>(&label);
    bytes->insert(bytes->end(), raw, raw + sizeof label);
  }
  return bytes;
}

// Returns the message with one bit of its last byte flipped.
Buffer Flipped(const Buffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  bytes.back() = static_cast<char>(bytes.back() ^ 4);
  const grpc::Slice slice(bytes);
  return Buffer(&slice, 1);
}

}  // namespace

std::string UniqueAddress() {
  static std::atomic<int> count{0};
  return fmt::format("unix-abstract:leat-test-{}-{}", getpid(), ++count);
}

std::byte ImageByte(uint64_t sample, size_t i) {
  return static_cast<std::byte>((sample * 2654435761u + i * 40503u) >> 7);
}

int32_t Label(uint64_t sample) { return static_cast<int32_t>(sample * 3 + 1); }

// One stream.
class FakeWorker::Handler : public rpc::StreamHandler<Buffer>,
                            public std::enable_shared_from_this<Handler> {
 public:
  Handler(FakeWorker* worker, std::shared_ptr<rpc::Stream<Buffer>> stream)
      : worker_(worker), stream_(std::move(stream)) {
    MutexLock lock(&worker_->mu_);
    if (worker_->sharing_) sharing_ = worker_->sharing_->OpenStream();
  }

  void OnMessage(Buffer message) override {
    v1::RowsRequest sent;
    if (!rpc::DecodeRequest(message, &sent).ok()) return;
    if (sent.has_open()) {
      checksums_ = worker_->checksums_ && sent.open().checksums();
      Open(sent.open());
    }
    if (sent.has_cancel()) Cancel(sent.cancel().request_id());
    if (!sent.has_request()) return;
    const v1::RequestRows request = sent.request();
    if (request.memory_id() != 0 && !Borrow(request)) return;
    Behaviour behaviour;
    {
      MutexLock lock(&worker_->mu_);
      behaviour = worker_->behaviour_;
      worker_->asked_ += static_cast<uint64_t>(request.rows_size());
      if (behaviour == Behaviour::kSilent)
        worker_->kept_.push_back(
            [self = shared_from_this(), request] { self->Serve(request); });
      worker_->asked_more_.NotifyAll();
      if (behaviour == Behaviour::kSilent) return;
    }
    Act(behaviour, request);
  }
  void OnClosed(const absl::Status&) override {
    if (sharing_) sharing_->Close();
    MutexLock lock(&mu_);
    stream_.reset();
  }

 private:
  void Open(const v1::OpenRows& open) {
    v1::RowsResponse first;
    v1::Opened* opened = first.mutable_opened();
    {
      MutexLock lock(&worker_->mu_);
      worker_->opened_ = open;
      if (worker_->own_) *opened->mutable_proof() = *worker_->own_->Prove(open);
      if (worker_->taking_ == Taking::kTaken && worker_->sharing_) {
        opened->set_memory_address(worker_->sharing_->address());
        opened->set_memory_secret(sharing_->secret());
      } else if (worker_->taking_ == Taking::kNobody) {
        opened->set_memory_address("leat-test-nobody");
        opened->set_memory_secret(std::string(16, 'x'));
      }
    }
    if (worker_->greets_) Send(first);
  }
  bool Borrow(const v1::RequestRows& request) {
    auto offer =
        sharing_->Borrow(request.memory_id(),
                         std::span(request.slots().data(),
                                   static_cast<size_t>(request.slots_size())),
                         kFieldBytes);
    MutexLock lock(&mu_);
    if (offer.ok())
      offers_[request.request_id()] = *std::move(offer);
    else if (stream_)
      stream_->Close(offer.status());
    return offers_.contains(request.request_id());
  }
  // Ends the writing of the request's rows.
  void GiveBack(const v1::RequestRows& request) {
    worker::StreamSharing::Offer offer;
    {
      MutexLock lock(&mu_);
      offer = std::exchange(offers_[request.request_id()], {});
      offers_.erase(request.request_id());
    }
    sharing_->GiveBack(request.memory_id(), offer.number,
                       std::span(request.slots().data(),
                                 static_cast<size_t>(request.slots_size())));
  }
  // A kept request ends when it is answered.
  void Cancel(uint64_t request_id) {
    {
      MutexLock lock(&mu_);
      if (offers_.contains(request_id)) return;
    }
    v1::RowsResponse response;
    response.set_request_id(request_id);
    response.set_request_ended(true);
    Send(response);
  }
  void Place(const v1::RequestRows& request) {
    std::shared_ptr<const worker::SharedMemory> memory;
    {
      MutexLock lock(&mu_);
      memory = offers_[request.request_id()].memory;
    }
    for (int i = 0; i < request.rows_size(); ++i) {
      std::byte* const image = memory->base() + memory->field_offsets()[0] +
                               request.slots(i) * kImageBytes;
      for (size_t k = 0; k < kImageBytes; ++k)
        image[k] = ImageByte(request.samples(i), k);
      const int32_t label = Label(request.samples(i));
      std::memcpy(memory->base() + memory->field_offsets()[1] +
                      request.slots(i) * sizeof label,
                  &label, sizeof label);
    }
    memory.reset();
    GiveBack(request);
    v1::RowsResponse header;
    header.set_request_id(request.request_id());
    header.set_group_id(++groups_);
    *header.mutable_rows() = request.rows();
    header.set_placed(true);
    Send(header);
  }
  void Serve(const v1::RequestRows& request) {
    if (request.memory_id() != 0)
      Place(request);
    else
      Answer(request, 1.0);
  }
  void Send(const v1::RowsResponse& response) {
    Send(rpc::EncodeRows(response, {}, nullptr, checksums_));
  }
  void Send(Buffer message) {
    MutexLock lock(&mu_);
    if (stream_) (void)stream_->Send(std::move(message));
  }

  void Act(Behaviour behaviour, const v1::RequestRows& request) {
    switch (behaviour) {
      case Behaviour::kTwice:
        Answer(request, 1.0);
        Answer(request, 1.0);
        break;
      case Behaviour::kHalf:
        Answer(request, 0.5);
        break;
      case Behaviour::kFlipped:
        Answer(request, 1.0, true);
        break;
      case Behaviour::kGarbage: {
        const std::string bytes(1000, '\xff');
        const grpc::Slice slice(bytes);
        Send(Buffer(&slice, 1));
        break;
      }
      case Behaviour::kMisfit: {
        v1::RequestRows other = request;
        other.clear_rows();
        for (int i = 0; i < request.rows_size(); ++i) other.add_rows(1u << 30);
        Answer(other, 1.0);
        break;
      }
      case Behaviour::kDraining:
        Error(request.request_id(), request.rows(),
              absl::StatusCode::kUnavailable, "draining");
        break;
      case Behaviour::kUnknown: {
        MutexLock lock(&mu_);
        if (stream_) stream_->Close(NotFound("no such job here"));
        break;
      }
      case Behaviour::kBytes:
        Answer(request, 1.0);
        break;
      default:
        Serve(request);
    }
  }

  template <class Rows>
  void Error(uint64_t request_id, const Rows& rows, absl::StatusCode code,
             const std::string& text) {
    v1::RowsResponse header;
    header.set_request_id(request_id);
    header.set_group_id(++groups_);
    for (const uint32_t row : rows) header.add_rows(row);
    header.mutable_error()->set_code(static_cast<int32_t>(code));
    header.mutable_error()->set_message(text);
    Send(header);
  }

  // Sends `part` of the rows' payload, in chunks.
  void Answer(const v1::RequestRows& asked, double part, bool flip = false) {
    v1::RequestRows request = asked;
    std::string text;
    {
      MutexLock lock(&worker_->mu_);
      for (int i = 0; i < request.rows_size(); ++i) {
        if (request.samples(i) != worker_->spoiled_) continue;
        text = worker_->spoiled_text_;
        Error(request.request_id(), std::vector<uint32_t>{request.rows(i)},
              absl::StatusCode::kDataLoss, text);
        request.mutable_rows()->SwapElements(i, request.rows_size() - 1);
        request.mutable_samples()->SwapElements(i, request.samples_size() - 1);
        request.mutable_rows()->RemoveLast();
        request.mutable_samples()->RemoveLast();
        --i;
      }
    }
    if (request.rows_size() == 0) return;
    const auto payload = Payload(request);
    v1::RowsResponse header;
    header.set_request_id(request.request_id());
    header.set_group_id(++groups_);
    *header.mutable_rows() = request.rows();
    header.set_payload_bytes(payload->size());
    const auto end =
        static_cast<size_t>(static_cast<double>(payload->size()) * part);
    for (size_t at = 0; at < end; at += worker_->chunk_bytes_) {
      header.set_offset(at);
      const size_t n = std::min<size_t>(worker_->chunk_bytes_, end - at);
      Buffer message = rpc::EncodeRows(
          header, std::span(*payload).subspan(at, n), payload, checksums_);
      Send(flip ? Flipped(message) : std::move(message));
    }
  }

  FakeWorker* const worker_;
  std::shared_ptr<worker::StreamSharing> sharing_;  // may be null
  std::atomic<uint64_t> groups_{0};
  std::atomic<bool> checksums_{false};
  Mutex mu_;
  std::map<uint64_t, worker::StreamSharing::Offer> offers_
      ABSL_GUARDED_BY(mu_);  // by request
  std::shared_ptr<rpc::Stream<Buffer>> stream_ ABSL_GUARDED_BY(mu_);
};

class FakeWorker::Service
    : public v1::WorkerService::WithRawCallbackMethod_Rows<
          v1::WorkerService::Service> {
 public:
  explicit Service(FakeWorker* worker) : worker_(worker) {}
  grpc::ServerBidiReactor<Buffer, Buffer>* Rows(
      grpc::CallbackServerContext* context) override {
    return rpc::ServerStream<Buffer, Buffer>::Start(
        context, 1 << 20, [this](std::shared_ptr<rpc::Stream<Buffer>> stream) {
          return std::make_shared<Handler>(worker_, std::move(stream));
        });
  }

 private:
  FakeWorker* const worker_;
};

FakeWorker::FakeWorker(std::string name, std::string address, bool checksums)
    : name_(std::move(name)),
      address_(std::move(address)),
      checksums_(checksums) {
  Start();
}

FakeWorker::~FakeWorker() { Kill(); }

void FakeWorker::Start() {
  service_ = std::make_unique<Service>(this);
  auto server = rpc::Server::Start({.address = address_}, {}, {service_.get()});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  address_ = server_->address();
}

void FakeWorker::Kill() {
  {
    MutexLock lock(&mu_);
    kept_.clear();
  }
  server_.reset();
  service_.reset();
}

void FakeWorker::TakeMemory(Taking taking, size_t memories) {
  worker::SharedMemoryOptions options;
  options.limits.max_memories_per_stream = memories;
  auto sharing = worker::SharedMemoryServer::Start(options, nullptr);
  ASSERT_TRUE(sharing.ok()) << sharing.status();
  MutexLock lock(&mu_);
  taking_ = taking;
  sharing_ = *std::move(sharing);
}

uint64_t FakeWorker::shared() const {
  MutexLock lock(&mu_);
  return sharing_->counters().memories;
}

void FakeWorker::SetKeys(Key told, Key own) {
  MutexLock lock(&mu_);
  told_ = std::move(told);
  own_ = std::move(own);
}

std::string FakeWorker::public_key() const {
  MutexLock lock(&mu_);
  return told_ ? told_->public_key() : "";
}

void FakeWorker::CloseSharing() {
  std::shared_ptr<worker::SharedMemoryServer> sharing;  // dies outside the lock
  MutexLock lock(&mu_);
  sharing = std::exchange(sharing_, nullptr);
}

void FakeWorker::Behave(Behaviour behaviour) {
  MutexLock lock(&mu_);
  behaviour_ = behaviour;
}

void FakeWorker::SpoilSample(uint64_t sample, std::string text) {
  MutexLock lock(&mu_);
  spoiled_ = sample;
  spoiled_text_ = std::move(text);
}

void FakeWorker::Release() {
  std::vector<std::function<void()>> kept;
  {
    MutexLock lock(&mu_);
    behaviour_ = Behaviour::kServe;
    kept = std::exchange(kept_, {});
  }
  for (const auto& answer : kept) answer();
}

void FakeWorker::AwaitAsked(uint64_t rows) {
  MutexLock lock(&mu_);
  while (asked_ < rows) asked_more_.Wait(&mu_);
}

void FakeWorker::AwaitKept() {
  MutexLock lock(&mu_);
  while (kept_.empty()) asked_more_.Wait(&mu_);
}

}  // namespace leat::client
