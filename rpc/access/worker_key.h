// SPDX-License-Identifier: Apache-2.0
//
// WorkerKey: how a worker proves to a consumer that it is the process that the
// coordinator speaks of, and not one that has come to its address.
//
//   worker       makes a key when it starts, and registers with its public half
//   coordinator  tells consumers that half beside the worker's address
//   consumer     opens a stream with a nonce, and takes the first answer only
//                if it has the key's signature of the nonce
//
// A worker that asks another one for a record is told and proved the same.
//
// The private half never leaves the process that made it, so neither the
// coordinator nor a consumer has a secret to lose, and none of them keeps
// anything for a pair of worker and consumer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leat/v1/records.pb.h"
#include "leat/v1/worker.pb.h"

struct evp_pkey_st;

namespace leat::rpc {

inline constexpr size_t kPublicKeyBytes = 32;
inline constexpr size_t kNonceBytes = 32;

// Immutable; thread-safe.
class WorkerKey {
 public:
  // kUnavailable: OpenSSL makes none.
  static absl::StatusOr<std::shared_ptr<const WorkerKey>> Make();

  const std::string& public_key() const { return public_key_; }
  // What `opened` says to a stream that was opened like this; empty where no
  // proof is wanted. kInvalidArgument: the nonce.
  absl::StatusOr<std::string> Prove(const v1::OpenRows& open) const;
  // What an answer to the call says: that its record has this checksum.
  // kInvalidArgument: the nonce.
  absl::StatusOr<std::string> Prove(const v1::GetRecordRequest& asked,
                                    uint32_t crc32c) const;

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  explicit WorkerKey(evp_pkey_st* key) : key_(key) {}
  absl::StatusOr<std::string> Sign(const std::string& statement) const;

  const std::unique_ptr<evp_pkey_st, Free> key_;
  std::string public_key_;
};

// kUnavailable: OpenSSL has no random bytes.
absl::StatusOr<std::string> MakeNonce();

// kUnauthenticated: `proof` is not of who has the other half of `public_key`,
// or not of this opening. Says how it differs.
absl::Status CheckProof(const std::string& public_key, const v1::OpenRows& open,
                        const std::string& proof);
// The same of an answer.
absl::Status CheckProof(const std::string& public_key,
                        const v1::GetRecordRequest& asked,
                        const v1::GetRecordResponse& answer);

}  // namespace leat::rpc
