// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/credentials.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "core/cluster/roles.h"

namespace leat::client {
namespace {

// Returns nothing for a pipe, which would be waited for. TokenIn refuses what is
// longer than a token.
std::string TextOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::string text(2 * kMaxTokenText, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

}  // namespace

Credentials::Credentials(rpc::Security security, std::string token_file)
    : security_(std::move(security)),
      token_file_(std::move(token_file)),
      token_(security_.token) {}

rpc::Security Credentials::Now() const {
  if (token_file_.empty()) return security_;
  absl::StatusOr<std::string> token =
      TokenIn(token_file_, TextOf(token_file_), 1);
  rpc::Security now = security_;
  MutexLock lock(&mu_);
  if (token.ok()) token_ = *std::move(token);
  now.token = token_;
  return now;
}

}  // namespace leat::client
