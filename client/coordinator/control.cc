// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/control.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/status.h"
#include "rpc/call/call_set.h"
#include "rpc/call/channel.h"
#include "rpc/call/client_stream.h"
#include "rpc/call/grpc_status.h"
#include "rpc/tls/tls_probe.h"

namespace leat::client {
namespace {

constexpr absl::Duration kFirstRetry = absl::Milliseconds(20);
constexpr absl::Duration kMaxRetry = absl::Milliseconds(500);
constexpr size_t kMaxQueuedReports = 16;
constexpr absl::Duration kProbePatience = absl::Seconds(1);
constexpr absl::Duration kLeastPatience = absl::Milliseconds(10);
constexpr absl::Duration kProbeEvery = absl::Seconds(1);

constexpr std::string_view kUnknownName = "its name does not resolve";

// Returns gRPC's reason without its preamble: "... last error: UNKNOWN:
// ipv4:...: Failed to connect to remote host: Connection refused".
std::string Reason(std::string_view message) {
  if (message.find("DNS resolution failed") != std::string_view::npos)
    return std::string(kUnknownName);
  for (const std::string_view mark :
       {"Failed to connect to remote host: ", "last error: "}) {
    const size_t at = message.rfind(mark);
    if (at != std::string_view::npos)
      return std::string(message.substr(at + mark.size()));
  }
  return std::string(message);
}

// Handshakes beside gRPC's, which says only that one has failed.
class Handshakes {
 public:
  // Tries one, unless the last one was less than kProbeEvery ago.
  void Try(const std::string& address, const rpc::Security& security,
           absl::Duration left) {
    if (absl::Now() < next_) return;
    const std::optional<rpc::TlsProbe> probe =
        rpc::ProbeTls(address, security,
                      absl::ToChronoNanoseconds(std::clamp(
                          left / 4, kLeastPatience, kProbePatience)));
    const bool wrong = probe && !probe->remedy.empty();
    trouble_ = wrong ? fmt::format("{}: {}", probe->what, probe->remedy) : "";
    settled_ = wrong && probe->settled;
    next_ = absl::Now() + kProbeEvery;
  }
  // The last one's finding; empty: nothing is wrong, or no server answers.
  const std::string& trouble() const { return trouble_; }
  // Waiting does not change it.
  bool settled() const { return settled_; }

 private:
  absl::Time next_ = absl::InfinitePast();
  std::string trouble_;
  bool settled_ = false;
};

// Index and job messages can be larger than gRPC's default of 4 MiB.
constexpr int kMaxReceiveBytes = 256 << 20;

absl::Status NoCoordinator(const std::string& address) {
  return FailedPrecondition(
      "{} answers, but is not a Leat coordinator (or is of an older version): "
      "want the coordinator's --listen address, not a worker's",
      address);
}

}  // namespace

Control::Control(std::string address, rpc::Security security,
                 absl::Duration timeout, std::string token_file)
    : address_(std::move(address)),
      credentials_(std::make_shared<Credentials>(std::move(security),
                                                 std::move(token_file))),
      timeout_(timeout),
      channel_(
          rpc::MakeChannel(address_, credentials_->Now(), kMaxReceiveBytes)),
      admin_(v1::AdminService::NewStub(channel_)),
      coordinator_(v1::CoordinatorService::NewStub(channel_)),
      pools_(v1::PoolService::NewStub(channel_)) {}

void Control::Prepare(grpc::ClientContext* context,
                      absl::Duration timeout) const {
  rpc::PrepareCall(security(), absl::ToChronoNanoseconds(timeout), context);
}

// The connection and the clock show whether an error came from the coordinator
// or from gRPC: gRPC's texts differ between releases.
absl::Status Control::Map(const grpc::Status& status,
                          const grpc::ClientContext& context) const {
  if (status.ok()) return absl::OkStatus();
  const absl::Status mapped = rpc::FromGrpc(status);
  const std::string_view message = Message(mapped);
  if (absl::IsUnavailable(mapped) &&
      channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY)
    return Unavailable("no coordinator at {}: {}", address_, Reason(message));
  // A caller that cancels a call here ignores the result. A server that stops
  // cancels calls that reach it too late: its successor may accept them.
  if (absl::IsCancelled(mapped))
    return Unavailable("the coordinator at {} is stopping", address_);
  // A server without the method sends no text; a coordinator or worker that
  // rejects a request does.
  if (absl::IsUnimplemented(mapped) && status.error_message().empty())
    return NoCoordinator(address_);
  // The coordinator's own answer comes before the deadline.
  if (absl::IsDeadlineExceeded(mapped) &&
      std::chrono::system_clock::now() >= context.deadline())
    return DeadlineExceeded("the coordinator at {} did not answer in time: {}",
                            address_, message);
  return mapped;
}

absl::Status Control::Connect(absl::Time deadline) {
  absl::Duration pause = kFirstRetry;
  absl::Status last = Unavailable("no coordinator at {}: not tried", address_);
  Handshakes handshakes;
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    grpc::ClientContext context;
    Prepare(&context, left);
    v1::HelloResponse response;
    const absl::Status status = Map(
        coordinator_->Hello(&context, v1::HelloRequest(), &response), context);
    if (status.ok()) return status;
    if (absl::IsUnimplemented(status) || status == NoCoordinator(address_))
      return NoCoordinator(address_);
    if (Message(status).find("http1.x") != std::string_view::npos)
      return FailedPrecondition(
          "{} is a web server's, as of a daemon's page (--http): want the "
          "coordinator's --listen address",
          address_);
    if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ||
        absl::IsFailedPrecondition(status))
      return Annotate(status, fmt::format("coordinator at {}", address_));
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status))
      return Annotate(status, fmt::format("coordinator at {}", address_));
    // The deadline's own error says less than the previous one.
    if (absl::IsUnavailable(status) ||
        Message(last).find("not tried") != std::string_view::npos)
      last = status;
    if (channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY)
      handshakes.Try(address_, security(), left);
    if (handshakes.settled()) return Unavailable("{}", handshakes.trouble());
    // Returns early when the connection's state changes.
    channel_->WaitForStateChange(
        channel_->GetState(true),
        std::chrono::system_clock::now() + absl::ToChronoMicroseconds(std::min(
                                               pause, deadline - absl::Now())));
    pause = std::min(kMaxRetry, pause * 2);
  }
  if (!handshakes.trouble().empty())
    return Unavailable("{} (tried for {})", handshakes.trouble(),
                       absl::FormatDuration(timeout_));
  std::string text(Message(last));
  if (text.find(address_) == std::string::npos)
    text = fmt::format("no coordinator at {}: {}", address_, Reason(text));
  if (text.ends_with(kUnknownName))
    return Unavailable("{} (tried for {})", text,
                       absl::FormatDuration(timeout_));
  return Unavailable(
      "{} (tried for {}); check the address, or start one there: "
      "leat-coordinator --listen {}",
      text, absl::FormatDuration(timeout_), address_);
}

absl::Status Control::WatchPool(
    const v1::WatchPoolRequest& request, absl::Duration within,
    const std::function<bool(const v1::WatchPoolResponse&)>& on_response) {
  grpc::ClientContext context;
  Prepare(&context, within);
  const std::unique_ptr<grpc::ClientReader<v1::WatchPoolResponse>> reader =
      pools_->WatchPool(&context, request);
  v1::WatchPoolResponse response;
  while (reader->Read(&response)) {
    if (on_response(response)) continue;
    context.TryCancel();
    while (reader->Read(&response)) {
    }
    reader->Finish();
    return absl::OkStatus();
  }
  const grpc::Status status = reader->Finish();
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
      std::chrono::system_clock::now() >= context.deadline())
    return absl::OkStatus();
  return Map(status, context);
}

absl::Status Control::CreateJob(
    const v1::CreateJobRequest& request, absl::Duration within,
    const std::function<void(std::string_view)>& on_waiting,
    v1::CreateJobResponse* response) {
  grpc::ClientContext context;
  Prepare(&context, within);
  const std::unique_ptr<grpc::ClientReader<v1::CreateJobResponse>> reader =
      coordinator_->CreateJob(&context, request);
  response->Clear();
  v1::CreateJobResponse next;
  while (reader->Read(&next)) {
    if (next.waiting().empty())
      *response = std::move(next);
    else if (on_waiting)
      on_waiting(next.waiting());
  }
  RETURN_IF_ERROR(Map(reader->Finish(), context));
  if (!response->has_job())
    return Internal("the coordinator at {} sent no job: want one as the answer",
                    address_);
  return absl::OkStatus();
}

Session::Opener Control::Sessions() const {
  return [stub = coordinator_, channel = channel_, credentials = credentials_](
             std::shared_ptr<Session::Receiver> receiver) {
    using Request = v1::ConsumerSessionRequest;
    using Response = v1::ConsumerSessionResponse;
    return rpc::ClientStream<Response, Request>::Start(
        credentials->Now(), kMaxQueuedReports,
        [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          return stub->PrepareAsyncConsumerSession(context, queue);
        },
        [&](std::shared_ptr<rpc::Stream<Request>>) { return receiver; },
        std::make_shared<
            std::pair<std::shared_ptr<grpc::Channel>, std::shared_ptr<void>>>(
            channel, stub));
  };
}

}  // namespace leat::client
