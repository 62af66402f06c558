// SPDX-License-Identifier: Apache-2.0
#include <lmdb.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/convert/converting.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;

TEST_F(Converting, KeysAreThoseOfCaffe2sTools) {
  ASSERT_EQ(Run({Photos(), Path("out"), "--to", "caffe2"}), "");
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi;
  MDB_cursor* cursor = nullptr;
  ASSERT_EQ(mdb_env_create(&env), 0);
  ASSERT_EQ(mdb_env_open(env, Path("out").c_str(), MDB_RDONLY, 0600), 0);
  ASSERT_EQ(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn), 0);
  ASSERT_EQ(mdb_dbi_open(txn, nullptr, 0, &dbi), 0);
  ASSERT_EQ(mdb_cursor_open(txn, dbi, &cursor), 0);
  Texts keys;
  MDB_val key, value;
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
    keys.emplace_back(static_cast<const char*>(key.mv_data), key.mv_size);
  }
  mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  mdb_env_close(env);
  EXPECT_THAT(keys, ElementsAre("00000000", "00000001", "00000002", "00000003",
                                "00000004"));
}

TEST_F(Converting, ALargeLmdbGrowsOverManyTransactions) {
  const std::string jpeg = "\xff\xd8\xff\xe0";
  for (int i = 0; i < 60; ++i) {
    dir_.Write(fmt::format("big/{:02}.jpg", i),
               jpeg + std::string(static_cast<size_t>(900'000 + i), 'a'));
  }
  dir_.Write("big/whole.jpg", jpeg + std::string(40 << 20, 'b'));
  ASSERT_EQ(Run({Path("big"), Path("out"), "--to", "caffe2"}), "");
  const auto samples = ReadCaffe2(Path("out"));
  ASSERT_EQ(samples.size(), 61u);
  EXPECT_EQ(samples[59].image.size(), 900'063u);
  EXPECT_EQ(samples[60].image.size(), 4u + (40 << 20));
}

}  // namespace
}  // namespace leat::cli
