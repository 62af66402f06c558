// SPDX-License-Identifier: Apache-2.0
#include "rpc/access/worker_key.h"

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

using ::testing::HasSubstr;

v1::OpenRows Opening() {
  v1::OpenRows open;
  open.set_plan_hash(std::string(32, 'p'));
  open.set_consumer("host/1");
  open.set_nonce(*MakeNonce());
  return open;
}

TEST(WorkerKey, ProvesWhatWasOpened) {
  const auto key = *WorkerKey::Make();
  EXPECT_EQ(key->public_key().size(), kPublicKeyBytes);
  for (int i = 0; i < 3; ++i) {
    const v1::OpenRows open = Opening();
    EXPECT_TRUE(CheckProof(key->public_key(), open, *key->Prove(open)).ok());
  }
}

TEST(WorkerKey, AnotherProcessHasAnotherKey) {
  const auto key = *WorkerKey::Make(), other = *WorkerKey::Make();
  EXPECT_NE(key->public_key(), other->public_key());
  const v1::OpenRows open = Opening();
  const absl::Status status =
      CheckProof(key->public_key(), open, *other->Prove(open));
  EXPECT_TRUE(absl::IsUnauthenticated(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("another key"));
}

TEST(WorkerKey, AProofIsOfOneOpeningAndNoOther) {
  const auto key = *WorkerKey::Make();
  const v1::OpenRows open = Opening();
  const std::string proof = *key->Prove(open);
  v1::OpenRows later = Opening(), job = open, consumer = open;
  job.set_plan_hash(std::string(32, 'q'));
  consumer.set_consumer("host/2");
  EXPECT_NE(later.nonce(), open.nonce());
  for (const v1::OpenRows& other : {later, job, consumer})
    EXPECT_TRUE(
        absl::IsUnauthenticated(CheckProof(key->public_key(), other, proof)));
}

TEST(WorkerKey, WhatIsNoProofOrNoKeyIsRefused) {
  const auto key = *WorkerKey::Make();
  const v1::OpenRows open = Opening();
  const std::string proof = *key->Prove(open);
  for (size_t i = 0; i < proof.size(); ++i) {
    std::string flipped = proof;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_FALSE(CheckProof(key->public_key(), open, flipped).ok()) << i;
  }
  for (const std::string& wrong :
       {std::string(), std::string("x"), proof + "x", std::string(64, '\0')})
    EXPECT_TRUE(
        absl::IsUnauthenticated(CheckProof(key->public_key(), open, wrong)));
  for (const std::string& wrong :
       {std::string("x"), std::string(32, '\0'), std::string(33, 'k')})
    EXPECT_TRUE(absl::IsUnauthenticated(CheckProof(wrong, open, proof)));
}

TEST(WorkerKey, WithoutANonceNothingIsProvedAndOneOfAnotherSizeIsWrong) {
  const auto key = *WorkerKey::Make();
  v1::OpenRows open = Opening();
  open.clear_nonce();
  EXPECT_EQ(*key->Prove(open), "");
  for (const size_t bytes : {1, 31, 33, 1000}) {
    open.set_nonce(std::string(bytes, 'n'));
    EXPECT_TRUE(absl::IsInvalidArgument(key->Prove(open).status())) << bytes;
  }
}

}  // namespace
}  // namespace leat::rpc
