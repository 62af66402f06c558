// SPDX-License-Identifier: Apache-2.0
//
// leat context lists, shows, chooses, sets and deletes contexts.
#include <filesystem>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/suggestions.h"
#include "client/cli/commands/commands.h"
#include "client/cli/session/contexts.h"
#include "core/status.h"

namespace leat::cli {
namespace {

// Known is the file of the contexts and its content.
struct Known {
  std::string path;
  Contexts contexts;
};

absl::StatusOr<Known> Load(const Session& session) {
  Known known;
  known.path = ContextsPath(session.environment().variable);
  if (known.path.empty())
    return FailedPrecondition(
        "no place for contexts: want HOME, XDG_CONFIG_HOME or LEAT_CONFIG");
  ASSIGN_OR_RETURN(known.contexts, ReadContexts(known.path));
  return known;
}

// Another process holds it only while it reads and writes a small file.
absl::StatusOr<std::shared_ptr<ContextsLock>> Lock(const Session& session) {
  constexpr absl::Duration kStep = absl::Milliseconds(10);
  constexpr absl::Duration kPatience = absl::Seconds(10);
  const std::string path = ContextsPath(session.environment().variable);
  for (absl::Duration waited; !path.empty() && waited < kPatience;
       waited += kStep) {
    ASSIGN_OR_RETURN(std::shared_ptr<ContextsLock> lock, TryLockContexts(path));
    if (lock != nullptr) return lock;
    session.environment().pause(kStep);
  }
  if (path.empty()) return nullptr;  // Load reports this
  return FailedPrecondition("{}: another process has held its folder for {}",
                            path, absl::FormatDuration(kPatience));
}

absl::StatusOr<std::string> Find(const Known& known, const std::string& name) {
  if (known.contexts.all.contains(name)) return name;
  std::vector<std::string> names;
  for (const auto& [each, context] : known.contexts.all) names.push_back(each);
  return NotFound("no context \"{}\" in {}{}", name, known.path,
                  DidYouMean(name, names));
}

Json ContextJson(const std::string& name, const Context& context,
                 bool current) {
  Json json = {{"name", name}, {"current", current}};
  for (const ContextKey& each : ContextKeys())
    json[std::string(each.key)] = context.*each.value;
  return json;
}

View ListView(const Known& known) {
  View view;
  view.data["contexts"] = Json::array();
  Section section;
  section.table.columns = {
      {"NAME"},          {"CURRENT", 3},       {"COORDINATOR"},    {"TLS", 2},
      {"TOKEN FILE", 4}, {"TIMEOUT", 0, true}, {"OUTPUT", 0, true}};
  for (const auto& [name, context] : known.contexts.all) {
    const bool current = name == known.contexts.current;
    view.names.push_back(name);
    view.data["contexts"].push_back(ContextJson(name, context, current));
    section.table.rows.push_back({{name, Tone::kBold},
                                  current ? Cell("yes", Tone::kGood) : Cell(""),
                                  context.coordinator,
                                  context.tls_ca.empty() ? "no" : "yes",
                                  context.access_token_file,
                                  context.timeout,
                                  context.output});
  }
  if (view.names.empty())
    view.note = fmt::format(
        "no contexts in {}; \"leat context set NAME --coordinator HOST:PORT\" "
        "makes one",
        known.path);
  view.sections.push_back(std::move(section));
  return view;
}

// `home` replaces "~".
View ShowView(const Known& known, const std::string& name,
              const std::string& home) {
  const Context& context = known.contexts.all.at(name);
  View view;
  view.names = {name};
  view.data = ContextJson(name, context, name == known.contexts.current);
  // Programs that use the context as printed open these paths.
  const Context resolved = Resolved(context, known.path, home);
  for (const ContextKey& each : ContextKeys())
    view.data["resolved"][std::string(each.key)] = resolved.*each.value;
  Section section;
  section.facts = {{"Context", {name, Tone::kBold}},
                   {"Current", name == known.contexts.current ? "yes" : "no"},
                   {"File", known.path}};
  for (const ContextKey& each : ContextKeys())
    section.facts.emplace_back(std::string(each.key), context.*each.value);
  view.sections.push_back(std::move(section));
  return view;
}

// Values of the command line's flags replace those in the context; an empty
// value removes it.
absl::Status SetValues(const Session& session, Context* context) {
  const Options& options = session.options();
  const auto given = [&](const ContextKey& key) -> const std::string& {
    if (key.value == &Context::coordinator) return options.coordinator;
    if (key.value == &Context::access_token_file)
      return options.access_token_file;
    if (key.value == &Context::tls_ca) return options.tls_ca;
    if (key.value == &Context::tls_cert) return options.tls_cert;
    if (key.value == &Context::tls_key) return options.tls_key;
    if (key.value == &Context::timeout) return options.timeout;
    return options.output;
  };
  for (const ContextKey& key : ContextKeys()) {
    if (!session.line().Given(key.flag)) continue;
    std::string value = given(key);
    RETURN_IF_ERROR(CheckContextValue(key, key.flag, value));
    if (IsPath(key, value)) {
      std::error_code error;
      value = std::filesystem::absolute(value, error).string();
      if (error)
        return FailedPrecondition("{} {}: {}", key.flag, given(key),
                                  error.message());
    }
    context->*key.value = std::move(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Set(Session& session, Known known) {
  const std::string& name = session.options().name;
  RETURN_IF_ERROR(CheckContextName(name));
  Context& context = known.contexts.all[name];
  RETURN_IF_ERROR(SetValues(session, &context));
  if (context.coordinator.empty())
    return InvalidArgument("context \"{}\": --coordinator HOST:PORT is missing",
                           name);
  if (context.tls_cert.empty() != context.tls_key.empty())
    return InvalidArgument("--tls-cert and --tls-key go together");
  if (known.contexts.current.empty()) known.contexts.current = name;
  RETURN_IF_ERROR(WriteContexts(known.path, known.contexts));
  session.Say(fmt::format(
      "context \"{}\" is in {}{}", name, known.path,
      known.contexts.current == name ? ", and is the current one" : ""));
  return kGood;
}

}  // namespace

absl::StatusOr<int> RunContext(Session& session) {
  const Options& options = session.options();
  const std::string& action = options.kind;
  std::shared_ptr<ContextsLock> lock;
  if (action != "list" && action != "show") {
    ASSIGN_OR_RETURN(lock, Lock(session));
  }
  ASSIGN_OR_RETURN(Known known, Load(session));
  if (action == "list") {
    session.PrintView(ListView(known), /*further=*/false);
    return kGood;
  }
  std::string name = options.name;
  if (name.empty() && action == "show") name = known.contexts.current;
  if (name.empty())
    return InvalidArgument(
        "{}: which one? want a context's name, as \"leat context list\" shows "
        "them",
        action);
  if (action == "set") return Set(session, std::move(known));
  ASSIGN_OR_RETURN(name, Find(known, name));
  if (action == "show") {
    session.PrintView(
        ShowView(known, name,
                 session.environment().variable("HOME").value_or("")),
        /*further=*/false);
    return kGood;
  }
  if (action == "use") {
    known.contexts.current = name;
  } else {
    known.contexts.all.erase(name);
    if (known.contexts.current == name) known.contexts.current.clear();
  }
  RETURN_IF_ERROR(WriteContexts(known.path, known.contexts));
  session.Say(fmt::format(
      "context \"{}\" is {}", name,
      action == "use" ? "the current one" : "deleted; its files stay"));
  return kGood;
}

}  // namespace leat::cli
