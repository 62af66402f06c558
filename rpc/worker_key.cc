// SPDX-License-Identifier: Apache-2.0
#include "rpc/worker_key.h"

#include "core/status.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/rand.h"

namespace leat::rpc {
namespace {

constexpr size_t kProofBytes = 64;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

const uint8_t* BytesOf(const std::string& text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// Its parts but the last have one size each, so no two openings share it.
std::string StatementOf(const v1::OpenRows& open) {
  return "leat rows proof 1\n" + open.nonce() + open.plan_hash() +
         open.consumer();
}

// OpenSSL keeps errors by thread; the next to ask would find them.
absl::Status KeyFailure(std::string_view what) {
  ERR_clear_error();
  return Unavailable("OpenSSL cannot {}", what);
}

}  // namespace

void WorkerKey::Free::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

absl::StatusOr<std::shared_ptr<const WorkerKey>> WorkerKey::Make() {
  std::shared_ptr<WorkerKey> made(
      new WorkerKey(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")));
  std::string& raw = made->public_key_;
  raw.resize(kPublicKeyBytes);
  size_t size = raw.size();
  if (made->key_ == nullptr ||
      EVP_PKEY_get_raw_public_key(made->key_.get(),
                                  reinterpret_cast<uint8_t*>(raw.data()),
                                  &size) != 1 ||
      size != kPublicKeyBytes)
    return KeyFailure("make a worker's key (Ed25519)");
  return made;
}

absl::StatusOr<std::string> WorkerKey::Prove(const v1::OpenRows& open) const {
  if (open.nonce().empty()) return std::string();
  if (open.nonce().size() != kNonceBytes)
    return InvalidArgument("open: a nonce of {} bytes: want {}",
                           open.nonce().size(), kNonceBytes);
  const std::string statement = StatementOf(open);
  const Context context(EVP_MD_CTX_new());
  std::string proof(kProofBytes, '\0');
  size_t size = proof.size();
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr,
                         key_.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<uint8_t*>(proof.data()),
                     &size, BytesOf(statement), statement.size()) != 1 ||
      size != kProofBytes)
    return KeyFailure("sign by the worker's key");
  return proof;
}

absl::StatusOr<std::string> MakeNonce() {
  std::string nonce(kNonceBytes, '\0');
  if (RAND_bytes(reinterpret_cast<uint8_t*>(nonce.data()), kNonceBytes) != 1)
    return KeyFailure("give random bytes");
  return nonce;
}

absl::Status CheckProof(const std::string& public_key, const v1::OpenRows& open,
                        const std::string& proof) {
  if (proof.empty()) return Unauthenticated("it sends no proof");
  if (proof.size() != kProofBytes)
    return Unauthenticated("its proof has {} bytes, and not {}", proof.size(),
                           kProofBytes);
  const std::string statement = StatementOf(open);
  EVP_PKEY* const key = EVP_PKEY_new_raw_public_key_ex(
      nullptr, "ED25519", nullptr, BytesOf(public_key), public_key.size());
  const Context context(EVP_MD_CTX_new());
  const bool fits =
      key != nullptr && context != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key) ==
          1 &&
      EVP_DigestVerify(context.get(), BytesOf(proof), proof.size(),
                       BytesOf(statement), statement.size()) == 1;
  EVP_PKEY_free(key);
  if (fits) return absl::OkStatus();
  ERR_clear_error();
  return Unauthenticated("its proof is by another key");
}

}  // namespace leat::rpc
