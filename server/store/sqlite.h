// SPDX-License-Identifier: Apache-2.0
//
// Database and Statement: SQLite with Status and without leaks.
//
// One thread at a time may use a Database and its Statements.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace leat::server {

class Statement {
 public:
  Statement& Bind(int index, int64_t value);
  Statement& Bind(int index, std::string_view bytes);  // a blob; not copied
  // Returns true if there is a row, false at the end.
  absl::StatusOr<bool> Step();
  // Steps to the end and makes the statement ready for its next use.
  absl::Status Run();
  void Reset();

  int64_t Int(int column) const;
  std::string Blob(int column) const;

 private:
  friend class Database;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* database, sqlite3_stmt* statement, std::string file);
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  std::string file_;
};

class Database {
 public:
  // kDataLoss: the file is not a database. kPermissionDenied, kUnavailable
  // (another program holds it), ...: all errors name the file.
  static absl::StatusOr<Database> Open(const std::string& file, bool read_only);

  absl::Status Exec(const std::string& sql);
  absl::StatusOr<Statement> Prepare(const std::string& sql);
  const std::string& file() const { return file_; }

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
  };
  explicit Database(std::string file) : file_(std::move(file)) {}
  std::string file_;
  std::unique_ptr<sqlite3, Closer> database_;
};

}  // namespace leat::server
