// SPDX-License-Identifier: Apache-2.0
#include "worker/shared_memory/server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "leat/v1/shared_memory.pb.h"
#include "rpc/wire/memory_socket.h"

namespace leat::worker {
namespace {

constexpr int kBacklog = 128;
constexpr uint64_t kListener = 0, kStop = 1, kFirstConnection = 2;
constexpr size_t kKeyBytes = 8;  // of a secret, to look it up by
// The time that the listener rests when no descriptor is left.
constexpr auto kAcceptRest = std::chrono::milliseconds(200);
// Does not wait: takes only what has arrived, and sends only what fits.
constexpr MonotonicTime kAtOnce{};

}  // namespace

struct SharedMemoryServer::State {
  struct Connection {
    std::shared_ptr<const Fd> socket;
    std::shared_ptr<StreamSharing> stream;  // after its hello
  };

  absl::Status Open();
  void Run();
  int Timeout() const;
  void Expire();
  void Watch(int operation, int fd, uint32_t events, uint64_t id) const;
  void Accept();
  void Listen(bool on);
  void Serve(uint64_t id);
  void Drop(uint64_t id);
  absl::Status Handle(Connection& connection, const v1::ShareRequest& request,
                      const Fd& passed);
  absl::Status Greet(Connection& connection, const v1::ShareHello& hello);

  SharedMemoryOptions options;
  DeviceImporter* importer = nullptr;
  std::string address;
  std::vector<std::string> device_uuids;
  const std::shared_ptr<SharedMemoryCounters> counters =
      std::make_shared<SharedMemoryCounters>();
  Fd listener, epoll, stop;
  std::atomic<bool> stopping{false};

  // Used by the server's thread only.
  std::map<uint64_t, Connection> connections;
  std::deque<std::pair<MonotonicTime, uint64_t>> handshakes;  // deadlines
  uint64_t next_id = kFirstConnection;
  bool listening = true;
  MonotonicTime rest_until = MonotonicTime::max();  // if not listening

  Mutex mu;
  // The key is the first bytes of a stream's secret.
  std::map<std::string, std::weak_ptr<StreamSharing>> streams
      ABSL_GUARDED_BY(mu);
  size_t forget_at ABSL_GUARDED_BY(mu) = 64;  // streams
  std::thread thread;
};

absl::Status SharedMemoryServer::State::Open() {
  address = "leat-sharing-" + rpc::Hex(rpc::RandomBytes(16));
  ASSIGN_OR_RETURN(listener, rpc::ListenMemorySocket(address, kBacklog));
  epoll = Fd(epoll_create1(EPOLL_CLOEXEC));
  stop = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.open() || !stop.open())
    return Unavailable("memory socket: {}", std::strerror(errno));
  Watch(EPOLL_CTL_ADD, listener.get(), EPOLLIN, kListener);
  Watch(EPOLL_CTL_ADD, stop.get(), EPOLLIN, kStop);
  if (importer != nullptr) device_uuids = importer->uuids();
  return StartThread(
      "sharing", [this] { Run(); }, &thread);
}

void SharedMemoryServer::State::Watch(int operation, int fd, uint32_t events,
                                      uint64_t id) const {
  epoll_event event{.events = events, .data = {.u64 = id}};
  epoll_ctl(epoll.get(), operation, fd, &event);
}

void SharedMemoryServer::State::Run() {
  std::array<epoll_event, 64> events;
  while (!stopping) {
    const int ready = epoll_wait(epoll.get(), events.data(),
                                 static_cast<int>(events.size()), Timeout());
    for (int i = 0; i < ready && !stopping; ++i) {
      const uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == kListener)
        Accept();
      else if (id >= kFirstConnection)
        Serve(id);
    }
    Expire();
  }
  while (!connections.empty()) Drop(connections.begin()->first);
}

// Returns the milliseconds until a handshake is late or the listener has
// rested; -1: neither.
int SharedMemoryServer::State::Timeout() const {
  MonotonicTime next = listening ? MonotonicTime::max() : rest_until;
  if (!handshakes.empty()) next = std::min(next, handshakes.front().first);
  if (next == MonotonicTime::max()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(next - Clock::Real().Now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

void SharedMemoryServer::State::Expire() {
  const MonotonicTime now = Clock::Real().Now();
  while (!handshakes.empty() && handshakes.front().first <= now) {
    const uint64_t id = handshakes.front().second;
    handshakes.pop_front();
    const auto it = connections.find(id);
    if (it == connections.end() || it->second.stream != nullptr) continue;
    LOG_DEBUG("sharing.late connection={}", id);
    ++counters->refused_total;
    Drop(id);
  }
  if (!listening && rest_until <= now) Listen(true);
}

// While it is off, new connections wait in the backlog.
void SharedMemoryServer::State::Listen(bool on) {
  if (listening == on) return;
  listening = on;
  rest_until = MonotonicTime::max();
  Watch(EPOLL_CTL_MOD, listener.get(), on ? uint32_t{EPOLLIN} : 0, kListener);
}

void SharedMemoryServer::State::Accept() {
  if (connections.size() >= options.max_connections) return Listen(false);
  absl::StatusOr<Fd> socket = rpc::AcceptMemorySocket(listener.get());
  if (absl::IsNotFound(socket.status())) return;
  if (!socket.ok()) {
    ++counters->refused_total;
    if (!absl::IsResourceExhausted(socket.status())) {
      // Another user's training, which takes its rows through gRPC.
      LOG_INFO("sharing.refused error=\"{}\"", Message(socket.status()));
      return;
    }
    LOG_WARN("sharing.refused error=\"{}\"", Message(socket.status()));
    Listen(false);
    rest_until = Clock::Real().Now() + kAcceptRest;
    return;
  }
  const uint64_t id = next_id++;
  const int fd = socket->get();
  connections[id].socket = std::make_shared<const Fd>(*std::move(socket));
  handshakes.emplace_back(Clock::Real().Now() + options.handshake_timeout, id);
  ++counters->connections;
  Watch(EPOLL_CTL_ADD, fd, EPOLLIN, id);
}

void SharedMemoryServer::State::Drop(uint64_t id) {
  const auto it = connections.find(id);
  if (it == connections.end()) return;
  Connection connection = std::move(it->second);
  connections.erase(it);
  --counters->connections;
  Watch(EPOLL_CTL_DEL, connection.socket->get(), 0, id);
  if (connection.stream != nullptr)
    connection.stream->Close();  // shuts down when all has been dropped
  else
    rpc::ShutDown(*connection.socket);
  Listen(true);
}

// Handles one packet.
void SharedMemoryServer::State::Serve(uint64_t id) {
  const auto it = connections.find(id);
  if (it == connections.end()) return;  // dropped by an earlier event
  Connection& connection = it->second;
  const int socket = connection.socket->get();
  v1::ShareRequest request;
  Fd passed;
  absl::Status status = rpc::ReceivePacket(socket, &request, &passed, kAtOnce);
  if (absl::IsDeadlineExceeded(status)) return;
  if (absl::IsUnavailable(status)) return Drop(id);
  const bool understood = status.ok();
  if (understood) status = Handle(connection, request, passed);
  v1::ShareReply reply;
  if (!status.ok()) {
    LOG_DEBUG("sharing.refused connection={} error=\"{}\"", id,
              Message(status));
    ++counters->refused_total;
    reply.set_code(static_cast<int32_t>(status.code()));
    reply.set_message(std::string(Message(status)));
  }
  const bool sent = rpc::SendPacket(socket, reply, -1, kAtOnce).ok();
  if (!understood || !sent || connection.stream == nullptr) Drop(id);
}

absl::Status SharedMemoryServer::State::Handle(Connection& connection,
                                               const v1::ShareRequest& request,
                                               const Fd& passed) {
  if (passed.open() != request.has_share())
    return InvalidArgument("sharing: {} descriptor with this message: want {}",
                           passed.open() ? "a" : "no",
                           request.has_share() ? "one" : "none");
  if (request.has_hello()) return Greet(connection, request.hello());
  if (connection.stream == nullptr)
    return FailedPrecondition("sharing: the first message is not a hello");
  if (request.has_share())
    return connection.stream->Share(passed.get(), request.share());
  if (request.has_give_back())
    return connection.stream->Return(request.give_back().memory_id());
  return InvalidArgument("sharing: a request of no known kind");
}

absl::Status SharedMemoryServer::State::Greet(Connection& connection,
                                              const v1::ShareHello& hello) {
  if (connection.stream != nullptr)
    return FailedPrecondition("sharing: a second hello");
  if (hello.version() != rpc::kMemorySocketVersion)
    return FailedPrecondition("sharing: version {}: want {}", hello.version(),
                              rpc::kMemorySocketVersion);
  std::shared_ptr<StreamSharing> stream;
  if (hello.secret().size() == rpc::kMemorySecretBytes) {
    MutexLock lock(&mu);
    const auto it = streams.find(hello.secret().substr(0, kKeyBytes));
    if (it != streams.end()) stream = it->second.lock();
  }
  if (stream == nullptr ||
      !rpc::EqualInConstantTime(stream->secret(), hello.secret()))
    return Unauthenticated("sharing: not the secret of an open stream");
  RETURN_IF_ERROR(stream->Attach(connection.socket));
  connection.stream = std::move(stream);
  return absl::OkStatus();
}

SharedMemoryServer::SharedMemoryServer(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<SharedMemoryServer>> SharedMemoryServer::Start(
    SharedMemoryOptions options, DeviceImporter* importer) {
  auto state = std::make_unique<State>();
  state->options = options;
  state->importer = importer;
  RETURN_IF_ERROR(state->Open());
  return std::unique_ptr<SharedMemoryServer>(
      new SharedMemoryServer(std::move(state)));
}

SharedMemoryServer::~SharedMemoryServer() {
  state_->stopping = true;
  const uint64_t one = 1;
  // Cannot fail: the counter is far from full.
  [[maybe_unused]] const ssize_t written =
      write(state_->stop.get(), &one, sizeof one);
  state_->thread.join();
}

const std::string& SharedMemoryServer::address() const {
  return state_->address;
}
const std::vector<std::string>& SharedMemoryServer::device_uuids() const {
  return state_->device_uuids;
}
const SharedMemoryCounters& SharedMemoryServer::counters() const {
  return *state_->counters;
}

std::shared_ptr<StreamSharing> SharedMemoryServer::OpenStream() {
  const auto stream = std::make_shared<StreamSharing>(
      state_->options.limits, state_->importer, state_->counters);
  MutexLock lock(&state_->mu);
  // Streams that have gone are forgotten when as many have been added since.
  if (state_->streams.size() >= state_->forget_at) {
    std::erase_if(state_->streams,
                  [](const auto& entry) { return entry.second.expired(); });
    state_->forget_at = 2 * state_->streams.size() + 64;
  }
  state_->streams[stream->secret().substr(0, kKeyBytes)] = stream;
  return stream;
}

}  // namespace leat::worker
