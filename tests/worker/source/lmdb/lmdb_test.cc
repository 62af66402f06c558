// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <lmdb.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/worker/source/arrays/array_support.h"
#include "worker/source/lmdb/walker.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

// An environment of the real library.
class Database {
 public:
  explicit Database(const std::string& folder, unsigned flags = 0) {
    fs::create_directories(folder);
    Check(mdb_env_create(&env_));
    Check(mdb_env_set_mapsize(env_, 256 << 20));
    Check(mdb_env_set_maxdbs(env_, 4));
    Check(mdb_env_open(env_, folder.c_str(), flags | MDB_NOSYNC, 0600));
  }
  ~Database() { mdb_env_close(env_); }

  // Writes one transaction.
  void Write(const std::map<std::string, std::string>& put,
             const std::vector<std::string>& erase = {}) {
    MDB_txn* const txn = Begin();
    MDB_dbi dbi;
    Check(mdb_dbi_open(txn, nullptr, 0, &dbi));
    for (const auto& [key, value] : put) {
      MDB_val k = Val(key), v = Val(value);
      Check(mdb_put(txn, dbi, &k, &v, 0));
    }
    for (const std::string& key : erase) {
      MDB_val k = Val(key);
      const int code = mdb_del(txn, dbi, &k, nullptr);
      if (code != MDB_NOTFOUND) Check(code);
    }
    Check(mdb_txn_commit(txn));
  }
  // Returns the values by the library's cursor.
  std::vector<std::string> Values() {
    MDB_txn* txn = nullptr;
    Check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn));
    MDB_dbi dbi;
    Check(mdb_dbi_open(txn, nullptr, 0, &dbi));
    MDB_cursor* cursor = nullptr;
    Check(mdb_cursor_open(txn, dbi, &cursor));
    std::vector<std::string> values;
    MDB_val key, value;
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
      values.emplace_back(static_cast<const char*>(value.mv_data),
                          value.mv_size);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    return values;
  }
  MDB_txn* Begin() {
    MDB_txn* txn = nullptr;
    Check(mdb_txn_begin(env_, nullptr, 0, &txn));
    return txn;
  }
  int Depth() {
    MDB_stat stat;
    Check(mdb_env_stat(env_, &stat));
    return static_cast<int>(stat.ms_depth);
  }
  static MDB_val Val(const std::string& text) {
    return {text.size(), const_cast<char*>(text.data())};
  }
  static void Check(int code) { ASSERT_EQ(code, 0) << mdb_strerror(code); }

 private:
  MDB_env* env_ = nullptr;
};

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file whose server claims that it is larger.
class Claimed final : public StorageFile {
 public:
  explicit Claimed(const StorageFile& file) : file_(file) {}
  const std::string& name() const override { return file_.name(); }
  uint64_t size() const override { return uint64_t{1} << 60; }
  const std::string& identity() const override { return file_.identity(); }
  absl::Status ReadAt(uint64_t offset,
                      std::span<std::byte> into) const override {
    return file_.ReadAt(offset, into);
  }
  absl::Status ReadRanges(std::span<const ReadRange> ranges) const override {
    return file_.ReadRanges(ranges);
  }

 private:
  const StorageFile& file_;
};

class LmdbTest : public ReaderTest {
 protected:
  std::string Folder() const { return dir_.path() + "/db"; }
  std::string DataFile() const { return Folder() + "/data.mdb"; }

  absl::StatusOr<LmdbListing> List(const std::string& path) {
    ASSIGN_OR_RETURN(const auto file, StorageOf(limits_).Open(path));
    return ListLmdb(*file, limits_);
  }
  // Returns the values that the walker finds.
  std::vector<std::string> Found(const std::string& path) {
    const auto listing = List(path);
    EXPECT_TRUE(listing.ok()) << listing.status();
    if (!listing.ok()) return {};
    const std::string bytes = Slurp(path);
    std::vector<std::string> values;
    for (const LmdbValue& value : listing->values)
      values.push_back(bytes.substr(value.offset, value.bytes));
    return values;
  }
  absl::Status ListError(const std::string& bytes) {
    return List(dir_.Write("bad.mdb", bytes)).status();
  }
  static void Put(std::string* bytes, size_t at, const void* value,
                  size_t size) {
    std::memcpy(bytes->data() + at, value, size);
  }

  std::minstd_rand random_{1};
};

std::string Key(int i) { return fmt::format("{:08}", i); }

TEST_F(LmdbTest, RandomDatabasesAreReadAsTheLibraryDoes) {
  for (int round = 0; round < 12; ++round) {
    fs::remove_all(Folder());
    Database database(Folder());
    const int keys = 1 << (round % 12);
    for (int transaction = 0; transaction < 5; ++transaction) {
      std::map<std::string, std::string> put;
      std::vector<std::string> erase;
      for (int i = 0; i < keys; ++i) {
        std::string key = Key(static_cast<int>(random_() % 5000));
        if (round % 2 == 0) key += std::string(random_() % 400, 'k');
        if (random_() % 3 == 0) {
          erase.push_back(key);
        } else {
          const size_t most = random_() % 8 == 0 ? 20'000 : 300;
          put[key] = std::string(random_() % most,
                                 static_cast<char>('a' + random_() % 26));
        }
      }
      database.Write(put, erase);
      ASSERT_EQ(Found(DataFile()), database.Values()) << round;
    }
  }
}

TEST_F(LmdbTest, TreesOfSeveralLevelsAndOverflowPagesAreWalked) {
  Database database(Folder());
  std::map<std::string, std::string> put;
  for (int i = 0; i < 20'000; ++i)
    put[Key(i) + std::string(200, 'x')] = std::to_string(i);
  put["big"] = std::string(1'000'000, 'b');
  put["empty"] = "";
  database.Write(put);
  ASSERT_GE(database.Depth(), 4);
  EXPECT_EQ(Found(DataFile()), database.Values());
  // A smaller value keeps the pages of the larger one.
  database.Write({{"big", std::string(900'000, 'c')}});
  EXPECT_EQ(Found(DataFile()), database.Values());
}

TEST_F(LmdbTest, AnEmptiedDatabaseHasNoValues) {
  Database database(Folder());
  database.Write({{"a", "1"}});
  database.Write({}, {"a"});
  EXPECT_TRUE(Found(DataFile()).empty());
  const Node reader = {.op = "readers.caffe",
                       .args = {{"path", std::vector<std::string>{Folder()}}}};
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(reader)));
}

TEST_F(LmdbTest, KeysComparedBackwardsKeepTheTreesOrder) {
  Database database(Folder());
  MDB_txn* const txn = database.Begin();
  MDB_dbi dbi;
  Database::Check(mdb_dbi_open(txn, nullptr, MDB_REVERSEKEY, &dbi));
  for (const std::string key : {"az", "by", "cx"}) {
    MDB_val k = Database::Val(key);
    Database::Check(mdb_put(txn, dbi, &k, &k, 0));
  }
  Database::Check(mdb_txn_commit(txn));
  EXPECT_THAT(Found(DataFile()), ElementsAre("cx", "by", "az"));
}

TEST_F(LmdbTest, SeveralValuesAKeyAndNamedDatabasesAreRefused) {
  for (const char* name : {static_cast<const char*>(nullptr), "named"}) {
    fs::remove_all(Folder());
    Database database(Folder());
    MDB_txn* const txn = database.Begin();
    MDB_dbi dbi;
    Database::Check(mdb_dbi_open(
        txn, name, name == nullptr ? MDB_DUPSORT : MDB_CREATE, &dbi));
    for (const std::string value : {"1", "2"}) {
      const std::string key = name == nullptr ? "k" : value;
      MDB_val k = Database::Val(key), v = Database::Val(value);
      Database::Check(mdb_put(txn, dbi, &k, &v, 0));
    }
    Database::Check(mdb_txn_commit(txn));
    const auto status = List(DataFile()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("one value a key"));
  }
}

TEST_F(LmdbTest, AFileCutOffAtAnyPageIsAnError) {
  Database database(Folder());
  std::map<std::string, std::string> put;
  for (int i = 0; i < 200; ++i)
    put[Key(i)] = std::string(i % 50 == 0 ? 9000 : 100, 'x');
  database.Write(put);
  const std::string good = Slurp(DataFile());
  ASSERT_GT(good.size() / 4096, 8u);
  for (size_t pages = 0; pages < good.size() / 4096; ++pages)
    for (const size_t more : {0, 1, 151, 4095}) {
      const auto status = ListError(good.substr(0, pages * 4096 + more));
      EXPECT_TRUE(absl::IsDataLoss(status)) << pages << " " << status;
      EXPECT_THAT(Message(status), HasSubstr("bad.mdb"));
    }
  EXPECT_TRUE(ListError(good).ok());
}

TEST_F(LmdbTest, OtherFormatsAndMachinesAreNamed) {
  EXPECT_TRUE(absl::IsDataLoss(ListError("")));
  EXPECT_TRUE(absl::IsDataLoss(ListError(std::string(8192, 'x'))));
  Database database(Folder());
  database.Write({{"a", "1"}});
  const std::string good = Slurp(DataFile());

  std::string bad = good;  // 32-bit: the header has 12 bytes
  bad.erase(8, 4);
  auto status = ListError(bad);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("32-bit"));

  bad = good;
  std::reverse(bad.begin() + 16, bad.begin() + 20);
  status = ListError(bad);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("big-endian"));

  bad = good;
  bad[20] = 2;
  status = ListError(bad);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("version 2"));
}

TEST_F(LmdbTest, AChildThatIsItsAncestorIsAnError) {
  Database database(Folder());
  std::map<std::string, std::string> put;
  for (int i = 0; i < 500; ++i) put[Key(i)] = std::string(100, 'x');
  database.Write(put);
  ASSERT_EQ(database.Depth(), 2);
  std::string bytes = Slurp(DataFile());
  const size_t meta = bytes[144] > bytes[4096 + 144] ? 0 : 4096;
  uint64_t root = 0;
  std::memcpy(&root, bytes.data() + meta + 88 + 40, 8);
  uint16_t node = 0, other = 0;
  std::memcpy(&node, bytes.data() + root * 4096 + 16, 2);
  std::memcpy(&other, bytes.data() + root * 4096 + 18, 2);
  const uint32_t child = static_cast<uint32_t>(root);
  std::string loop = bytes;
  Put(&loop, root * 4096 + node, &child, 4);
  EXPECT_TRUE(absl::IsDataLoss(ListError(loop))) << ListError(loop);
  std::string twice = bytes;  // two positions for one child
  std::memcpy(twice.data() + root * 4096 + node,
              bytes.data() + root * 4096 + other, 4);
  const auto status = ListError(twice);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("used twice"));
}

TEST_F(LmdbTest, FlippedBytesNeverReachOutOfTheFile) {
  Database database(Folder());
  std::map<std::string, std::string> put;
  for (int i = 0; i < 100; ++i)
    put[Key(i)] = std::string(i % 20 == 0 ? 9000 : 60, 'x');
  database.Write(put);
  const std::string good = Slurp(DataFile());
  // A page's header, the nodes' positions, and the meta pages matter most.
  for (int i = 0; i < 600; ++i) {
    std::string bad = good;
    const size_t page = random_() % (good.size() / 4096);
    for (int j = 0; j <= i % 3; ++j)
      bad[page * 4096 + random_() % (i % 2 == 0 ? 160 : 4096)] =
          static_cast<char>(random_());
    const auto listing = List(dir_.Write("bad.mdb", bad));
    if (!listing.ok()) continue;
    for (const LmdbValue& value : listing->values) {
      ASSERT_LE(value.offset, bad.size());
      ASSERT_LE(value.bytes, bad.size() - value.offset);
    }
  }
}

TEST_F(LmdbTest, AClaimedSizeTakesNoMemory) {
  Database(Folder()).Write({{"a", "1"}, {"b", "2"}});
  const auto file = StorageOf(limits_).Open(DataFile());
  ASSERT_TRUE(file.ok()) << file.status();
  const auto listing = ListLmdb(Claimed(**file), limits_);
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_EQ(listing->values.size(), 2u);
}

TEST_F(LmdbTest, LimitsAndCancellationHold) {
  Database database(Folder());
  database.Write({{"a", "1"}, {"b", "2"}});
  limits_.max_files = 1;
  EXPECT_TRUE(absl::IsResourceExhausted(List(DataFile()).status()));
  limits_.max_files = 2;
  EXPECT_TRUE(List(DataFile()).ok());
  const std::atomic<bool> cancelled{true};
  limits_.cancelled = &cancelled;
  EXPECT_TRUE(absl::IsCancelled(List(DataFile()).status()));
}

TEST_F(LmdbTest, NothingIsLockedOrWritten) {
  { Database(Folder()).Write({{"a", "1"}}); }
  fs::remove(Folder() + "/lock.mdb");
  const std::string before = Slurp(DataFile());
  EXPECT_THAT(Found(DataFile()), ElementsAre("1"));
  EXPECT_EQ(Slurp(DataFile()), before);
  EXPECT_FALSE(fs::exists(Folder() + "/lock.mdb"));
}

TEST_F(LmdbTest, AWriterThatCommitsIsNoticed) {
  Database database(Folder());
  database.Write({{"a", "1"}});
  const auto file = *StorageOf(limits_).Open(DataFile());
  ASSERT_TRUE(ListLmdb(*file, limits_).ok());
  database.Write({{"b", std::string(100'000, 'x')}});
  const auto status = ListLmdb(*file, limits_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("changed while in use"));
}

}  // namespace
}  // namespace leat::worker
