// SPDX-License-Identifier: Apache-2.0
#include "client/cli/diagnostics/probes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "client/cli/base/text.h"
#include "core/counted.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr int kSyncs = 20;
constexpr size_t kSyncBytes = 4096;
// A coordinator waits for a sync with each job that is created.
constexpr absl::Duration kSlowSync = absl::Milliseconds(50);

absl::StatusOr<absl::Duration> SyncOnce(int fd) {
  std::array<char, kSyncBytes> block{};
  const absl::Time start = absl::Now();
  if (pwrite(fd, block.data(), block.size(), 0) !=
          static_cast<ssize_t>(block.size()) ||
      fdatasync(fd) != 0)
    return FailedPrecondition("{}", strerror(errno));
  return absl::Now() - start;
}

}  // namespace

absl::StatusOr<absl::Duration> MeasureSync(const std::string& folder) {
  std::string path = folder + "/.leat-doctor-XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return FailedPrecondition("{}: {}", folder, strerror(errno));
  unlink(path.c_str());
  std::vector<absl::Duration> times;
  absl::Status status;
  for (int i = 0; i < kSyncs && status.ok(); ++i) {
    const absl::StatusOr<absl::Duration> time = SyncOnce(fd);
    status = time.status();
    if (time.ok()) times.push_back(*time);
  }
  close(fd);
  if (!status.ok()) return Annotate(status, folder);
  std::sort(times.begin(), times.end());
  return times[times.size() - 2];
}

Diagnosis DiagnoseSync(const std::string& folder,
                       const absl::StatusOr<absl::Duration>& slow) {
  Diagnosis found{.code = "DISK_SYNC", .severity = "ok"};
  if (!slow.ok()) {
    found.severity = "error";
    found.evidence = std::string(Message(slow.status()));
    found.remedy =
        "give the daemon's user a folder on a disk that works, with room";
    return found;
  }
  found.evidence = fmt::format(
      "{} keeps a write within {}", folder,
      absl::FormatDuration(absl::Trunc(*slow, absl::Microseconds(1))));
  if (*slow > kSlowSync) {
    found.severity = "warn";
    found.remedy =
        "put --state on a disk of its own: creating a job waits for it, and "
        "commits that take seconds are alerted";
  }
  return found;
}

Diagnosis DiagnoseData(const std::string& uri,
                       const absl::StatusOr<Json>& report) {
  Diagnosis found{.code = "DATA", .severity = "ok"};
  if (!report.ok()) {
    found.severity = "error";
    found.evidence = fmt::format("{}: {}", uri, Message(report.status()));
    found.remedy =
        Message(report.status()).find("no program") != std::string_view::npos
            ? "install leat-worker beside leat, or on the PATH: it is what "
              "reads data"
            : "mount it, or give this user credentials for it; a worker reads "
              "with those of its own user";
    return found;
  }
  const bool bad = Whole(*report, "bad_records") > 0;
  found.evidence =
      fmt::format("{}: {} of {}; {} {} read", Text(*report, "uri"),
                  Counted(Whole(*report, "records"), "record"),
                  Text(*report, "format"), Whole(*report, "records_read"),
                  Whole(*report, "records_read") == 1 ? "was" : "were");
  if (bad) {
    found.severity = "error";
    found.evidence += ", and could not be";
    found.remedy = "leat index URI says which records are bad, and why";
  }
  return found;
}

}  // namespace leat::cli
