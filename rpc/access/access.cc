// SPDX-License-Identifier: Apache-2.0
#include "rpc/access/access.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "grpc/grpc_security_constants.h"
#include "openssl/crypto.h"
#include "openssl/rand.h"

namespace leat::rpc {
namespace {

absl::Status NotKnown(std::string_view id) {
  return Unauthenticated(
      "access token {} is not known here: it was revoked, has expired, or "
      "another cluster made it; an operator makes one with \"leat access "
      "create\"",
      id);
}

absl::Status Ended(std::string_view id) {
  return Unauthenticated(
      "access token {} was revoked, or has expired; an operator makes one with "
      "\"leat access create\"",
      id);
}

std::string RolesOf(const MethodRule& rule) {
  std::string roles;
  for (const Role role : kRoles)
    if (MayCall(role, rule))
      roles += fmt::format("{}{}", roles.empty() ? "" : " or ", Name(role));
  return roles;
}

absl::Status ForRole(const absl::Status& unknown, std::string_view method,
                     const MethodRule& rule) {
  return Unauthenticated("{} ({} is for role {})", Message(unknown), method,
                         RolesOf(rule));
}

// Returns the result of `identify`, if the caller's role may call the method.
template <class Identify>
absl::StatusOr<Caller> Allow(std::string_view method,
                             const Identify& identify) {
  const MethodRule* const rule = FindMethod(method);
  if (rule == nullptr)
    return Internal("method {} has no line in the table of methods", method);
  absl::StatusOr<Caller> known = identify();
  if (absl::IsUnauthenticated(known.status()))
    return ForRole(known.status(), method, *rule);
  RETURN_IF_ERROR(known.status());
  Caller& caller = *known;
  if (MayCall(caller.role, *rule)) return known;
  if (caller.token.empty())
    return PermissionDenied(
        "{} is for role {}; {} has role {}: want an access token of that role, "
        "or a certificate that --role-from-san gives it",
        method, RolesOf(*rule), caller.identity, Name(caller.role));
  return PermissionDenied(
      "{} is for role {}; access token {} ({}) has role {}: an operator makes "
      "another one with \"leat access create\"",
      method, RolesOf(*rule), caller.token, caller.identity, Name(caller.role));
}

bool IsText(std::string_view token, const std::string& own) {
  return token.size() == own.size() &&
         CRYPTO_memcmp(token.data(), own.data(), own.size()) == 0;
}

// A token in the coordinator's form is looked up only in its list, even if it
// is the daemon's own token: a worker's token must not give access to the
// worker.
bool OwnTokenCounts(const Security& own) {
  return !own.token.empty() && TokenId(own.token).empty();
}

Caller WithoutToken(const grpc::ServerContextBase& context,
                    const Security& security) {
  if (!security.token.empty()) return {Role::kOperator, "own", ""};
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer != nullptr && peer->IsPeerAuthenticated())
    if (const auto names = peer->GetPeerIdentity(); !names.empty())
      return {Role::kOperator,
              fmt::format("certificate/{}",
                          std::string_view(names[0].data(), names[0].size())),
              ""};
  return {Role::kOperator, "anonymous", ""};
}

// The first rule that matches one of the certificate's names gives the role.
absl::StatusOr<Caller> FromCertificate(const grpc::ServerContextBase& context,
                                       const std::vector<SanRole>& rules) {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  std::string shown;  // a name without a role
  const bool known = peer != nullptr && peer->IsPeerAuthenticated();
  for (const SanRole& rule : rules) {
    if (!known) break;
    const bool uri = rule.pattern.find("://") != std::string::npos;
    for (const grpc::string_ref& each : peer->FindPropertyValues(
             uri ? GRPC_PEER_URI_PROPERTY_NAME : GRPC_PEER_DNS_PROPERTY_NAME)) {
      const std::string_view name(each.data(), each.size());
      if (Fits(rule, name))
        return Caller{rule.role, fmt::format("certificate/{}", name), ""};
      shown = name;
    }
  }
  return Unauthenticated(
      "no access token, and the certificate has no name that gives a role here "
      "(it has \"{}\"): want a token, or a name that fits --role-from-san",
      shown.substr(0, 256));
}

constexpr std::string_view kHealth = "/grpc.health.v1.Health/";

// The bounds of all health calls of unidentified callers together. Such calls
// may stay open, without a message, as long as their connections.
constexpr std::array<RoleBounds, kRoles.size()> kUnknownBounds = {
    RoleBounds{50, 200, 0}};

}  // namespace

Access::Access(Security security, const Clock* clock)
    : clock_(clock), bounds_(clock), unknown_(clock, kUnknownBounds) {
  MutexLock lock(&mu_);
  own_ = std::move(security);
}

absl::StatusOr<Caller> Access::Admit(
    std::string_view method, const grpc::ServerContextBase& context) const {
  return Allow(method, [&]() -> absl::StatusOr<Caller> {
    return Known(context, /*ours=*/true);
  });
}

absl::StatusOr<Caller> Access::AdmitForeign(
    std::string_view method, const grpc::ServerContextBase& context) const {
  return Allow(method, [&]() -> absl::StatusOr<Caller> {
    return Known(context, /*ours=*/false);
  });
}

absl::StatusOr<Caller> Access::Known(const grpc::ServerContextBase& context,
                                     bool ours) const {
  ASSIGN_OR_RETURN(Caller caller, Identify(context, ours));
  const std::string peer = context.peer();
  if (on_known_) on_known_(peer);
  caller.address = HostOf(peer);
  RETURN_IF_ERROR(bounds_.Call(caller.role, caller.identity, caller.address));
  return caller;
}

absl::StatusOr<Caller> Access::AdmitToken(std::string_view method,
                                          std::string_view token) const {
  return Allow(method, [&] { return IdentifyToken(token); });
}

absl::Status Access::AdmitHeaders(std::string_view path,
                                  std::string_view token) const {
  const bool health = path.starts_with(kHealth);
  // "AdminService/GetStatus" from "/leat.v1.AdminService/GetStatus".
  const std::string_view method = path.substr(path.rfind('.') + 1);
  const MethodRule* const rule = FindMethod(method);
  // gRPC would reject it only after a message has arrived.
  if (!health && rule == nullptr)
    return Unimplemented("there is no such method");
  absl::Status known = IdentifyToken(token).status();
  if (known.ok()) return known;
  {
    MutexLock lock(&mu_);
    if (token.empty() && !own_.san_roles.empty() && !health)
      return absl::OkStatus();
    // Gives the same message as Identify.
    if (OwnTokenCounts(own_) && TokenId(token).empty())
      known = CheckToken(own_, token);
  }
  if (health) return unknown_.Call(Role::kViewer, "anonymous", "anywhere");
  return absl::IsUnauthenticated(known) ? ForRole(known, method, *rule) : known;
}

absl::StatusOr<Caller> Access::Identify(const grpc::ServerContextBase& context,
                                        bool ours) const {
  const std::string_view text = TokenOf(context);
  const absl::Status version = ours ? CheckVersion(context) : absl::OkStatus();
  MutexLock lock(&mu_);
  if (text.empty() && !own_.san_roles.empty()) {
    RETURN_IF_ERROR(version);
    return FromCertificate(context, own_.san_roles);
  }
  const bool open = own_.token.empty() && own_.san_roles.empty() &&
                    (tokens_ == nullptr || tokens_->tokens.empty());
  if (open || OwnTokenCounts(own_)) {
    const absl::Status known = CheckToken(own_, context);
    if (known.ok() || IsTokenBefore(text)) {
      RETURN_IF_ERROR(version);
      return WithoutToken(context, own_);
    }
    if (TokenId(text).empty()) return known;
  }
  RETURN_IF_ERROR(version);
  return FromList(text);
}

absl::StatusOr<Caller> Access::IdentifyToken(std::string_view token) const {
  MutexLock lock(&mu_);
  // If certificates give roles, a caller without a token is not identified
  // here.
  const bool nobody_asked = own_.token.empty() && own_.san_roles.empty() &&
                            (tokens_ == nullptr || tokens_->tokens.empty());
  if (nobody_asked) return Caller{Role::kOperator, "anonymous", ""};
  if (OwnTokenCounts(own_) &&
      (IsText(token, own_.token) || IsTokenBefore(token)))
    return Caller{Role::kOperator, "own", ""};
  return FromList(token);
}

bool Access::IsTokenBefore(std::string_view text) const {
  return !before_.empty() && clock_->Now() < before_until_ &&
         IsText(text, before_);
}

absl::StatusOr<Caller> Access::FromList(std::string_view text) const {
  const std::string_view id = TokenId(text);
  if (id.empty())
    return Unauthenticated(
        "{} access token: this service takes those of \"leat access create\" "
        "(--access-token-file, LEAT_ACCESS_TOKEN)",
        text.empty() ? "no" : "wrong");
  if (tokens_ == nullptr)
    return Unavailable(
        "the coordinator has not told this process its access tokens yet: ask "
        "again");
  const AccessToken* const token = tokens_->Find(id);
  const Digest hash = HashOf(text);
  if (token == nullptr ||
      CRYPTO_memcmp(hash.data(), token->sha256.data(), hash.size()) != 0)
    return NotKnown(id);
  if (token->ExpiredAt(clock_->WallNow())) return Ended(id);
  return Caller{token->role,
                fmt::format("{}/{}", Name(token->role), token->name),
                token->id};
}

void Access::WatchToken(const Caller& caller, std::function<bool()> gone,
                        std::function<void(absl::Status)> end) {
  if (absl::Status bound =
          bounds_.Open(caller.role, caller.identity, caller.address, gone);
      !bound.ok())
    return end(std::move(bound));
  if (caller.token.empty()) return;
  {
    MutexLock lock(&mu_);
    if (tokens_ != nullptr && tokens_->Find(caller.token) != nullptr) {
      // Rarely, so that ended streams are few compared with open ones.
      if (watched_.size() >= sweep_at_) {
        std::erase_if(watched_, [](const Watched& one) { return one.gone(); });
        sweep_at_ = std::max<size_t>(64, 2 * watched_.size());
      }
      watched_.push_back({caller.token, std::move(gone), std::move(end)});
      return;
    }
  }
  end(Ended(caller.token));  // revoked since it was admitted
}

void Access::Replace(std::shared_ptr<const AccessTokens> tokens) {
  std::vector<Watched> ended;
  {
    MutexLock lock(&mu_);
    if (tokens_ != nullptr && tokens_->instance == tokens->instance &&
        tokens_->version > tokens->version)
      return;
    tokens_.swap(tokens);
    std::erase_if(watched_, [&](Watched& one) {
      mu_.AssertHeld();
      if (tokens_->Find(one.token) != nullptr) return false;
      ended.push_back(std::move(one));
      return true;
    });
  }
  for (const Watched& one : ended) one.end(Ended(one.token));
}

void Access::ReplaceOwn(std::string token) {
  MutexLock lock(&mu_);
  if (token == own_.token) return;
  std::swap(own_.token, token);
  before_ = TokenId(token).empty() ? std::move(token) : "";
  before_until_ = clock_->Now() + kReplacedTokenAccepted;
}

absl::StatusOr<std::string> RandomTokenText() {
  std::array<uint8_t, kTokenRandomBytes> random;
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1)
    return Unavailable("OpenSSL has no random bytes for an access token");
  std::string text = TokenText(random);
  OPENSSL_cleanse(random.data(), random.size());
  return text;
}

}  // namespace leat::rpc
