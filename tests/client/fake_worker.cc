// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstring>

#include "core/status.h"
#include "gtest/gtest.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/raw_frame.h"
#include "rpc/server_stream.h"
#include "tests/client/fake_cluster.h"

namespace leat::client {
namespace {

constexpr size_t kImageBytes = 6 * 5 * 3;
using Buffer = grpc::ByteBuffer;

std::shared_ptr<std::vector<std::byte>> Payload(const v1::AskRows& ask) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  for (const uint64_t sample : ask.samples())
    for (size_t i = 0; i < kImageBytes; ++i)
      bytes->push_back(ImageByte(sample, i));
  for (const uint64_t sample : ask.samples()) {
    const int32_t label = Label(sample);
    const auto* raw = reinterpret_cast<const std::byte*>(&label);
    bytes->insert(bytes->end(), raw, raw + sizeof label);
  }
  return bytes;
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
      : worker_(worker), stream_(std::move(stream)) {}

  void OnMessage(Buffer message) override {
    v1::RowsRequest request;
    if (!rpc::DecodeMessage(message, &request).ok()) return;
    if (!request.has_ask()) return;
    const v1::AskRows ask = request.ask();
    Behaviour behaviour;
    {
      MutexLock lock(&worker_->mu_);
      behaviour = worker_->behaviour_;
      worker_->asked_ += static_cast<uint64_t>(ask.rows_size());
      worker_->asked_more_.NotifyAll();
      if (behaviour == Behaviour::kSilent) {
        worker_->kept_.push_back(
            [self = shared_from_this(), ask] { self->Answer(ask, 1.0); });
        return;
      }
    }
    Act(behaviour, ask);
  }
  void OnClosed(const absl::Status&) override {
    MutexLock lock(&mu_);
    stream_.reset();
  }

 private:
  void Send(Buffer message) {
    MutexLock lock(&mu_);
    if (stream_) (void)stream_->Send(std::move(message));
  }

  void Act(Behaviour behaviour, const v1::AskRows& ask) {
    switch (behaviour) {
      case Behaviour::kTwice:
        Answer(ask, 1.0);
        Answer(ask, 1.0);
        break;
      case Behaviour::kHalf:
        Answer(ask, 0.5);
        break;
      case Behaviour::kGarbage: {
        const std::string bytes(1000, '\xff');
        const grpc::Slice slice(bytes);
        Send(Buffer(&slice, 1));
        break;
      }
      case Behaviour::kMisfit: {
        v1::AskRows other = ask;
        other.clear_rows();
        for (int i = 0; i < ask.rows_size(); ++i) other.add_rows(1u << 30);
        Answer(other, 1.0);
        break;
      }
      case Behaviour::kDraining:
        Error(ask.ask_id(), ask.rows(), absl::StatusCode::kUnavailable,
              "draining");
        break;
      case Behaviour::kUnknown: {
        MutexLock lock(&mu_);
        if (stream_) stream_->Close(NotFound("no such job here"));
        break;
      }
      default:
        Answer(ask, 1.0);
    }
  }

  template <class Rows>
  void Error(uint64_t ask_id, const Rows& rows, absl::StatusCode code,
             const std::string& text) {
    v1::RowsResponse header;
    header.set_ask_id(ask_id);
    header.set_group_id(++groups_);
    for (const uint32_t row : rows) header.add_rows(row);
    header.mutable_error()->set_code(static_cast<int32_t>(code));
    header.mutable_error()->set_message(text);
    Send(rpc::EncodeRows(header, {}, nullptr));
  }

  // `part` of the rows' payload, in chunks.
  void Answer(const v1::AskRows& asked, double part) {
    v1::AskRows ask = asked;
    std::string text;
    {
      MutexLock lock(&worker_->mu_);
      for (int i = 0; i < ask.rows_size(); ++i) {
        if (ask.samples(i) != worker_->spoiled_) continue;
        text = worker_->spoiled_text_;
        Error(ask.ask_id(), std::vector<uint32_t>{ask.rows(i)},
              absl::StatusCode::kDataLoss, text);
        ask.mutable_rows()->SwapElements(i, ask.rows_size() - 1);
        ask.mutable_samples()->SwapElements(i, ask.samples_size() - 1);
        ask.mutable_rows()->RemoveLast();
        ask.mutable_samples()->RemoveLast();
        --i;
      }
    }
    if (ask.rows_size() == 0) return;
    const auto payload = Payload(ask);
    v1::RowsResponse header;
    header.set_ask_id(ask.ask_id());
    header.set_group_id(++groups_);
    *header.mutable_rows() = ask.rows();
    header.set_payload_bytes(payload->size());
    const auto end =
        static_cast<size_t>(static_cast<double>(payload->size()) * part);
    for (size_t at = 0; at < end; at += worker_->chunk_bytes_) {
      header.set_offset(at);
      const size_t n = std::min<size_t>(worker_->chunk_bytes_, end - at);
      Send(
          rpc::EncodeRows(header, std::span(*payload).subspan(at, n), payload));
    }
  }

  FakeWorker* const worker_;
  std::atomic<uint64_t> groups_{0};
  Mutex mu_;
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

FakeWorker::FakeWorker(std::string name)
    : name_(std::move(name)), address_(UniqueAddress()) {
  Start();
}

FakeWorker::~FakeWorker() { Kill(); }

void FakeWorker::Start() {
  service_ = std::make_unique<Service>(this);
  auto server = rpc::Server::Start({.address = address_}, {}, {service_.get()});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void FakeWorker::Kill() {
  {
    MutexLock lock(&mu_);
    kept_.clear();
  }
  server_.reset();
  service_.reset();
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

}  // namespace leat::client
