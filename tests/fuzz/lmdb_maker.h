// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lmdb.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {

// Returns the data file that the real library makes from these values.
inline std::string LmdbOf(const std::vector<std::string>& values) {
  const TempDir dir;
  const auto check = [](int code) {
    if (code != 0) abort();
  };
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi;
  check(mdb_env_create(&env));
  check(mdb_env_open(env, dir.path().c_str(), MDB_NOSYNC, 0600));
  check(mdb_txn_begin(env, nullptr, 0, &txn));
  check(mdb_dbi_open(txn, nullptr, 0, &dbi));
  for (size_t i = 0; i < values.size(); ++i) {
    std::string key = fmt::format("{:08}", i);
    std::string value = values[i];
    MDB_val k{key.size(), key.data()};
    MDB_val v{value.size(), value.data()};
    check(mdb_put(txn, dbi, &k, &v, 0));
  }
  check(mdb_txn_commit(txn));
  mdb_env_close(env);
  std::ifstream file(dir.path() + "/data.mdb", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace leat::worker
