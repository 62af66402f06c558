// SPDX-License-Identifier: Apache-2.0
//
// The part of Session that finds the service: the address, the credentials, and
// a private service where nothing is named.
#include <algorithm>
#include <charconv>
#include <utility>

#include "client/cli/base/file.h"
#include "client/cli/session/session.h"
#include "core/cluster/roles.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr char kDefaultAddress[] = "127.0.0.1:7411";
constexpr absl::Duration kDefaultTime = absl::Seconds(1);
constexpr size_t kMaxSecretBytes = 1 << 20;

absl::StatusOr<std::string> ReadSmallFile(std::string_view flag,
                                          const std::string& path) {
  absl::StatusOr<std::string> read = ReadFile(path, kMaxSecretBytes);
  if (!read.ok())
    return FailedPrecondition("{} {}", flag, Message(read.status()));
  std::string text = *std::move(read);
  if (text.size() > kMaxSecretBytes)
    return FailedPrecondition("{} {}: more than {} bytes", flag, path,
                              kMaxSecretBytes);
  if (text.empty()) return FailedPrecondition("{} {}: it is empty", flag, path);
  return text;
}

}  // namespace

absl::StatusOr<std::string> Session::AccessToken(
    const CredentialSources& sources) const {
  std::string name = "LEAT_ACCESS_TOKEN";
  std::string text = sources.token;
  const bool given = line_.Given("--access-token-file");
  if (given || !sources.token_file.empty()) {
    const char* const flag =
        given || context_ ? "--access-token-file" : "LEAT_ACCESS_TOKEN_FILE";
    ASSIGN_OR_RETURN(text, ReadSmallFile(flag, sources.token_file));
    name = fmt::format("{} {}", flag, sources.token_file);
  } else if (text.empty()) {
    return text;
  }
  return TokenIn(name, text, 1);
}

std::string Session::address() const {
  const std::string address =
      ValueOf("--coordinator", line_.options().coordinator, "LEAT_COORDINATOR",
              &Context::coordinator);
  return address.empty() ? kDefaultAddress : address;
}

absl::StatusOr<ConnectOptions> Session::MakeOptions() const {
  const Options& options = line_.options();
  ConnectOptions connect;
  const bool context_timeout =
      context_ && !context_->timeout.empty() && !line_.Given("--timeout");
  ASSIGN_OR_RETURN(
      connect.timeout,
      ParseTimeFlag("--timeout",
                    context_timeout ? context_->timeout : options.timeout));
  if (line_.Given("--private")) {
    ASSIGN_OR_RETURN(connect.private_pid, PrivatePid());
    return connect;
  }
  connect.address = address();
  const CredentialSources sources = credentials();
  ASSIGN_OR_RETURN(connect.access_token, AccessToken(sources));
  connect.access_token_file = sources.token_file;
  const auto read = [](std::string_view flag, const std::string& path,
                       std::string& pem) -> absl::Status {
    if (path.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(pem, ReadSmallFile(flag, path));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(read("--tls-ca", sources.ca, connect.ca_pem));
  RETURN_IF_ERROR(read("--tls-cert", sources.cert, connect.cert_pem));
  RETURN_IF_ERROR(read("--tls-key", sources.key, connect.key_pem));
  if (connect.cert_pem.empty() != connect.key_pem.empty()) {
    return InvalidArgument("--tls-cert and --tls-key go together");
  }
  return connect;
}

absl::StatusOr<int64_t> Session::PrivatePid() const {
  for (const char* flag : {"--coordinator", "--access-token-file", "--tls-ca",
                           "--tls-cert", "--tls-key"})
    if (line_.Given(flag))
      return InvalidArgument(
          "--private and {}: want one; a private service is found, and has its "
          "own access token",
          flag);
  const std::string& text = line_.options().private_pid;
  if (text == "true") return 0;
  const char* const end = text.data() + text.size();
  int64_t pid = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, pid);
  if (error != std::errc() || stop != end || pid < 1)
    return InvalidArgument("--private={}: want the number of a process", text);
  return pid;
}

// Does not wait for a coordinator at the default address, if none runs there.
absl::Status Session::TryDefault(ConnectOptions connect) {
  connect.timeout = std::min(connect.timeout, kDefaultTime);
  const absl::Status status = environment_.connect(connect).status();
  if (!absl::IsUnavailable(status)) return absl::OkStatus();
  ConnectOptions own;
  own.private_pid = 0;
  own.timeout = connect.timeout;
  absl::StatusOr<std::unique_ptr<Connection>> found = environment_.connect(own);
  if (found.ok() && or_private_) {
    connection_ = *std::move(found);
    return absl::OkStatus();
  }
  // If there are several, the text lists them.
  if (!found.ok() && !absl::IsInvalidArgument(found.status())) return status;
  return Unavailable("{}. A private service of yours runs: see it by --private",
                     Message(status));
}

absl::StatusOr<Connection*> Session::Connect(absl::Duration most) {
  if (connection_ == nullptr) {
    ASSIGN_OR_RETURN(ConnectOptions connect, MakeOptions());
    called_ = true;
    connect.timeout = std::min(connect.timeout, most);
    if (!NamesService()) RETURN_IF_ERROR(TryDefault(connect));
    if (connection_ == nullptr) {
      ASSIGN_OR_RETURN(connection_, environment_.connect(connect));
    }
  }
  return connection_.get();
}

absl::StatusOr<Connection*> Session::ConnectOrPrivate() {
  or_private_ = true;
  return Connect();
}

bool Session::NamesService() const {
  return line_.Given("--private") ||
         !ValueOf("--coordinator", line_.options().coordinator,
                  "LEAT_COORDINATOR", &Context::coordinator)
              .empty();
}

}  // namespace leat::cli
