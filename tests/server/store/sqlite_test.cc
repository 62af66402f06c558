// SPDX-License-Identifier: Apache-2.0
//
// The files of a database, and their readers.
#include "server/store/sqlite.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace leat::server {
namespace {

namespace fs = std::filesystem;

class SqliteTest : public testing::Test {
 protected:
  SqliteTest() {
    std::string name = fs::temp_directory_path() / "leat-sqlite-XXXXXX";
    root_ = mkdtemp(name.data());
    file_ = root_ / "a.db";
  }
  ~SqliteTest() override { fs::remove_all(root_); }

  fs::perms OfOthers(const char* file) const {
    return fs::status(root_ / file).permissions() & fs::perms::others_all;
  }

  fs::path root_, file_;
};

TEST_F(SqliteTest, NobodyElseMayReadADatabaseAndItsJournal) {
  absl::StatusOr<Database> database = Database::Open(file_, false);
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_TRUE(database->Exec("PRAGMA journal_mode = WAL").ok());
  ASSERT_TRUE(database->Exec("CREATE TABLE t (a INTEGER)").ok());
  EXPECT_EQ(OfOthers("a.db"), fs::perms::none);
  ASSERT_TRUE(fs::exists(root_ / "a.db-wal"));
  EXPECT_EQ(OfOthers("a.db-wal"), fs::perms::none);
}

TEST_F(SqliteTest, ADatabaseThatOthersMayReadIsClosedToThemAndKeepsItsGroup) {
  ASSERT_TRUE(Database::Open(file_, false).ok());
  fs::permissions(file_, fs::perms(0644));
  ASSERT_TRUE(Database::Open(file_, true).ok());
  EXPECT_NE(OfOthers("a.db"), fs::perms::none);  // read-only changes nothing
  ASSERT_TRUE(Database::Open(file_, false).ok());
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0640));
}

TEST_F(SqliteTest, ADatabaseIsNotMadeBeyondALink) {
  fs::create_symlink(root_ / "elsewhere", file_);
  EXPECT_EQ(Database::Open(file_, false).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(fs::exists(root_ / "elsewhere"));
}

}  // namespace
}  // namespace leat::server
