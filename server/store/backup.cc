// SPDX-License-Identifier: Apache-2.0
#include "server/store/backup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "core/clock.h"
#include "core/status.h"
#include "server/state/state.h"
#include "server/store/block_store.h"
#include "server/store/salvage.h"
#include "server/store/sqlite.h"
#include "server/store/state_directory.h"

namespace leat::server {
namespace {

// Removes the copy unless it is finished.
class Unfinished {
 public:
  explicit Unfinished(std::string path) : path_(std::move(path)) {}
  ~Unfinished() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }
  absl::Status Finish(const std::string& name) {
    const int fd = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool kept = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) close(fd);
    if (!kept || std::rename(path_.c_str(), name.c_str()) != 0)
      return ErrnoStatus(errno, fmt::format("cannot make {}", name));
    path_.clear();
    return absl::OkStatus();
  }

 private:
  std::string path_;
};

// Returns whether `path`, which need not exist, is below `folder`.
bool IsBelow(const std::string& path, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error, of_folder;
  const fs::path below =
      fs::weakly_canonical(fs::absolute(path), error)
          .lexically_relative(fs::canonical(folder, of_folder));
  return !error && !of_folder && !below.empty() && *below.begin() != "..";
}

// Copies in one read transaction, so that no writer waits.
absl::Status CopyDatabase(const std::string& from, const std::string& to) {
  std::string quoted;
  for (const char c : to) quoted += c == '\'' ? "''" : std::string(1, c);
  ASSIGN_OR_RETURN(Database database, Database::Open(from, /*read_only=*/true));
  const absl::Status made =
      database.Exec(fmt::format("VACUUM INTO '{}'", quoted));
  if (absl::IsResourceExhausted(made))  // it would name the original
    return ResourceExhausted("{}: no room left for the copy", to);
  RETURN_IF_ERROR(made);
  const int fd = open(to.c_str(), O_RDONLY | O_CLOEXEC);
  const bool kept =
      fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR) == 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  return kept ? absl::OkStatus()
              : ErrnoStatus(error, fmt::format("cannot write {}", to));
}

absl::Status CopyBlocks(const State& state, const std::string& from,
                        const std::string& to, BackedUp* done) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileBlocks> copies,
                   FileBlocks::Open(to));
  for (const auto& [name, size] : state.BlocksInUse()) {
    std::ifstream file(fmt::format("{}/{}", from, ToHex(name)),
                       std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (HashOf(bytes) != name) {
      done->without.push_back(ToHex(name));
      continue;
    }
    RETURN_IF_ERROR(copies->Put(name, bytes, Clock::Real().WallNow()));
    ++done->blocks;
    done->block_bytes += size;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BackedUp> BackUpState(const std::string& from,
                                     const std::string& to) {
  const std::string database = from + "/leat.db";
  struct stat info {};
  if (stat(database.c_str(), &info) != 0)
    return ErrnoStatus(errno, fmt::format("no state in {}", from));
  if (lstat(to.c_str(), &info) == 0)
    return AlreadyExists("{} is there: want a folder that is to be made", to);
  if (IsBelow(to, from))
    return InvalidArgument(
        "{} is inside {}, the folder to be copied; want a folder outside", to,
        from);
  std::string folder = to + ".unfinished-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr)
    return ErrnoStatus(errno, fmt::format("cannot make {}", folder));
  Unfinished copy(folder);
  const std::string copied = copy.path() + "/leat.db";
  RETURN_IF_ERROR(CopyDatabase(database, copied));

  BackedUp done;
  State state;
  {
    ASSIGN_OR_RETURN(Database events, Database::Open(copied, true));
    EventLog log;
    RETURN_IF_ERROR(ReadEvents(&events, BaseOf(&events), &log));
    if (!log.damage.ok())
      return DataLoss("{}: {}", database, Message(log.damage));
    for (const Event& event : log.events) state.Replay(event);
    ASSIGN_OR_RETURN(StateDirectory directory,
                     StateDirectory::Open(copy.path()));
    RETURN_IF_ERROR(directory.WriteHighWater(log.head));
    done.sequence = log.head.sequence;
    done.datasets = state.datasets().size();
  }
  RETURN_IF_ERROR(
      CopyBlocks(state, from + "/blocks", copy.path() + "/blocks", &done));
  RETURN_IF_ERROR(copy.Finish(to));
  return done;
}

}  // namespace leat::server
