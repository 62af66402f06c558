// SPDX-License-Identifier: Apache-2.0
#include "core/hash.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/status.h"

namespace leat {

// Small pieces are collected: a call of OpenSSL costs as much as hashing a
// hundred bytes.
struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::array<std::byte, 1024> pending;
  size_t pending_bytes = 0;

  State() {
    // This fails only without memory, or if the library has no SHA-256: no
    // caller could handle that.
    if (context == nullptr ||
        EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1)
      std::abort();
  }
  ~State() { EVP_MD_CTX_free(context); }

  void Hash(std::span<const std::byte> bytes) const {
    if (EVP_DigestUpdate(context, bytes.data(), bytes.size()) != 1)
      std::abort();
  }
  void Flush() {
    Hash(std::span(pending).first(std::exchange(pending_bytes, 0)));
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;

Sha256& Sha256::Update(std::span<const std::byte> bytes) {
  State& state = *state_;
  if (bytes.size() > state.pending.size() - state.pending_bytes) state.Flush();
  if (bytes.size() > state.pending.size()) {
    state.Hash(bytes);
  } else if (!bytes.empty()) {
    std::memcpy(state.pending.data() + state.pending_bytes, bytes.data(),
                bytes.size());
    state.pending_bytes += bytes.size();
  }
  return *this;
}

Sha256& Sha256::Update(std::string_view bytes) {
  return Update(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

Sha256& Sha256::UpdateField(std::string_view bytes) {
  return UpdateU64(bytes.size()).Update(bytes);
}

Sha256& Sha256::UpdateU64(uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return Update(bytes);
}

Digest Sha256::Finish() {
  state_->Flush();
  Digest digest;
  if (EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) != 1)
    std::abort();
  return digest;
}

Digest HashOf(std::string_view bytes) {
  return Sha256().Update(bytes).Finish();
}

std::string_view AsText(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string BytesOf(const Digest& digest) {
  return std::string(AsText(digest));
}

absl::StatusOr<Digest> DigestOf(std::string_view what, std::string_view bytes,
                                absl::StatusCode code) {
  Digest digest;
  if (bytes.size() != digest.size())
    return MakeStatus(code, "{}: {} bytes, want {}", what, bytes.size(),
                      digest.size());
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

std::string ToHex(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (uint8_t byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string ShortHex(const Digest& digest) {
  return ToHex(std::span(digest).first(6));
}

}  // namespace leat
