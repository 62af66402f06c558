// SPDX-License-Identifier: Apache-2.0
//
// WorkerKey lets a worker prove to a consumer that it is the process that the
// coordinator has named, and not another one at the same address.
//
//   worker       makes a key when it starts, and registers with its public half
//   coordinator  sends consumers that half with the worker's address
//   consumer     opens a stream with a nonce, and accepts the first answer only
//                if it has the key's signature of the nonce
//
// A worker that requests a record from another one receives the same proof.
//
// The private half never leaves the process that made it, so neither the
// coordinator nor a consumer has a secret to lose, and none of them stores
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
  // kUnavailable: OpenSSL cannot make a key.
  static absl::StatusOr<std::shared_ptr<const WorkerKey>> Make();

  const std::string& public_key() const { return public_key_; }
  // Returns the proof for the `opened` message of a stream opened with `open`;
  // empty if no proof is requested. kInvalidArgument: the nonce.
  absl::StatusOr<std::string> Prove(const v1::OpenRows& open) const;
  // Returns the proof for the answer to `asked`: the record has this checksum.
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

// kUnauthenticated: `proof` was not made with the private half of `public_key`,
// or is not for this opening. The message says what differs.
absl::Status CheckProof(const std::string& public_key, const v1::OpenRows& open,
                        const std::string& proof);
// The same for an answer.
absl::Status CheckProof(const std::string& public_key,
                        const v1::GetRecordRequest& asked,
                        const v1::GetRecordResponse& answer);

}  // namespace leat::rpc
