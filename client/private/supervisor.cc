// SPDX-License-Identifier: Apache-2.0
#include "client/private/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "core/status.h"

namespace leat::client {
namespace {

// Below the usual limit of 1024 descriptors. Further clients wait in the
// socket's queue.
constexpr size_t kMaxLeases = 900;
constexpr char kOver = 'o', kGoesOn = 'g';

class Supervisor {
 public:
  Supervisor(Fd listener, SupervisorOptions options)
      : listener_(std::move(listener)), options_(std::move(options)) {}
  int Run();

 private:
  absl::Status Start();
  void Fail(const absl::Status& status);
  // Returns false when the service ends.
  bool Turn();
  void Accept();
  void Greet(int lessee);
  bool PassEventOn();
  void DropClosed(const std::vector<pollfd>& waits);

  Fd listener_;
  SupervisorOptions options_;
  std::unique_ptr<Embedded> embedded_;
  Pipe events_;  // lines of kOver or kGoesOn and text, from Embedded's thread
  bool full_ = false;       // no descriptor is left for another lease
  std::vector<Fd> leases_;  // oldest first
};

absl::Status Supervisor::Start() {
  fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
  // Both ends are non-blocking: an event is dropped if the pipe is full.
  ASSIGN_OR_RETURN(events_, Pipe::Create());
  fcntl(events_.read.get(), F_SETFL, O_NONBLOCK | O_DIRECT);
  fcntl(events_.write.get(), F_SETFL, O_NONBLOCK | O_DIRECT);
  options_.daemons.on_event = [fd = events_.write.get()](
                                  bool over, const std::string& line) {
    // With O_DIRECT each write is one packet for the reader.
    std::string event(1, over ? kOver : kGoesOn);
    event += line.substr(0, 4000);
    while (write(fd, event.data(), event.size()) < 0 && errno == EINTR) {
    }
  };
  ASSIGN_OR_RETURN(embedded_, Embedded::Start(options_.daemons));
  return absl::OkStatus();
}

// Tells each waiting client why.
void Supervisor::Fail(const absl::Status& status) {
  const std::string text = fmt::format(
      "failed\n{}\n{}", static_cast<int>(status.code()), Message(status));
  while (true) {
    const absl::StatusOr<Fd> lessee = AcceptLocal(listener_.get());
    if (!lessee.ok() || !lessee->open()) return;
    SendLocal(lessee->get(), text.substr(0, kMaxLocalMessage));
  }
}

void Supervisor::Greet(int lessee) {
  SendLocal(lessee,
            fmt::format("ready\n{}\n{}\n{}\n{}\n{}", embedded_->address(),
                        embedded_->token(), getpid(), leases_.size(),
                        options_.description),
            embedded_->listeners());
}

void Supervisor::Accept() {
  while (leases_.size() < kMaxLeases) {
    absl::StatusOr<Fd> lessee = AcceptLocal(listener_.get());
    // Until a lease ends, so that the loop does not spin.
    full_ = !lessee.ok();
    if (full_ || !lessee->open()) return;
    leases_.push_back(*std::move(lessee));
    Greet(leases_.back().get());
  }
}

bool Supervisor::PassEventOn() {
  char event[4096];
  const ssize_t n = read(events_.read.get(), event, sizeof event);
  if (n < 1) return true;
  const std::string text =
      "log\n" + std::string(event + 1, static_cast<size_t>(n - 1));
  for (const Fd& lessee : leases_)
    if (SendLocal(lessee.get(), text)) break;
  return event[0] != kOver;
}

// `waits`: the leases', in order, after those of the loop itself.
void Supervisor::DropClosed(const std::vector<pollfd>& waits) {
  std::vector<Fd> kept;
  for (size_t i = 0; i < leases_.size(); ++i) {
    char byte;
    const bool closed = waits[i].revents != 0 &&
                        (recv(leases_[i].get(), &byte, 1, MSG_DONTWAIT) >= 0 ||
                         (errno != EAGAIN && errno != EINTR));
    if (closed)
      full_ = false;
    else
      kept.push_back(std::move(leases_[i]));
  }
  leases_ = std::move(kept);
}

bool Supervisor::Turn() {
  // poll ignores a negative descriptor.
  std::vector<pollfd> own = {
      {full_ || leases_.size() >= kMaxLeases ? -1 : listener_.get(), POLLIN, 0},
      {events_.read.get(), POLLIN, 0}};
  std::vector<pollfd> all = own;
  for (const Fd& lessee : leases_) all.push_back({lessee.get(), POLLIN, 0});
  const int n = poll(
      all.data(), all.size(),
      leases_.empty()
          ? static_cast<int>(absl::ToInt64Milliseconds(options_.first_lease))
          : -1);
  if (n < 0) return errno == EINTR;
  if (n == 0) return false;
  const bool goes_on = all[1].revents == 0 || PassEventOn();
  if (!leases_.empty()) {
    DropClosed({all.begin() + 2, all.end()});
    // Checked before waiting clients are accepted: they need a new service.
    if (leases_.empty()) return false;
  }
  if (all[0].revents != 0) Accept();
  return goes_on;
}

int Supervisor::Run() {
  if (const absl::Status status = Start(); !status.ok()) {
    Fail(status);
    return 1;
  }
  while (Turn()) {
  }
  // Clients in the queue are closed when the name is given up, and start the
  // next service. It needs the disk cache, if there is one, so the name stays
  // taken until the daemons have ended. On a busy machine that takes seconds,
  // in which their idle threads get no processor.
  leases_.clear();
  if (options_.daemons.disk_cache.empty()) listener_ = Fd();
  embedded_.reset();
  return 0;
}

}  // namespace

int Supervise(Fd listener, SupervisorOptions options) {
  return Supervisor(std::move(listener), std::move(options)).Run();
}

}  // namespace leat::client
