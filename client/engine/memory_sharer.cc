// SPDX-License-Identifier: Apache-2.0
#include "client/engine/memory_sharer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"
#include "leat/v1/shared_memory.pb.h"

namespace leat::client {
namespace {

// Deadline for data that has arrived, or can be sent, now.
constexpr MonotonicTime kNow{};

}  // namespace

struct MemorySharer::Socket {
  struct Request {
    v1::ShareRequest message;
    uint64_t memory_id = 0;
    std::shared_ptr<BatchMemory> memory;  // its descriptor is sent along
    MonotonicTime deadline{};
    bool late = false;  // its deadline has passed and was reported
  };
  Key key;
  Fd fd;
  bool ready = false;
  bool failed = false;  // reported; only its end is awaited
  bool blocked = false;
  bool ended = false;
  // Set if nothing can be received: then only poll shows the worker's end.
  std::optional<MonotonicTime> ends_by;
  std::deque<Request> queue;     // to be sent
  std::deque<Request> awaiting;  // for replies
  std::unordered_map<uint64_t, std::weak_ptr<BatchMemory>> shared;
};

MemorySharer::MemorySharer(const Config& config,
                           std::shared_ptr<const BatchLayout> layout,
                           Events events)
    : config_(config),
      layout_(std::move(layout)),
      events_(std::move(events)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

MemorySharer::~MemorySharer() { Stop(); }

void MemorySharer::Do(std::function<void()> command) {
  MutexLock lock(&mu_);
  if (stopped_ || !thread_.joinable()) return;
  commands_.push_back(std::move(command));
  eventfd_write(wake_.get(), 1);
}

absl::Status MemorySharer::StartOnce() {
  MutexLock lock(&mu_);
  if (stopped_ || thread_.joinable()) return absl::OkStatus();
  // Without it the thread would sleep through commands, and through Stop.
  if (!wake_.open())
    return ResourceExhausted(
        "memory sockets: this process had no descriptor left for an eventfd");
  return StartThread(
      "sharer", [this] { Run(); }, &thread_);
}

absl::Status MemorySharer::Open(Key key, std::string address,
                                std::string secret) {
  RETURN_IF_ERROR(StartOnce());
  Do([this, key = std::move(key), address = std::move(address),
      secret = std::move(secret)] { OpenNow(key, address, secret); });
  return absl::OkStatus();
}

void MemorySharer::Share(Key key, std::shared_ptr<BatchMemory> memory) {
  Do([this, key = std::move(key), memory = std::move(memory)] {
    ShareNow(key, memory);
  });
}

void MemorySharer::Close(Key key) {
  Do([this, key = std::move(key)] {
    if (Socket* socket = Find(key)) End(*socket);
  });
}

void MemorySharer::Sweep() {
  MutexLock lock(&mu_);
  if (stopped_ || !thread_.joinable()) return;
  sweep_ = true;
  eventfd_write(wake_.get(), 1);
}

void MemorySharer::Stop() {
  std::thread thread;
  {
    MutexLock lock(&mu_);
    stopped_ = true;
    commands_.clear();
    eventfd_write(wake_.get(), 1);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void MemorySharer::Run() {
  std::vector<pollfd> polled;
  while (true) {
    std::vector<std::function<void()>> commands;
    bool sweep = false;
    {
      MutexLock lock(&mu_);
      if (stopped_) break;
      commands = std::exchange(commands_, {});
      sweep = std::exchange(sweep_, false);
    }
    for (const std::function<void()>& command : commands) command();
    commands.clear();  // they hold memory
    if (sweep) SweepNow();
    const MonotonicTime now = Clock::Real().Now();
    MonotonicTime due = now + std::chrono::hours(1);
    for (const std::unique_ptr<Socket>& socket : sockets_) {
      if (!socket->ended) Flush(*socket);
      if (!socket->ended) CheckTime(*socket, now);
      for (const Socket::Request& request : socket->awaiting)
        if (!request.late) due = std::min(due, request.deadline);
      if (socket->ends_by) due = std::min(due, *socket->ends_by);
    }
    std::erase_if(sockets_, [](const auto& socket) { return socket->ended; });
    polled.assign(1, {.fd = wake_.get(), .events = POLLIN, .revents = 0});
    for (const std::unique_ptr<Socket>& socket : sockets_)
      polled.push_back(
          {.fd = socket->fd.get(),
           .events = static_cast<short>((socket->ends_by ? 0 : POLLIN) |
                                        (socket->blocked ? POLLOUT : 0)),
           .revents = 0});
    const auto wait =
        std::chrono::ceil<std::chrono::milliseconds>(due - now).count();
    poll(polled.data(), polled.size(),
         static_cast<int>(std::max<int64_t>(wait, 0)));
    eventfd_t count = 0;
    if (polled[0].revents != 0) eventfd_read(wake_.get(), &count);
    for (size_t i = 1; i < polled.size(); ++i)
      if (polled[i].revents == 0)
        continue;
      else if (sockets_[i - 1]->ends_by)
        End(*sockets_[i - 1]);
      else
        Receive(*sockets_[i - 1]);
  }
  for (const std::unique_ptr<Socket>& socket : sockets_)
    rpc::ShutDown(socket->fd);
  sockets_.clear();
}

MemorySharer::Socket* MemorySharer::Find(const Key& key) {
  for (const std::unique_ptr<Socket>& socket : sockets_)
    if (socket->key == key && !socket->ended) return socket.get();
  return nullptr;
}

void MemorySharer::OpenNow(const Key& key, const std::string& address,
                           const std::string& secret) {
  auto socket = std::make_unique<Socket>();
  socket->key = key;
  absl::Status status;
  if (sockets_.size() >= config_.max_sockets)
    status = ResourceExhausted("{} memory sockets are open: the limit",
                               sockets_.size());
  if (status.ok()) {
    absl::StatusOr<Fd> fd = rpc::ConnectMemorySocket(address, kNow);
    status = fd.status();
    if (fd.ok()) socket->fd = *std::move(fd);
  }
  if (!status.ok()) {
    events_.failed(key, status);
    events_.closed(key);
    return;
  }
  Socket::Request request;
  v1::ShareHello* hello = request.message.mutable_hello();
  hello->set_version(rpc::kMemorySocketVersion);
  hello->set_secret(secret);
  socket->queue.push_back(std::move(request));
  sockets_.push_back(std::move(socket));
}

void MemorySharer::ShareNow(const Key& key,
                            const std::shared_ptr<BatchMemory>& memory) {
  Socket* socket = Find(key);
  if (socket == nullptr || socket->failed) return;
  SweepNow();
  if (socket->shared.size() >= config_.max_memories) {
    events_.shared(
        key, memory->id(),
        ResourceExhausted("{} pieces of memory are shared: the limit",
                          socket->shared.size()));
    return;
  }
  Socket::Request request;
  request.memory_id = memory->id();
  request.memory = memory;
  v1::ShareMemory* share = request.message.mutable_share();
  share->set_memory_id(memory->id());
  share->set_kind(memory->kind() == BatchMemory::Kind::kDevice
                      ? v1::ShareMemory::KIND_DEVICE
                      : v1::ShareMemory::KIND_HOST);
  share->set_bytes(layout_->bytes);
  share->set_mapped_bytes(memory->mapped_bytes());
  share->set_rows(layout_->rows);
  for (const BatchLayout::Part& part : layout_->parts)
    share->add_field_offsets(part.offset);
  share->set_device_uuid(memory->device_uuid());
  socket->shared[memory->id()] = memory;
  socket->queue.push_back(std::move(request));
}

void MemorySharer::SweepNow() {
  for (const std::unique_ptr<Socket>& socket : sockets_) {
    for (auto it = socket->shared.begin(); it != socket->shared.end();) {
      if (!it->second.expired()) {
        ++it;
        continue;
      }
      Socket::Request request;
      request.memory_id = it->first;
      request.message.mutable_give_back()->set_memory_id(it->first);
      if (!socket->failed) socket->queue.push_back(std::move(request));
      it = socket->shared.erase(it);
    }
  }
}

void MemorySharer::Flush(Socket& socket) {
  socket.blocked = false;
  while (!socket.queue.empty()) {
    Socket::Request& request = socket.queue.front();
    const int fd = request.memory ? request.memory->fd() : -1;
    const absl::Status status =
        rpc::SendPacket(socket.fd.get(), request.message, fd, kNow);
    if (absl::IsDeadlineExceeded(status)) {
      socket.blocked = true;
      return;
    }
    if (!status.ok()) {
      // The worker has gone, or a descriptor cannot be sent: nothing more is
      // shared.
      if (absl::IsUnavailable(status) && !socket.ready)
        End(socket);
      else
        Fail(socket, status);
      return;
    }
    request.memory.reset();
    request.deadline = Clock::Real().Now() + config_.reply_timeout;
    socket.awaiting.push_back(std::move(request));
    socket.queue.pop_front();
  }
}

void MemorySharer::Receive(Socket& socket) {
  while (!socket.ended) {
    v1::ShareReply reply;
    Fd fd;
    const absl::Status status = config_.receive(socket.fd.get(), &reply, &fd);
    if (absl::IsDeadlineExceeded(status)) return;
    if (absl::IsInvalidArgument(status)) {
      Fail(socket, status);
    } else if (absl::IsUnavailable(status)) {
      End(socket);
    } else if (!status.ok()) {
      return AwaitEnd(socket, status);
    } else if (socket.awaiting.empty()) {
      Fail(socket, InvalidArgument("a reply to nothing"));
    } else {
      Answer(socket,
             reply.code() == 0
                 ? absl::OkStatus()
                 : MakeStatus(static_cast<absl::StatusCode>(reply.code()), "{}",
                              reply.message()));
    }
  }
}

void MemorySharer::Answer(Socket& socket, const absl::Status& status) {
  const Socket::Request request = std::move(socket.awaiting.front());
  socket.awaiting.pop_front();
  if (socket.failed) return;
  switch (request.message.kind_case()) {
    case v1::ShareRequest::kHello:
      if (status.ok()) {
        socket.ready = true;
        events_.ready(socket.key);
      } else {
        Fail(socket, status);
      }
      break;
    case v1::ShareRequest::kShare:
      if (!status.ok()) socket.shared.erase(request.memory_id);
      if (!request.late || status.ok())
        events_.shared(socket.key, request.memory_id, status);
      break;
    default:
      events_.returned(socket.key, request.memory_id);
  }
}

absl::Status MemorySharer::ReceiveArrived(int socket, v1::ShareReply* reply,
                                          Fd* fd) {
  return rpc::ReceivePacket(socket, reply, fd, kNow);
}

void MemorySharer::CheckTime(Socket& socket, MonotonicTime now) {
  if (socket.ends_by && *socket.ends_by <= now) {
    LOG_ERROR("sharing.not_ended note=\"the worker keeps its socket\"");
    return End(socket);
  }
  for (Socket::Request& request : socket.awaiting) {
    if (request.late || request.deadline > now) continue;
    request.late = true;
    const absl::Status status = DeadlineExceeded(
        "memory socket: no reply within {} ms",
        std::chrono::ceil<std::chrono::milliseconds>(config_.reply_timeout)
            .count());
    if (request.message.has_hello())
      Fail(socket, status);
    else if (request.message.has_share() && !socket.failed)
      events_.shared(socket.key, request.memory_id, status);
  }
}

// Shares no more memory. Tells the worker, and waits for its end, since it may
// have rows to write.
void MemorySharer::Fail(Socket& socket, const absl::Status& status) {
  if (std::exchange(socket.failed, true)) return;
  socket.queue.clear();
  events_.failed(socket.key, status);
  if (socket.ready)
    shutdown(socket.fd.get(), SHUT_WR);
  else
    End(socket);
}

// This side cannot receive any more, for example for lack of memory, but the
// worker still has the memory, so leases are active until it closes.
void MemorySharer::AwaitEnd(Socket& socket, const absl::Status& status) {
  Fail(socket, status);
  socket.ends_by = Clock::Real().Now() + config_.end_timeout;
}

void MemorySharer::End(Socket& socket) {
  if (std::exchange(socket.ended, true)) return;
  rpc::ShutDown(socket.fd);
  socket.fd.Close();
  events_.closed(socket.key);
}

}  // namespace leat::client
