// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/roles.h"

#include <algorithm>

#include "core/counted.h"
#include "core/status.h"

namespace leat {
namespace {

constexpr std::array<std::string_view, kRoles.size()> kRoleNames = {
    "viewer", "trainer", "worker", "operator"};

constexpr std::string_view kTokenPrefix = "leat_";
constexpr size_t kIdDigits = 8, kSecretDigits = 64;

constexpr bool kYes = true, kNo = false;

// A trainer may read what a viewer may read. A worker may do its work, and read
// nothing.
constexpr MethodRule kMethods[] = {
    //                                      viewer trainer worker
    {"AdminService/CreateAccessToken", kNo, kNo, kNo},
    {"AdminService/DeleteDataset", kNo, kNo, kNo},
    {"AdminService/DeleteJob", kNo, kNo, kNo},
    {"AdminService/DrainWorker", kNo, kNo, kNo},
    {"AdminService/GetBottleneck", kYes, kYes, kNo},
    {"AdminService/GetStatus", kYes, kYes, kNo},
    {"AdminService/ListAccessTokens", kNo, kNo, kNo},
    {"AdminService/ListConsumers", kYes, kYes, kNo},
    {"AdminService/ListDatasets", kYes, kYes, kNo},
    {"AdminService/ListJobs", kYes, kYes, kNo},
    {"AdminService/ListShards", kYes, kYes, kNo},
    {"AdminService/ListWorkers", kYes, kYes, kNo},
    {"AdminService/MuteFinding", kNo, kNo, kNo},
    {"AdminService/RefreshDataset", kNo, kNo, kNo},
    {"AdminService/RevokeAccessToken", kNo, kNo, kNo},
    {"AdminService/SetLogLevel", kNo, kNo, kNo},
    {"AdminService/UndrainWorker", kNo, kNo, kNo},
    {"AdminService/UnmuteFinding", kNo, kNo, kNo},
    {"AdminService/WatchEvents", kYes, kYes, kNo},
    {"CoordinatorService/ConsumerSession", kNo, kYes, kNo},
    {"CoordinatorService/CreateJob", kNo, kYes, kNo},
    {"CoordinatorService/FindIndexBlocks", kNo, kNo, kYes},
    {"CoordinatorService/FindListBlocks", kNo, kYes, kNo},
    {"CoordinatorService/GetIndexBlock", kNo, kNo, kYes},
    {"CoordinatorService/GetIndexBlocks", kNo, kNo, kYes},
    {"CoordinatorService/GetJob", kYes, kYes, kYes},
    {"CoordinatorService/Hello", kYes, kYes, kYes},
    {"CoordinatorService/PutIndexBlock", kNo, kNo, kYes},
    {"CoordinatorService/PutListBlock", kNo, kYes, kNo},
    {"CoordinatorService/UploadIndex", kNo, kNo, kYes},
    {"CoordinatorService/WorkerSession", kNo, kNo, kYes},
    {"ExplainService/ExplainRows", kNo, kYes, kNo},
    {"ExplainService/LocateSamples", kNo, kYes, kNo},
    {"ExternalScaler/GetMetricSpec", kYes, kYes, kNo},
    {"ExternalScaler/GetMetrics", kYes, kYes, kNo},
    {"ExternalScaler/IsActive", kYes, kYes, kNo},
    {"ExternalScaler/StreamIsActive", kYes, kYes, kNo},
    {"PoolService/ListPools", kYes, kYes, kNo},
    {"PoolService/SetPool", kNo, kNo, kNo},
    {"PoolService/WatchPool", kYes, kYes, kNo},
    {"RecordsService/GetRecord", kNo, kNo, kYes},
    {"TraceService/CollectSpans", kYes, kYes, kNo},
    {"WorkerService/Rows", kNo, kYes, kNo},
};

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 32 &&
           static_cast<unsigned char>(c) < 127;
  });
}

bool AreHexDigits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

}  // namespace

std::string_view Name(Role role) {
  return kRoleNames.at(static_cast<size_t>(role));
}

absl::StatusOr<Role> RoleFrom(std::string_view name) {
  for (const Role role : kRoles)
    if (Name(role) == name) return role;
  return InvalidArgument(
      "role \"{}\": want viewer, trainer, worker or operator",
      IsPrintable(name) ? name.substr(0, 32) : "(unprintable)");
}

std::span<const MethodRule> MethodRules() { return kMethods; }

const MethodRule* FindMethod(std::string_view method) {
  const auto* const found =
      std::lower_bound(std::begin(kMethods), std::end(kMethods), method,
                       [](const MethodRule& rule, std::string_view wanted) {
                         return rule.method < wanted;
                       });
  return found == std::end(kMethods) || found->method != method ? nullptr
                                                                : found;
}

bool MayCall(Role role, const MethodRule& rule) {
  switch (role) {
    case Role::kViewer:
      return rule.viewer;
    case Role::kTrainer:
      return rule.trainer;
    case Role::kWorker:
      return rule.worker;
    case Role::kOperator:
      return true;
  }
  return false;
}

std::string MethodTable() {
  std::string table = "| method |";
  for (const Role role : kRoles) table += fmt::format(" {} |", Name(role));
  table += "\n|---|---|---|---|---|\n";
  for (const MethodRule& rule : kMethods) {
    table += fmt::format("| `{}` |", rule.method);
    for (const Role role : kRoles)
      table += MayCall(role, rule) ? " yes |" : "  |";
    table += '\n';
  }
  return table;
}

const AccessToken* AccessTokens::Find(std::string_view id) const {
  const auto found =
      std::lower_bound(tokens.begin(), tokens.end(), id,
                       [](const AccessToken& token, std::string_view wanted) {
                         return token.id < wanted;
                       });
  return found == tokens.end() || found->id != id ? nullptr : &*found;
}

std::string TokenText(std::span<const uint8_t> random) {
  return fmt::format("{}{}_{}", kTokenPrefix,
                     ToHex(random.first(kIdDigits / 2)),
                     ToHex(random.subspan(kIdDigits / 2, kSecretDigits / 2)));
}

std::string_view TokenId(std::string_view text) {
  if (text.size() != kTokenPrefix.size() + kIdDigits + 1 + kSecretDigits ||
      !text.starts_with(kTokenPrefix))
    return {};
  text.remove_prefix(kTokenPrefix.size());
  const std::string_view id = text.substr(0, kIdDigits);
  const std::string_view secret = text.substr(kIdDigits + 1);
  if (text[kIdDigits] != '_' || !AreHexDigits(id) || !AreHexDigits(secret))
    return {};
  return id;
}

absl::StatusOr<std::string> TokenIn(std::string_view what,
                                    std::string_view text, size_t least) {
  constexpr std::string_view kAround = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kAround), text.size()));
  text = text.substr(0, text.find_last_not_of(kAround) + 1);
  if (text.empty())
    return InvalidArgument(
        "{}: it has no access token in it: want the line that \"leat access "
        "create\" printed",
        what);
  if (text.size() >= least && text.size() <= kMaxTokenText && IsPrintable(text))
    return std::string(text);
  return InvalidArgument(
      "{}: {}{}: want {} to {} printable ones without spaces", what,
      Counted(text.size(), "character"),
      IsPrintable(text) ? ""
                        : ", some of them spaces, line ends or unprintable",
      least, kMaxTokenText);
}

absl::Status CheckTokenName(std::string_view name) {
  if (!name.empty() && name.size() <= kMaxTokenName && IsPrintable(name))
    return absl::OkStatus();
  return InvalidArgument(
      "an access token's name \"{}\": want 1 to {} printable characters "
      "without spaces",
      IsPrintable(name) ? name.substr(0, kMaxTokenName) : "(unprintable)",
      kMaxTokenName);
}

}  // namespace leat
