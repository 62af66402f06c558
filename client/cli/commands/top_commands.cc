// SPDX-License-Identifier: Apache-2.0
//
// Commands that observe a service and judge it: top redraws, wait ends when a
// condition holds, doctor finds problems.
#include <array>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/suggestions.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/index.h"
#include "client/cli/diagnostics/credentials.h"
#include "client/cli/diagnostics/diagnostics.h"
#include "client/cli/diagnostics/probes.h"
#include "client/cli/views/top.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr absl::Duration kProbePatience = absl::Seconds(5);
constexpr absl::Duration kWorkerPatience = absl::Seconds(2);
constexpr size_t kWorkersTried = 16;
constexpr absl::Duration kDataTime = absl::Seconds(60);

absl::StatusOr<Json> ListOf(Admin& admin, std::string_view plural) {
  ASSIGN_OR_RETURN(const std::string text, admin.Get(plural));
  return ParseObject(text, plural);
}

struct Condition {
  std::string_view kind, name;
};
// "gone" applies to every kind: there is no such entity.
constexpr std::array<Condition, 7> kConditions = {{{"workers", "ready"},
                                                   {"workers", "draining"},
                                                   {"workers", "lost"},
                                                   {"jobs", "running"},
                                                   {"jobs", "idle"},
                                                   {"datasets", "ready"},
                                                   {"datasets", "failed"}}};

// Returns the state of an item, one of its kind's conditions.
std::string StateOf(std::string_view kind, const Json& item) {
  if (kind == "workers") return EnumWord(Text(item, "state"), "WORKER_STATE_");
  if (kind == "jobs") return Whole(item, "consumers") > 0 ? "running" : "idle";
  return Text(item, "state");
}

absl::Status CheckCondition(const Kind& kind, std::string_view wanted) {
  std::string known = "gone";
  for (const Condition& each : kConditions) {
    if (each.kind != kind.plural) continue;
    if (each.name == wanted) return absl::OkStatus();
    known += fmt::format(", {}", each.name);
  }
  if (wanted == "gone") return absl::OkStatus();
  return InvalidArgument("--for={}: of a {} want one of {}", wanted,
                         kind.singular, known);
}

constexpr std::string_view kGone = "gone";  // the state of what is not there

struct Looked {
  std::string state;
  std::string text;  // the state, for people
};

// Returns an item's current state.
absl::StatusOr<Looked> Look(Admin& admin, const Kind& kind,
                            const std::string& name) {
  ASSIGN_OR_RETURN(const Json answer, ListOf(admin, kind.plural));
  std::vector<std::string> names;
  for (const Json& item : Items(answer, kind.plural)) {
    names.push_back(Text(item, kind.name));
    if (names.back() != name) continue;
    const std::string state = StateOf(kind.plural, item);
    return Looked{state, state};
  }
  return Looked{std::string(kGone),
                "it is not there" + DidYouMean(name, names)};
}

// Adds diagnoses of the token and the certificates that this command would
// send, and of the coordinator's certificate.
void AddCredentials(const Session& session, std::vector<Diagnosis>* to) {
  if (session.line().Given("--private")) return;
  const CredentialSources sources = session.credentials();
  for (Diagnosis& each : DiagnoseCredentials(GatherCredentials(sources),
                                             session.environment().now()))
    to->push_back(std::move(each));
  if (session.options().local || (sources.ca.empty() && sources.cert.empty()))
    return;
  const absl::StatusOr<ConnectOptions> options = session.MakeOptions();
  if (!options.ok()) return;  // DiagnoseCredentials says why
  if (const std::optional<TlsProbe> probe =
          session.environment().probe_tls(*options, kProbePatience))
    to->push_back({"SERVER_CERTIFICATE", probe->remedy.empty() ? "ok" : "error",
                   probe->what, probe->remedy});
}

// Adds whether this machine reaches the workers, as a training on it must.
void AddWorkers(const Session& session, const Json& status,
                std::vector<Diagnosis>* to) {
  const absl::StatusOr<ConnectOptions> options = session.MakeOptions();
  if (!options.ok()) return;
  struct Tried {
    std::string name, address;
    std::future<std::optional<TlsProbe>> probe;
  };
  std::vector<Tried> tried;
  size_t ready = 0;
  for (const Json& worker : Items(status, "workers")) {
    const std::string address = Text(worker, "address");
    if (Text(worker, "state") != "WORKER_STATE_READY" ||
        address.starts_with("unix") || ++ready > kWorkersTried)
      continue;
    ConnectOptions its = *options;
    its.address = address;
    tried.push_back({Text(worker, "name"), address,
                     std::async(std::launch::async, [&session, its] {
                       return session.environment().probe_tls(its,
                                                              kWorkerPatience);
                     })});
  }
  if (tried.empty()) return;
  std::vector<WorkerProbe> probes;
  for (Tried& each : tried)
    probes.push_back({each.name, each.address, each.probe.get()});
  to->push_back(DiagnoseWorkers(probes, ready));
}

// Without an address, there may be no coordinator to find: a private service
// runs only while a script uses it.
Diagnosis NothingNamed(std::string_view address) {
  return {"COORDINATOR", "warn",
          fmt::format("no coordinator is named, and none answers at the "
                      "default address {}",
                      address),
          "nothing is wrong for a script with a private service: call leat "
          "doctor while it runs to examine that, too (of several, the one of "
          "--private=PID). For another service, --coordinator HOST:PORT or "
          "LEAT_COORDINATOR says where its coordinator is"};
}

// For a rejected caller, the coordinator's error names the token and the role.
Diagnosis NotAnswered(const absl::Status& status) {
  const bool refused =
      absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
  return {refused ? "ACCESS_TOKEN_REFUSED" : "COORDINATOR", "error",
          std::string(Message(status)),
          refused ? "have an operator make a token for you (leat access "
                    "create), and give it by --access-token-file or "
                    "LEAT_ACCESS_TOKEN"
                  : "fix what the text names, or give another address by "
                    "--coordinator HOST:PORT or LEAT_COORDINATOR; --local "
                    "examines this machine alone"};
}

// Adds the coordinator, or this user's private service, and its workers.
absl::Status AddService(Session& session, std::vector<Diagnosis>* to) {
  const absl::StatusOr<Connection*> connection = session.ConnectOrPrivate();
  const absl::StatusOr<std::string> text =
      connection.ok() ? (*connection)->admin().Get("status")
                      : absl::StatusOr<std::string>(connection.status());
  if (!text.ok()) {
    const bool unnamed =
        absl::IsUnavailable(text.status()) && !session.NamesService();
    to->push_back(unnamed ? NothingNamed(session.address())
                          : NotAnswered(text.status()));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Json status, ParseObject(*text, "status"));
  for (Diagnosis& each : DiagnoseService(status, session.environment().version,
                                         session.environment().now()))
    to->push_back(std::move(each));
  AddWorkers(session, status, to);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunTop(Session& session) {
  const Options& options = session.options();
  const Kind* kind = FindKind(options.kind.empty() ? "workers" : options.kind);
  if (kind == nullptr || kind->plural == "datasets" || kind->plural == "shards")
    return InvalidArgument("no \"{}\" in top: want workers, jobs or consumers",
                           options.kind);
  Top top({.kind = std::string(kind->plural),
           .sort = options.sort,
           .rows = options.rows});
  return session.Show(
      [&]() -> absl::StatusOr<Session::Result> {
        ASSIGN_OR_RETURN(Connection * connection, session.Connect());
        ASSIGN_OR_RETURN(Json answer,
                         ListOf(connection->admin(), kind->plural));
        ASSIGN_OR_RETURN(View view, top.Next(std::move(answer),
                                             session.environment().now()));
        return Session::Result{std::move(view), kGood};
      },
      /*watch=*/true);
}

// The local part is printed even if no coordinator answers.
absl::StatusOr<int> RunDoctor(Session& session) {
  const Options& options = session.options();
  // Otherwise the flag's error would look like the coordinator's.
  RETURN_IF_ERROR(ParseTimeFlag("--timeout", options.timeout).status());
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    std::vector<Diagnosis> diagnoses = DiagnoseLocal(GatherLocal());
    AddCredentials(session, &diagnoses);
    if (!options.state_folder.empty())
      diagnoses.push_back(DiagnoseSync(options.state_folder,
                                       MeasureSync(options.state_folder)));
    if (!options.path.empty())
      diagnoses.push_back(DiagnoseData(
          options.path,
          ListDataset(session, options.path,
                      {.read_records = 1, .within = kDataTime}, nullptr)));
    if (!options.local) RETURN_IF_ERROR(AddService(session, &diagnoses));
    int exit_code = kGood;
    for (const Diagnosis& each : diagnoses)
      if (each.severity == "error") exit_code = kUnhealthy;
    return Session::Result{DiagnosesView(diagnoses), exit_code};
  });
}

namespace {

struct Waited {
  const Kind* kind = nullptr;
  std::string name;
};

absl::StatusOr<Waited> ParseWaited(const std::string& text) {
  const size_t slash = text.find('/');
  const Kind* kind = FindKind(text.substr(0, slash));
  if (slash == std::string::npos || slash + 1 == text.size() ||
      kind == nullptr || kind->plural == "shards" ||
      kind->plural == "consumers")
    return InvalidArgument(
        "wait for \"{}\": want worker/NAME, job/NAME or dataset/NAME", text);
  return Waited{kind, text.substr(slash + 1)};
}

absl::Status WaitFor(Session& session, const Waited& waited,
                     absl::Time deadline, absl::Duration interval) {
  const Options& options = session.options();
  const Environment& environment = session.environment();
  // A worker may come back by itself. A job does not; but a script may create
  // it again, also at a coordinator that restarted without its state.
  constexpr absl::Duration kPatience = absl::Seconds(10);
  // A command that prints nothing for longer looks as if it hung.
  constexpr absl::Duration kSilence = absl::Seconds(5);
  constexpr absl::Duration kTry = absl::Milliseconds(100);
  const bool may_return = waited.kind->plural == "workers";
  const absl::Time began = environment.now();
  bool seen = false, said = false;
  absl::Time there = began;  // when it was last seen
  while (true) {
    // Waiting continues while a coordinator restarts.
    const absl::StatusOr<Connection*> connection = session.Connect(
        std::max(absl::Ceil(deadline - environment.now(), kTry), kTry));
    const absl::StatusOr<Looked> found =
        connection.ok()
            ? Look((*connection)->admin(), *waited.kind, waited.name)
            : absl::StatusOr<Looked>(connection.status());
    if (found.ok() && found->state == options.condition)
      return absl::OkStatus();
    if (!found.ok() && !absl::IsUnavailable(found.status()) &&
        !absl::IsDeadlineExceeded(found.status()))
      return found.status();
    const absl::Time now = environment.now();
    if (!found.ok() || found->state != kGone) there = now;
    seen = seen || (found.ok() && found->state != kGone);
    if (seen && !may_return && now - there >= kPatience)
      return NotFound("{} \"{}\" was deleted while it was waited for",
                      waited.kind->singular, waited.name);
    const absl::Duration left = deadline - now;
    const std::string why =
        found.ok() ? found->text : std::string(Message(found.status()));
    if (left <= absl::ZeroDuration())
      return DeadlineExceeded("{} \"{}\" is not {} within {}: {}",
                              waited.kind->singular, waited.name,
                              options.condition, options.within, why);
    if (!said && now - began >= kSilence) {
      session.Say(fmt::format("waits until {} \"{}\" is {}, for {} at most: {}",
                              waited.kind->singular, waited.name,
                              options.condition, options.within, why));
      said = true;
    }
    environment.pause(std::min(interval, left));
  }
}

}  // namespace

absl::StatusOr<int> RunWait(Session& session) {
  const Options& options = session.options();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, session.Names());
  std::vector<Waited> all;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(Waited waited, ParseWaited(name));
    RETURN_IF_ERROR(CheckCondition(*waited.kind, options.condition));
    all.push_back(std::move(waited));
  }
  ASSIGN_OR_RETURN(const absl::Duration interval,
                   ParseTimeFlag("--interval", options.interval));
  ASSIGN_OR_RETURN(const absl::Duration within,
                   ParseTimeFlag("--within", options.within));
  // --within is the time for all of them together.
  const absl::Time deadline = session.environment().now() + within;
  for (const Waited& waited : all)
    RETURN_IF_ERROR(WaitFor(session, waited, deadline, interval));
  return kGood;
}

}  // namespace leat::cli
