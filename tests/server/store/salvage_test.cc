// SPDX-License-Identifier: Apache-2.0
//
// A damaged store that is opened with what is still readable.
#include "server/store/salvage.h"

#include <filesystem>
#include <string>

#include "core/status.h"
#include "gtest/gtest.h"
#include "server/state/state.h"
#include "tests/server/store/store_fixture.h"

namespace leat::server {
namespace {

using absl::StatusCode;
using SalvageTest = StoreTest;

// Two tokens, one of them revoked, and a database whose event `damaged`, a text
// in it, can no longer be read.
TEST_F(SalvageTest, NoRevokedTokenComesBackWithDataLossThatIsAccepted) {
  struct Case {
    std::string damaged;  // empty: no event, but SQLite's free list
    bool kept;            // the token that was not revoked
  };
  for (const Case& each :
       {Case{"later", false}, Case{"good-id", false}, Case{"", true}}) {
    std::filesystem::remove_all(dir_);
    Open();
    const auto create = [&](const std::string& id) {
      AccessToken token;
      token.id = id;
      token.name = "name-of-" + id;
      return store_->Append({{}, AccessCreated{token}, {}});
    };
    ASSERT_TRUE(create("good-id").ok());
    ASSERT_TRUE(create("bad-id").ok());
    ASSERT_TRUE(Drain("w0").ok());
    ASSERT_TRUE(store_->Append({{}, AccessRevoked{"bad-id"}, {}}).ok());
    ASSERT_TRUE(Drain("later").ok());
    EXPECT_EQ(store_->losses(), "");
    const uint64_t before = store_->sequence();
    store_.reset();
    std::string bytes = ReadAll(dir_ / "leat.db");
    if (each.damaged.empty())
      bytes[35] ^= 1;  // pages that are on no list
    else
      bytes[bytes.find(each.damaged)] ^= 1;
    WriteAll(dir_ / "leat.db", bytes);
    EXPECT_EQ(TryOpen().code(), StatusCode::kDataLoss) << each.damaged;
    SqliteOptions options;
    options.accept_data_loss = true;
    const absl::Status opened = TryOpen(options);
    ASSERT_TRUE(opened.ok()) << opened;
    State state;
    ASSERT_TRUE(store_
                    ->Replay([&](const Event& event) {
                      state.Replay(event);
                      return absl::OkStatus();
                    })
                    .ok());
    EXPECT_FALSE(state.access().contains("bad-id")) << each.damaged;
    EXPECT_EQ(state.access().contains("good-id"), each.kept) << each.damaged;
    EXPECT_GT(store_->sequence(), before - 1);
    EXPECT_NE(store_->losses().find("read up to event"), std::string::npos);
    EXPECT_EQ(store_->losses().find("access tokens") == std::string::npos,
              each.kept || each.damaged == "good-id")
        << store_->losses();
    Open();
    EXPECT_EQ(store_->losses(), "") << "of this start";
  }
}

TEST_F(SalvageTest, AStartOverThatFailsIsNotTakenForAFreshState) {
  Open();
  const std::string index(200'000, 'i');
  ASSERT_TRUE(store_->Append({{}, Dataset("d1", index)}).ok());
  ASSERT_TRUE(Drain("later").ok());
  store_.reset();
  std::string bytes = ReadAll(dir_ / "leat.db");
  bytes[bytes.find("later")] ^= 1;
  WriteAll(dir_ / "leat.db", bytes);
  SqliteOptions options;
  options.accept_data_loss = true;
  options.max_bytes = 64 * 1024;
  EXPECT_EQ(TryOpen(options).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(TryOpen().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace leat::server
