// SPDX-License-Identifier: Apache-2.0
#include "client/cli/diagnostics/diagnostics.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include "client/cli/base/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "rpc/process/machine.h"

namespace leat::cli {
namespace {

constexpr uint64_t kDescriptors = 4096;
constexpr uint64_t kSharedBytes = uint64_t{1} << 30;
constexpr uint64_t kLockedBytes = uint64_t{1} << 30;
constexpr absl::Duration kClockDifference = absl::Seconds(5);
constexpr size_t kNamed = 5;  // workers in one line of evidence

class Diagnoses {
 public:
  // `bad` empty: no problem.
  void Add(std::string code, std::string_view bad, std::string evidence,
           std::string remedy) {
    const bool well = bad.empty();
    all_.push_back({std::move(code), well ? "ok" : std::string(bad),
                    std::move(evidence), well ? "" : std::move(remedy)});
  }
  std::vector<Diagnosis> Take() { return std::move(all_); }

 private:
  std::vector<Diagnosis> all_;
};

uint64_t SoftLimit(int which) {
  rlimit limit{};
  if (getrlimit(which, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? ~uint64_t{0} : limit.rlim_cur;
}

// Returns how many "0" or "0-1" or "0,2-3" are.
unsigned NumaNodes() {
  std::ifstream in("/sys/devices/system/node/online");
  unsigned count = 0, first = 0, last = 0;
  while (in >> first) {
    last = first;
    if (in.peek() == '-') in.ignore(), in >> last;
    if (!in || last < first) break;
    count += last - first + 1;
    if (in.peek() == ',') in.ignore();
  }
  return std::max(1u, count);
}

bool IsLoopback(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("localhost:") ||
         address.starts_with("[::1]") || address.starts_with("unix");
}

std::string FirstOf(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamed);
  return fmt::format(
      "{}{}",
      fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown),
                ", "),
      names.size() > shown ? fmt::format(" and {} more", names.size() - shown)
                           : "");
}

}  // namespace

LocalFacts GatherLocal() {
  LocalFacts facts;
  facts.descriptors = SoftLimit(RLIMIT_NOFILE);
  facts.locked_bytes = SoftLimit(RLIMIT_MEMLOCK);
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0)
    facts.shm_free_bytes = uint64_t{shm.f_bavail} * shm.f_frsize;
  timex clock{};
  if (const int state = adjtimex(&clock); state >= 0)
    facts.clock_is_synchronised =
        state != TIME_ERROR && (clock.status & STA_UNSYNC) == 0;
  facts.cpus = std::thread::hardware_concurrency();
  facts.cpu_quota = rpc::CoresByQuota({});
  facts.numa_nodes = NumaNodes();
  facts.has_gpu = std::ifstream("/dev/nvidiactl").is_open();
  std::ifstream driver("/proc/driver/nvidia/version");
  std::getline(driver, facts.gpu_driver);
  return facts;
}

std::vector<Diagnosis> DiagnoseLocal(const LocalFacts& facts) {
  Diagnoses to;
  to.Add("DESCRIPTORS", facts.descriptors < kDescriptors ? "warn" : "",
         fmt::format("a process may open {} files",
                     facts.descriptors == ~uint64_t{0}
                         ? "any number of"
                         : std::to_string(facts.descriptors)),
         fmt::format("ulimit -n {}, or LimitNOFILE= of the service: a daemon "
                     "closes connections beyond three quarters of it",
                     16 * kDescriptors));
  to.Add("SHARED_MEMORY",
         !facts.shm_free_bytes                  ? "warn"
         : *facts.shm_free_bytes < kSharedBytes ? "warn"
                                                : "",
         facts.shm_free_bytes
             ? fmt::format("/dev/shm has {} free", Size(*facts.shm_free_bytes))
             : "/dev/shm is not there",
         "give the container more: --shm-size 8g, or an emptyDir of medium "
         "Memory; frameworks pass batches through it");
  to.Add(
      "CPU", facts.cpu_quota > 0 && facts.cpu_quota < facts.cpus ? "warn" : "",
      facts.cpu_quota > 0 ? fmt::format("{} CPUs; the cgroup's quota is {:.1f}",
                                        facts.cpus, facts.cpu_quota)
                          : fmt::format("{} CPUs, without a quota", facts.cpus),
      "raise the quota, or start leat-worker with --threads of it: more "
      "threads are stopped in turns");
  to.Add(
      "NUMA", facts.numa_nodes > 1 ? "warn" : "",
      facts.numa_nodes > 1
          ? fmt::format("memory and CPUs are in {} nodes", facts.numa_nodes)
          : "memory and CPUs are in one node",
      "start a leat-worker on each: numactl --cpunodebind=N --membind=N; one "
      "process over all of them waits for memory of the other nodes");
  if (facts.clock_is_synchronised)
    to.Add("CLOCK", *facts.clock_is_synchronised ? "" : "warn",
           *facts.clock_is_synchronised ? "the clock is synchronised"
                                        : "the clock is not synchronised",
           "start chrony or systemd-timesyncd: keys of object stores, "
           "certificates and access tokens need the time");
  if (facts.has_gpu) {
    to.Add("GPU_DRIVER", facts.gpu_driver.empty() ? "error" : "",
           facts.gpu_driver.empty() ? "there is a GPU, and no driver is loaded"
                                    : facts.gpu_driver,
           "load the NVIDIA driver, or start leat-worker --devices none");
    to.Add("LOCKED_MEMORY", facts.locked_bytes < kLockedBytes ? "warn" : "",
           facts.locked_bytes == ~uint64_t{0}
               ? "memory may be locked without a limit"
               : fmt::format("{} may be locked", Size(facts.locked_bytes)),
           "ulimit -l unlimited, or LimitMEMLOCK=infinity: copies from memory "
           "that is not page-locked are slower");
  }
  return to.Take();
}

std::vector<Diagnosis> DiagnoseService(const Json& status,
                                       std::string_view own_version,
                                       absl::Time now) {
  Diagnoses to;
  const std::string version = Text(status, "version");
  std::vector<std::string> others, loopback;
  std::set<std::string> hosts;
  absl::Time newest = absl::InfinitePast();
  for (const Json& worker : Items(status, "workers")) {
    const std::string name = Text(worker, "name");
    const std::string own = Text(worker, "version");
    if (own != version) others.push_back(fmt::format("{} ({})", name, own));
    if (IsLoopback(Text(worker, "address"))) loopback.push_back(name);
    hosts.insert(Text(worker, "host"));
    absl::Time beat;
    if (absl::ParseTime(absl::RFC3339_full, Text(worker, "last_heartbeat_at"),
                        &beat, nullptr))
      newest = std::max(newest, beat);
  }
  const bool skewed = !others.empty() || version != own_version;
  to.Add("VERSIONS", skewed ? "warn" : "",
         !skewed
             ? fmt::format("all programs are {}", version)
             : fmt::format("the coordinator is {}, this program {}{}{}",
                           version, own_version,
                           others.empty() ? "" : ", workers ", FirstOf(others)),
         "install one version everywhere");
  const bool apart = !loopback.empty() && hosts.size() > 1;
  to.Add("ADDRESSES", apart ? "error" : "",
         hosts.size() <= 1 ? "the workers are on one host"
         : !apart
             ? "no worker tells consumers an address of its own host only"
             : fmt::format("consumers of other hosts cannot reach {}, whose "
                           "addresses are of their own hosts only",
                           FirstOf(loopback)),
         "start them with --listen 0.0.0.0:PORT, or with --advertise");
  if (newest > absl::InfinitePast()) {
    const absl::Duration ahead = newest - now;
    to.Add("CLOCKS", ahead > kClockDifference ? "warn" : "",
           ahead > kClockDifference
               ? fmt::format(
                     "the coordinator's clock is {} ahead of this one",
                     absl::FormatDuration(absl::Trunc(ahead, absl::Seconds(1))))
               : "the coordinator's clock is not ahead of this one",
           "synchronise the clocks of all hosts");
  }
  for (const Json& finding : Items(status, "findings")) {
    const bool muted = Text(finding, "muted") == "true";
    to.Add(Text(finding, "code"), muted ? "" : Text(finding, "severity"),
           (muted ? "muted: " : "") + Text(finding, "summary"),
           Text(finding, "remedy"));
  }
  return to.Take();
}

Diagnosis DiagnoseWorkers(const std::vector<WorkerProbe>& probes,
                          size_t ready) {
  std::vector<std::string> silent;
  for (const WorkerProbe& worker : probes) {
    if (!worker.probe)
      silent.push_back(fmt::format("{} ({})", worker.name, worker.address));
    else if (!worker.probe->remedy.empty())
      return {"WORKERS_REACHED", "warn",
              fmt::format("worker {}: {}", worker.name, worker.probe->what),
              worker.probe->remedy};
  }
  if (!silent.empty())
    return {"WORKERS_REACHED", "warn",
            fmt::format("no answer to this machine from {}", FirstOf(silent)),
            "a training on this machine needs them: look at firewalls, names "
            "and --advertise"};
  return {"WORKERS_REACHED", "ok",
          fmt::format("{} of {} workers were tried, and answer", probes.size(),
                      ready),
          ""};
}

View DiagnosesView(const std::vector<Diagnosis>& diagnoses) {
  View view;
  Json list = Json::array();
  Section section;
  section.table.columns = {{"CODE"}, {"STATE"}, {"EVIDENCE"}};
  for (const Diagnosis& each : diagnoses) {
    list.push_back(Json{{"code", each.code},
                        {"severity", each.severity},
                        {"evidence", each.evidence},
                        {"remedy", each.remedy}});
    if (each.severity != "ok") view.names.push_back(each.code);
    section.table.rows.push_back(
        {{each.code, Tone::kBold},
         {each.severity, each.severity == "ok"     ? Tone::kGood
                         : each.severity == "warn" ? Tone::kWarn
                                                   : Tone::kBad},
         each.evidence});
  }
  Section remedies;
  std::set<std::string> said;  // findings of one code often share a remedy
  for (const Diagnosis& each : diagnoses) {
    const std::string line = fmt::format("{}: {}", each.code, each.remedy);
    if (!each.remedy.empty() && said.insert(line).second)
      remedies.lines.push_back({line, Tone::kPlain, 2});
  }
  if (!remedies.lines.empty()) remedies.title = "Remedies";
  view.sections = {std::move(section), std::move(remedies)};
  view.data["diagnoses"] = std::move(list);
  return view;
}

}  // namespace leat::cli
