// SPDX-License-Identifier: Apache-2.0
//
// leat_packet_relay NAMESPACE DEVICE SEED: a bad network between this network
// namespace and another one: a TUN device of that name in each, and packets
// between the two that are lost, doubled, late, and so out of order.
//
// Prints "ready" when the devices exist. Each line of stdin is
// "LOSS DOUBLE DELAY_MS JITTER_MS", the first two in thousandths of the
// packets. At the end of stdin it prints its counts and ends, and the devices
// are removed.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxWaiting = 8192;  // further packets are lost
constexpr size_t kMaxPacketBytes = 65536;

struct Faults {
  unsigned loss = 0, twice = 0;  // of 1,000
  double delay_ms = 0, jitter_ms = 0;
};

struct Packet {
  Clock::time_point due;
  uint64_t number = 0;
  int to = -1;
  std::string bytes;
  bool operator>(const Packet& other) const {
    return due != other.due ? due > other.due : number > other.number;
  }
};

struct Counts {
  uint64_t packets = 0, lost = 0, twice = 0, overtaken = 0;
};

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int OpenTun(const char* name) {
  const int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) Die("/dev/net/tun");
  ifreq request = {};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (ioctl(fd, TUNSETIFF, &request) < 0) Die("TUNSETIFF");
  return fd;
}

class Relay {
 public:
  Relay(int here, int there, uint64_t seed)
      : ends_{here, there}, random_(seed) {}

  // Runs until the end of stdin.
  void Run() {
    while (true) {
      pollfd polled[] = {{ends_[0], POLLIN, 0},
                         {ends_[1], POLLIN, 0},
                         {STDIN_FILENO, POLLIN, 0}};
      const int timeout_ms =
          waiting_.empty()
              ? -1
              : std::max(0, static_cast<int>(
                                std::chrono::ceil<std::chrono::milliseconds>(
                                    waiting_.top().due - Clock::now())
                                    .count()));
      if (poll(polled, 3, timeout_ms) < 0) Die("poll");
      for (int end = 0; end < 2; ++end)
        if (polled[end].revents != 0) Take(ends_[end], ends_[1 - end]);
      if (polled[2].revents != 0 && !ReadFaults()) return;
      Deliver();
    }
  }
  const Counts& counts() const { return counts_; }

 private:
  bool Drawn(unsigned of_1000) { return random_() % 1000 < of_1000; }

  void Take(int from, int to) {
    char bytes[kMaxPacketBytes];
    for (ssize_t size = 0; (size = read(from, bytes, sizeof bytes)) > 0;) {
      ++counts_.packets;
      if (Drawn(faults_.loss) || waiting_.size() >= kMaxWaiting) {
        ++counts_.lost;
        continue;
      }
      const std::string packet(bytes, static_cast<size_t>(size));
      Wait(to, packet);
      if (!Drawn(faults_.twice)) continue;
      ++counts_.twice;
      Wait(to, packet);
    }
  }
  void Wait(int to, const std::string& bytes) {
    std::uniform_real_distribution<double> jitter(-faults_.jitter_ms,
                                                  faults_.jitter_ms);
    const double ms = std::max(0.0, faults_.delay_ms + jitter(random_));
    waiting_.push({Clock::now() + std::chrono::microseconds(
                                      static_cast<int64_t>(ms * 1000)),
                   next_++, to, bytes});
  }
  void Deliver() {
    while (!waiting_.empty() && waiting_.top().due <= Clock::now()) {
      const Packet& packet = waiting_.top();
      uint64_t& last = last_[packet.to == ends_[0] ? 0 : 1];
      if (packet.number < last) ++counts_.overtaken;
      last = std::max(last, packet.number);
      // A device that is down loses the packet.
      if (write(packet.to, packet.bytes.data(), packet.bytes.size()) < 0)
        ++counts_.lost;
      waiting_.pop();
    }
  }
  bool ReadFaults() {
    char line[256];
    const ssize_t size = read(STDIN_FILENO, line, sizeof line - 1);
    if (size <= 0) return false;
    line[size] = '\0';
    for (char* one = std::strtok(line, "\n"); one != nullptr;
         one = std::strtok(nullptr, "\n"))
      if (std::sscanf(one, "%u %u %lf %lf", &faults_.loss, &faults_.twice,
                      &faults_.delay_ms, &faults_.jitter_ms) != 4)
        std::exit(2);
    return true;
  }

  const int ends_[2];
  std::mt19937_64 random_;
  Faults faults_;
  Counts counts_;
  uint64_t next_ = 1, last_[2] = {};
  std::priority_queue<Packet, std::vector<Packet>, std::greater<>> waiting_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int here = OpenTun(argv[2]);
  const std::string path = std::string("/var/run/netns/") + argv[1];
  const int other = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (other < 0 || setns(other, CLONE_NEWNET) < 0) Die(path.c_str());
  Relay relay(here, OpenTun(argv[2]), std::strtoull(argv[3], nullptr, 10));
  std::puts("ready");
  std::fflush(stdout);
  relay.Run();
  const Counts& counts = relay.counts();
  std::printf("packets=%lu lost=%lu twice=%lu overtaken=%lu\n", counts.packets,
              counts.lost, counts.twice, counts.overtaken);
}
