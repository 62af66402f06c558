// SPDX-License-Identifier: Apache-2.0
//
// Roles, the table of methods that each role may call, and access tokens.
//
// The coordinator creates an access token: "leat_ID_SECRET", with an ID of 8
// hexadecimal digits, which is not secret and identifies the token to people,
// and a secret of 256 random bits. Only a hash of the text is stored and sent
// to workers. The token that a daemon is started with may be any other text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"

namespace leat {

// Roles are stored and sent by name. An operator may call everything.
enum class Role : uint8_t { kViewer, kTrainer, kWorker, kOperator };

inline constexpr std::array kRoles = {Role::kViewer, Role::kTrainer,
                                      Role::kWorker, Role::kOperator};

std::string_view Name(Role role);
// kInvalidArgument lists the roles.
absl::StatusOr<Role> RoleFrom(std::string_view name);

// The roles, besides operator, that may call a method.
struct MethodRule {
  std::string_view method;  // "AdminService/GetStatus"
  bool viewer, trainer, worker;
};

// Returns one rule for each method of every service of both daemons. Health and
// reflection have none: any caller may use them.
std::span<const MethodRule> MethodRules();
// Returns nullptr if there is no rule. Such a method is refused to every
// caller.
const MethodRule* FindMethod(std::string_view method);
bool MayCall(Role role, const MethodRule& rule);
// Returns all rules as a table in Markdown, for docs/run/access.md.
std::string MethodTable();

inline constexpr size_t kMaxAccessTokens = 1000;  // of one coordinator
inline constexpr size_t kMaxTokenName = 64;
inline constexpr size_t kMaxTokenText = 4096;
// The minimum length of a token that a daemon is started with: shorter ones can
// be guessed.
inline constexpr size_t kMinOwnToken = 16;

struct AccessToken {
  std::string id;
  std::string name;  // for people; several may have the same
  Role role = Role::kViewer;
  Digest sha256{};  // of its text
  WallTime created_at{};
  std::optional<WallTime> expires_at;  // nullopt: never

  bool ExpiredAt(WallTime now) const {
    return expires_at.has_value() && now >= *expires_at;
  }
};

// All valid access tokens, as the coordinator sends them. A list of the same
// instance with a larger version replaces the others.
struct AccessTokens {
  uint64_t instance = 0, version = 0;
  std::vector<AccessToken> tokens;  // sorted by id

  // Returns nullptr if there is none.
  const AccessToken* Find(std::string_view id) const;
};

// The size of the random part: 4 bytes of an ID, and 32 of a secret.
inline constexpr size_t kTokenRandomBytes = 36;
// REQUIRES: kTokenRandomBytes random bytes.
std::string TokenText(std::span<const uint8_t> random);
// Returns the ID in a text of the above form; empty: the text has another form.
std::string_view TokenId(std::string_view text);

// Returns the token in `text`, which a person wrote into a file, a variable or
// a form: surrounding spaces and line ends are not part of it.
// kInvalidArgument: the rest is not `least` to kMaxTokenText printable
// characters without spaces. The error begins with `what`, and does not contain
// the text.
absl::StatusOr<std::string> TokenIn(std::string_view what,
                                    std::string_view text, size_t least);
// Checks a token's name. kInvalidArgument.
absl::Status CheckTokenName(std::string_view name);

}  // namespace leat
