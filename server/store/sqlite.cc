// SPDX-License-Identifier: Apache-2.0
#include "server/store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/status.h"

namespace leat::server {
namespace {

constexpr int kBusyTimeoutMs = 5000;

bool NoRoom(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

absl::Status Error(sqlite3* database, const std::string& file) {
  const int extended = sqlite3_extended_errcode(database);
  const char* text = sqlite3_errmsg(database);
  switch (extended & 0xff) {
    case SQLITE_FULL:
      return ResourceExhausted("{}: no room left for it to grow", file);
    case SQLITE_IOERR:
      // After a failed fsync the content of the disk is unknown, whatever the
      // reason: this is not a lack of room that leaves everything as it was.
      if (extended == SQLITE_IOERR_FSYNC || extended == SQLITE_IOERR_DIR_FSYNC)
        return Internal("{}: fsync failed: {}", file,
                        strerror(sqlite3_system_errno(database)));
      if (NoRoom(sqlite3_system_errno(database)))
        return ResourceExhausted("{}: no room left for it to grow", file);
      if (extended == SQLITE_IOERR_SHORT_READ)
        return DataLoss("{} is shorter than it should be", file);
      return Internal("{}: {} (input/output error {})", file, text, extended);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_SCHEMA:
    case SQLITE_ERROR:  // an expected table or column is missing
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      return DataLoss("{} is damaged: {}", file, text);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return PermissionDenied("cannot open or write {}: {}", file, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Unavailable("{} is held by another program (a sqlite3 shell?)",
                         file);
    default:
      return Internal("{}: {} (SQLite code {})", file, text, extended);
  }
}

}  // namespace

void Statement::Finalizer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement::Statement(sqlite3* database, sqlite3_stmt* statement,
                     std::string file)
    : database_(database), statement_(statement), file_(std::move(file)) {}

Statement& Statement::Bind(int index, int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

Statement& Statement::Bind(int index, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), index,
                      bytes.data() == nullptr ? "" : bytes.data(), bytes.size(),
                      SQLITE_STATIC);
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return Error(database_, file_);
}

absl::Status Statement::Run() {
  absl::StatusOr<bool> row = Step();
  while (row.ok() && *row) row = Step();
  Reset();
  return row.status();
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::Blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (bytes == nullptr || size <= 0) return {};
  return {static_cast<const char*>(bytes), static_cast<size_t>(size)};
}

void Database::Closer::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

namespace {

// SQLite creates files that every user may read, and its journal with the
// permissions of the database. Jobs name addresses with passwords in them.
// kFailedPrecondition: it is a link, beyond which SQLite would create the file.
absl::Status KeepFromOthers(const std::string& file) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      S_IRUSR | S_IWUSR);
  struct stat found {};
  if (fd >= 0) {
    close(fd);
  } else if (lstat(file.c_str(), &found) == 0) {
    if (S_ISLNK(found.st_mode))
      return FailedPrecondition("{} is a link: want the file itself", file);
    if ((found.st_mode & S_IRWXO) != 0)
      chmod(file.c_str(), found.st_mode & (S_IRWXU | S_IRWXG));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Database> Database::Open(const std::string& file,
                                        bool read_only) {
  if (!read_only) RETURN_IF_ERROR(KeepFromOthers(file));
  Database database(file);
  sqlite3* raw = nullptr;
  const int flags = (read_only ? SQLITE_OPEN_READONLY
                               : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
                    SQLITE_OPEN_NOMUTEX;
  const int result = sqlite3_open_v2(file.c_str(), &raw, flags, nullptr);
  database.database_.reset(raw);
  if (raw == nullptr) return Internal("{}: no memory to open it", file);
  if (result != SQLITE_OK) return Error(raw, file);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  return database;
}

absl::Status Database::Exec(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) !=
      SQLITE_OK)
    return Error(database_.get(), file_);
  return absl::OkStatus();
}

absl::StatusOr<Statement> Database::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(),
                         static_cast<int>(sql.size()), &statement,
                         nullptr) != SQLITE_OK)
    return Error(database_.get(), file_);
  return Statement(database_.get(), statement, file_);
}

}  // namespace leat::server
