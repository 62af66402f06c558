// SPDX-License-Identifier: Apache-2.0
#include "rpc/access/worker_key.h"

#include "core/freed.h"
#include "core/status.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/rand.h"

namespace leat::rpc {
namespace {

constexpr size_t kProofBytes = 64;

using Context = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;

const uint8_t* BytesOf(const std::string& text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// All parts except the last have fixed sizes, so no two openings have the same
// statement.
std::string StatementOf(const v1::OpenRows& open) {
  return "leat rows proof 1\n" + open.nonce() + open.plan_hash() +
         open.consumer();
}

template <class Number>
void AppendLittleEndian(Number number, std::string* text) {
  for (size_t i = 0; i < sizeof(number); ++i)
    text->push_back(static_cast<char>(number >> 8 * i & 0xff));
}

std::string StatementOf(const v1::GetRecordRequest& asked, uint32_t crc32c) {
  std::string statement =
      "leat record proof 1\n" + asked.nonce() + asked.dataset();
  AppendLittleEndian<uint64_t>(asked.record(), &statement);
  AppendLittleEndian<uint32_t>(crc32c, &statement);
  return statement;
}

absl::Status CheckNonce(std::string_view what, const std::string& nonce) {
  if (nonce.size() == kNonceBytes) return absl::OkStatus();
  return InvalidArgument("{}: a nonce of {} bytes: want {}", what, nonce.size(),
                         kNonceBytes);
}

// OpenSSL keeps errors per thread; a later caller would find them.
absl::Status KeyFailure(std::string_view what) {
  ERR_clear_error();
  return Unavailable("OpenSSL cannot {}", what);
}

absl::Status CheckSignature(const std::string& public_key,
                            const std::string& statement,
                            const std::string& proof) {
  if (proof.empty()) return Unauthenticated("it sends no proof");
  if (proof.size() != kProofBytes)
    return Unauthenticated("its proof has {} bytes, and not {}", proof.size(),
                           kProofBytes);
  const std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>> key(
      EVP_PKEY_new_raw_public_key_ex(nullptr, "ED25519", nullptr,
                                     BytesOf(public_key), public_key.size()));
  const Context context(EVP_MD_CTX_new());
  const bool fits =
      key != nullptr && context != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr,
                           key.get()) == 1 &&
      EVP_DigestVerify(context.get(), BytesOf(proof), proof.size(),
                       BytesOf(statement), statement.size()) == 1;
  if (fits) return absl::OkStatus();
  ERR_clear_error();
  return Unauthenticated("its proof is by another key");
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
  RETURN_IF_ERROR(CheckNonce("open", open.nonce()));
  return Sign(StatementOf(open));
}

absl::StatusOr<std::string> WorkerKey::Prove(const v1::GetRecordRequest& asked,
                                             uint32_t crc32c) const {
  RETURN_IF_ERROR(CheckNonce("record", asked.nonce()));
  return Sign(StatementOf(asked, crc32c));
}

absl::StatusOr<std::string> WorkerKey::Sign(
    const std::string& statement) const {
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
  return CheckSignature(public_key, StatementOf(open), proof);
}

absl::Status CheckProof(const std::string& public_key,
                        const v1::GetRecordRequest& asked,
                        const v1::GetRecordResponse& answer) {
  return CheckSignature(public_key, StatementOf(asked, answer.crc32c()),
                        answer.proof());
}

}  // namespace leat::rpc
