// SPDX-License-Identifier: Apache-2.0
//
// Who may call what: roles, the table of methods, and access tokens.
//
// An access token is made by the coordinator: "leat_ID_SECRET", with an ID of 8
// hexadecimal digits, which is no secret and names the token to people, and a
// secret of 256 random bits. What is kept and told to workers is a hash of the
// text. The token that a daemon is started with is any other text.
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

// Stored and sent by name. An operator may call everything.
enum class Role : uint8_t { kViewer, kTrainer, kWorker, kOperator };

inline constexpr std::array kRoles = {Role::kViewer, Role::kTrainer,
                                      Role::kWorker, Role::kOperator};

std::string_view Name(Role role);
// kInvalidArgument lists the roles.
absl::StatusOr<Role> RoleFrom(std::string_view name);

// Which roles may call a method, apart from operators.
struct MethodRule {
  std::string_view method;  // "AdminService/GetStatus"
  bool viewer, trainer, worker;
};

// One line a method of every service of both daemons. Health and reflection
// have none: anybody may ask them.
std::span<const MethodRule> MethodRules();
// nullptr: none. Such a method is refused to everybody.
const MethodRule* FindMethod(std::string_view method);
bool MayCall(Role role, const MethodRule& rule);
// All rules as a table in Markdown, for docs/guide/security.md.
std::string MethodTable();

inline constexpr size_t kMaxAccessTokens = 1000;  // of one coordinator
inline constexpr size_t kMaxTokenName = 64;
inline constexpr size_t kMaxTokenText = 4096;
// A token that a daemon is started with is longer: short ones are guessed.
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

// All that are valid, as the coordinator tells them. A list of the same
// instance with a larger version replaces the others.
struct AccessTokens {
  uint64_t instance = 0, version = 0;
  std::vector<AccessToken> tokens;  // sorted by id

  // nullptr: none.
  const AccessToken* Find(std::string_view id) const;
};

// 4 bytes of an ID, and 32 of a secret.
inline constexpr size_t kTokenRandomBytes = 36;
// REQUIRES: kTokenRandomBytes random bytes.
std::string TokenText(std::span<const uint8_t> random);
// The ID in a text of the above form; empty: it is of another form.
std::string_view TokenId(std::string_view text);

// Returns the token in `text`, which a person wrote into a file, a variable or
// a form: spaces and line ends around it are not part of it. kInvalidArgument:
// the rest is not `least` to kMaxTokenText printable characters without spaces.
// The error begins with `what`, and does not say the text.
absl::StatusOr<std::string> TokenIn(std::string_view what,
                                    std::string_view text, size_t least);
// Of a token's name. kInvalidArgument.
absl::Status CheckTokenName(std::string_view name);

}  // namespace leat
