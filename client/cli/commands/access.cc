// SPDX-License-Identifier: Apache-2.0
//
// leat access: makes, lists and revokes access tokens.
#include "client/cli/base/exit_code.h"
#include "client/cli/base/fields.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/commands.h"
#include "core/cluster/roles.h"
#include "core/status.h"

namespace leat::cli {
namespace {

absl::StatusOr<int> CreateToken(Session& session) {
  const Options& options = session.options();
  if (options.role.empty())
    return InvalidArgument(
        "create: --role is missing: want viewer, trainer, worker or operator");
  absl::Duration lifetime;  // zero: until it is revoked
  if (session.line().Given("--expires")) {
    ASSIGN_OR_RETURN(lifetime, ParseLifetimeFlag("--expires", options.expires));
  }
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  ASSIGN_OR_RETURN(const std::string text,
                   connection->admin().CreateAccessToken(
                       options.role, options.token_name, lifetime));
  ASSIGN_OR_RETURN(const Json answer, ParseObject(text, "access token"));
  *session.environment().out << Printable(Text(answer, "token")) << std::endl;
  session.Say(
      fmt::format("access token {} \"{}\" of role {}: it is not shown again",
                  Text(answer, "info.id"), Text(answer, "info.name"),
                  Text(answer, "info.role")));
  return kGood;
}

Table TokensTable(const Json& tokens, absl::Time now) {
  Table table{
      {{"ID"}, {"NAME"}, {"ROLE"}, {"CREATED", 1}, {"EXPIRES"}, {"STATE"}}, {}};
  for (const Json& token : tokens) {
    const std::string expires = Text(token, "expires_at");
    absl::Time at;
    const bool known =
        absl::ParseTime(absl::RFC3339_full, expires, &at, nullptr);
    const bool expired = known && at <= now;
    table.rows.push_back(
        {Text(token, "id"), Text(token, "name"), Text(token, "role"),
         TimeText(Text(token, "created_at")),
         expires.empty() ? "never" : TimeText(expires),
         expired ? Cell("expired", Tone::kWarn) : Cell("valid", Tone::kGood)});
  }
  return table;
}

absl::StatusOr<int> ListToken(Session& session) {
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    ASSIGN_OR_RETURN(Connection * connection, session.Connect());
    ASSIGN_OR_RETURN(const std::string text, connection->admin().Get("tokens"));
    View view;
    ASSIGN_OR_RETURN(view.data, ParseObject(text, "access tokens"));
    const Json& tokens = Items(view.data, "tokens");
    for (const Json& token : tokens) view.names.push_back(Text(token, "id"));
    if (tokens.empty())
      view.note = "no access tokens; \"leat access create\" makes one";
    Section section;
    section.table = TokensTable(tokens, session.environment().now());
    view.sections.push_back(std::move(section));
    return Session::Result{std::move(view), kGood};
  });
}

absl::StatusOr<int> RevokeToken(Session& session) {
  ASSIGN_OR_RETURN(const std::vector<std::string> tokens, session.Names());
  if (tokens.empty())
    return InvalidArgument("revoke: which one? want an id or a name");
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  return session.ForEach(tokens, [&](const std::string& name) -> absl::Status {
    RETURN_IF_ERROR(connection->admin().Do("revoke-token", name));
    session.Say(fmt::format("access token \"{}\" is revoked", name));
    return absl::OkStatus();
  });
}

// The table is Markdown, as in docs/run/access.md.
absl::StatusOr<int> ShowRoles(Session& session) {
  if (session.format() == Format::kTable) {
    *session.environment().out << MethodTable() << std::flush;
    return kGood;
  }
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    View view;
    view.data = {{"methods", Json::array()}};
    Section section;
    section.table.columns = {{"METHOD"}, {"ROLES"}};
    for (const MethodRule& rule : MethodRules()) {
      Json roles = Json::array();
      std::string text;
      for (const Role role : kRoles) {
        if (!MayCall(role, rule)) continue;
        roles.push_back(Name(role));
        text += fmt::format("{}{}", text.empty() ? "" : ", ", Name(role));
      }
      view.names.emplace_back(rule.method);
      view.data["methods"].push_back(
          {{"method", rule.method}, {"roles", std::move(roles)}});
      section.table.rows.push_back({std::string(rule.method), text});
    }
    view.sections.push_back(std::move(section));
    return Session::Result{std::move(view), kGood};
  });
}

}  // namespace

absl::StatusOr<int> RunAccess(Session& session) {
  const std::string& action = session.options().kind;
  if (const auto& words = session.options().names;
      action != "revoke" && !words.empty())
    return InvalidArgument("{}: unexpected \"{}\"", action, words[0]);
  if (action == "create") return CreateToken(session);
  if (action == "list") return ListToken(session);
  if (action == "revoke") return RevokeToken(session);
  return ShowRoles(session);
}

}  // namespace leat::cli
