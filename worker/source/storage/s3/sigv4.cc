// SPDX-License-Identifier: Apache-2.0
//
//   canonical request = method, path, query, headers, names, payload; by lines
//   to sign           = "AWS4-HMAC-SHA256", date, scope, sha256(canonical)
//   key               = HMAC(HMAC(HMAC(HMAC("AWS4" secret, day), region),
//                       service), "aws4_request")
#include "worker/source/storage/s3/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <ctime>

#include "core/hash.h"
#include "fmt/format.h"
#include "worker/source/storage/base/uri.h"

namespace leat::worker {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kTerminator = "aws4_request";
Digest Hmac(const void* key, size_t key_bytes, std::string_view text) {
  Digest out{};
  HMAC(EVP_sha256(), key, static_cast<int>(key_bytes),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       out.data(), nullptr);
  return out;
}

Digest Hmac(const Digest& key, std::string_view text) {
  return Hmac(key.data(), key.size(), text);
}

// Removes spaces at the ends; runs of spaces inside become one.
std::string Collapsed(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

std::string CanonicalQuery(
    std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) {
    name = PercentEncode(name);
    value = PercentEncode(value);
  }
  std::sort(query.begin(), query.end());
  std::string out;
  for (const auto& [name, value] : query) {
    out += fmt::format("{}{}={}", out.empty() ? "" : "&", name, value);
  }
  return out;
}

std::string SigningTime(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                     utc.tm_sec);
}

std::string Authorization(const SignedRequest& request,
                          const SigningScope& scope, std::string_view amz_date,
                          std::string_view key_id, std::string_view secret) {
  auto headers = request.headers;
  std::stable_sort(
      headers.begin(), headers.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string lines, names;
  for (size_t i = 0; i < headers.size(); ++i) {
    const auto& [name, value] = headers[i];
    if (i > 0 && headers[i - 1].first == name) {
      lines.pop_back();
      lines += fmt::format(",{}\n", Collapsed(value));
      continue;
    }
    lines += fmt::format("{}:{}\n", name, Collapsed(value));
    names += fmt::format("{}{}", names.empty() ? "" : ";", name);
  }
  const std::string canonical = fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
      CanonicalQuery(request.query), lines, names, request.payload_sha256);
  const std::string_view day = amz_date.substr(0, 8);
  const std::string scope_text =
      fmt::format("{}/{}/{}/{}", day, scope.region, scope.service, kTerminator);
  const std::string to_sign =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, amz_date, scope_text,
                  ToHex(HashOf(canonical)));
  const std::string first = fmt::format("AWS4{}", secret);
  Digest key = Hmac(first.data(), first.size(), day);
  key = Hmac(key, scope.region);
  key = Hmac(key, scope.service);
  key = Hmac(key, kTerminator);
  return fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}",
                     kAlgorithm, key_id, scope_text, names,
                     ToHex(Hmac(key, to_sign)));
}

}  // namespace leat::worker
