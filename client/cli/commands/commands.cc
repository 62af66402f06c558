// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/commands.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/suggestions.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/health.h"
#include "client/cli/views/bottleneck.h"
#include "client/cli/views/describe.h"
#include "client/cli/views/listing.h"
#include "client/cli/views/why.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

absl::StatusOr<Json> Parsed(absl::StatusOr<std::string> answer,
                            std::string_view what) {
  RETURN_IF_ERROR(answer.status());
  return ParseObject(*answer, what);
}

absl::StatusOr<const Kind*> KindOf(std::string_view word) {
  const Kind* kind = FindKind(word);
  if (kind != nullptr) return kind;
  std::vector<std::string> words;
  for (const char* each :
       {"workers", "jobs", "datasets", "shards", "consumers", "pools"}) {
    words.push_back(each);
  }
  return InvalidArgument("no kind \"{}\"{}; want one of {}", word,
                         DidYouMean(word, words), KindList());
}

absl::StatusOr<Json> List(Admin& admin, const Kind& kind) {
  return Parsed(admin.Get(kind.plural), kind.plural);
}

std::vector<std::string> NamesIn(const Kind& kind, const Json& answer) {
  std::vector<std::string> names;
  for (const Json& item : Items(answer, kind.plural)) {
    names.push_back(Text(item, kind.name));
  }
  return names;
}

// Lists the shards of the dataset that matches `name`; shards need one.
absl::StatusOr<Json> ListShardsOf(Admin& admin, std::string name) {
  const Kind& datasets = *FindKind("datasets");
  ASSIGN_OR_RETURN(Json answer, List(admin, datasets));
  if (name.empty()) {
    std::string list;
    for (const std::string& each : NamesIn(datasets, answer)) {
      list += (list.empty() ? "" : ", ") + each;
    }
    return InvalidArgument("shards: no dataset is named; want one of: {}",
                           list.empty() ? "none" : list);
  }
  for (const absl::Status& error : KeepNamed(datasets, {name}, answer))
    return error;
  name = Text(Items(answer, "datasets")[0], "dataset.id");
  return Parsed(admin.Get("shards", name), "shards");
}

absl::StatusOr<bool> Confirmed(Session& session, std::string_view question) {
  const Environment& environment = session.environment();
  if (session.options().yes) return true;
  if (!environment.in_is_terminal) {
    return InvalidArgument(
        "not asked, since the input is no terminal: say --yes");
  }
  *environment.err << Printable(question) << " [y/N] " << std::flush;
  std::string answer;
  std::getline(*environment.in, answer);
  std::transform(answer.begin(), answer.end(), answer.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return answer == "y" || answer == "yes";
}

}  // namespace

absl::Status WithNearNames(absl::Status status, Admin& admin, const Kind& kind,
                           std::string_view name) {
  if (status.code() != absl::StatusCode::kNotFound) return status;
  const absl::StatusOr<Json> answer = List(admin, kind);
  if (!answer.ok()) return status;
  return NotFound("no {} \"{}\"{}", kind.singular, name,
                  DidYouMean(name, NamesIn(kind, *answer)));
}

absl::StatusOr<int> RunStatus(Session& session) {
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    ASSIGN_OR_RETURN(Connection * connection, session.Connect());
    ASSIGN_OR_RETURN(Json status,
                     Parsed(connection->admin().Get("status"), "status"));
    const int exit_code = Unhealthy(status) ? kUnhealthy : kGood;
    return Session::Result{
        StatusView(std::move(status), session.environment().now()), exit_code};
  });
}

namespace {

// Keeps the items of `answer` that match `names`; without names it keeps all.
// Returns an error for each name without a match. If no name matches, it prints
// the first errors and fails with the last one.
absl::StatusOr<std::vector<absl::Status>> KeepAsked(
    const Session& session, const Kind& kind,
    const std::vector<std::string>& names, Json& answer) {
  if (names.empty()) return std::vector<absl::Status>();
  std::vector<absl::Status> errors = KeepNamed(kind, names, answer);
  if (!Items(answer, kind.plural).empty()) return errors;
  for (size_t i = 0; i + 1 < errors.size(); ++i) session.SayError(errors[i]);
  return errors.back();
}

}  // namespace

absl::StatusOr<int> RunGet(Session& session) {
  ASSIGN_OR_RETURN(const Kind* kind, KindOf(session.options().kind));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, session.Names());
  const bool shards = kind->plural == "shards";
  if (shards && names.size() > 1)
    return InvalidArgument(
        "shards of {} datasets: want one, as samples are numbered in each",
        names.size());
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    ASSIGN_OR_RETURN(Connection * connection, session.Connect());
    Admin& admin = connection->admin();
    const absl::Time now = session.environment().now();
    if (shards) {
      ASSIGN_OR_RETURN(Json answer,
                       ListShardsOf(admin, names.empty() ? "" : names[0]));
      return Session::Result{ListingView(*kind, std::move(answer), now), kGood};
    }
    ASSIGN_OR_RETURN(Json answer, List(admin, *kind));
    ASSIGN_OR_RETURN(std::vector<absl::Status> errors,
                     KeepAsked(session, *kind, names, answer));
    return Session::Result{ListingView(*kind, std::move(answer), now), kGood,
                           std::move(errors)};
  });
}

namespace {

// Bound on the items described as text if the command line names none.
constexpr size_t kMaxDescribed = 100;

// `answer` is the result of the List call for that kind; -o json prints all of
// it.
View DescribeSeveral(const Kind& kind, Json answer,
                     const std::function<View(const Json& item)>& describe) {
  const Json& items = Items(answer, kind.plural);
  if (items.empty()) return ListingView(kind, std::move(answer), {});
  View view;
  for (const Json& item : items) {
    if (view.names.size() >= kMaxDescribed) {
      view.names.push_back(Text(item, kind.name));
      continue;
    }
    View one = describe(item);
    one.sections.front().title = fmt::format(
        "{} {} of {}", kind.singular, view.names.size() + 1, items.size());
    view.names.push_back(std::move(one.names[0]));
    for (Section& section : one.sections)
      view.sections.push_back(std::move(section));
  }
  if (items.size() > kMaxDescribed)
    view.note = fmt::format(
        "{} of {} {} are described: name others, or -o json shows all",
        kMaxDescribed, items.size(), kind.plural);
  view.data = std::move(answer);
  return view;
}

}  // namespace

absl::StatusOr<int> RunDescribe(Session& session) {
  const Options& options = session.options();
  ASSIGN_OR_RETURN(const Kind* kind, KindOf(options.kind));
  if (kind->plural != "workers" && kind->plural != "jobs" &&
      kind->plural != "datasets") {
    return InvalidArgument(
        "describe shows workers, jobs or datasets; leat get {} lists {}",
        kind->plural, kind->plural);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, session.Names());
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    ASSIGN_OR_RETURN(Connection * connection, session.Connect());
    Admin& admin = connection->admin();
    ASSIGN_OR_RETURN(Json answer, List(admin, *kind));
    ASSIGN_OR_RETURN(std::vector<absl::Status> errors,
                     KeepAsked(session, *kind, names, answer));
    const absl::Time now = session.environment().now();
    Json workers, consumers;
    if (kind->plural == "jobs") {
      ASSIGN_OR_RETURN(workers, List(admin, *FindKind("workers")));
      ASSIGN_OR_RETURN(consumers, List(admin, *FindKind("consumers")));
    }
    const auto describe = [&](const Json& item) {
      if (kind->plural == "workers") return DescribeWorker(item, now);
      if (kind->plural == "datasets") return DescribeDataset(item, now);
      return DescribeJob(item, Items(workers, "workers"),
                         Items(consumers, "consumers"), now);
    };
    // For a single name, -o json prints its object instead of a list, so that
    // scripts can read its fields directly.
    View view = names.size() == 1
                    ? describe(Items(answer, kind->plural)[0])
                    : DescribeSeveral(*kind, std::move(answer), describe);
    return Session::Result{std::move(view), kGood, std::move(errors)};
  });
}

absl::StatusOr<int> RunWhy(Session& session) {
  const Options& options = session.options();
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    ASSIGN_OR_RETURN(Connection * connection, session.Connect());
    const absl::StatusOr<std::string> text = connection->Explain(
        options.name, options.epoch, options.step, options.row);
    RETURN_IF_ERROR(WithNearNames(text.status(), connection->admin(),
                                  *FindKind("jobs"), options.name));
    ASSIGN_OR_RETURN(const Json rows, ParseArray(*text, "why"));
    return Session::Result{WhyView({.job = options.name,
                                    .epoch = options.epoch,
                                    .step = options.step,
                                    .one = options.row.has_value()},
                                   rows),
                           kGood};
  });
}

absl::StatusOr<int> RunBottleneck(Session& session) {
  const Options& options = session.options();
  ASSIGN_OR_RETURN(const absl::Duration since,
                   ParseTimeFlag("--since", options.since));
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    ASSIGN_OR_RETURN(Connection * connection, session.Connect());
    Admin& admin = connection->admin();
    const absl::StatusOr<std::string> text =
        admin.GetBottleneck(options.name, since);
    RETURN_IF_ERROR(
        WithNearNames(text.status(), admin, *FindKind("jobs"), options.name));
    ASSIGN_OR_RETURN(Json answer, ParseObject(*text, "bottleneck"));
    return Session::Result{BottleneckView(std::move(answer)), kGood};
  });
}

absl::StatusOr<int> RunDelete(Session& session) {
  const Options& options = session.options();
  ASSIGN_OR_RETURN(const Kind* kind, KindOf(options.kind));
  const bool job = kind->plural == "jobs";
  if (!job && kind->plural != "datasets") {
    return InvalidArgument("delete takes a job or a dataset, not a {}",
                           kind->singular);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, session.Names());
  const std::string what =
      names.size() == 1 ? fmt::format("{} \"{}\"", kind->singular, names[0])
                        : fmt::format("{} {} (\"{}\")", names.size(),
                                      kind->plural, fmt::join(names, "\", \""));
  const std::string question = fmt::format(
      "Delete {}? {}", what,
      !job                ? "The next job lists the files anew."
      : names.size() == 1 ? "Scripts that run go on; none can attach to it any "
                            "more."
                          : "Scripts that run go on; none can attach to them "
                            "any more.");
  ASSIGN_OR_RETURN(const bool confirmed, Confirmed(session, question));
  if (!confirmed) {
    session.Say("nothing deleted");
    return kFailed;
  }
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  Admin& admin = connection->admin();
  return session.ForEach(names, [&](const std::string& name) -> absl::Status {
    RETURN_IF_ERROR(
        WithNearNames(admin.Do(job ? "delete-job" : "delete-dataset", name),
                      admin, *kind, name));
    session.Say(fmt::format("{} \"{}\" deleted", kind->singular, name));
    return absl::OkStatus();
  });
}

absl::StatusOr<int> RunRefresh(Session& session) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, session.Names());
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  Admin& admin = connection->admin();
  return session.ForEach(names, [&](const std::string& name) -> absl::Status {
    if (session.environment().err_is_terminal)
      *session.environment().err << fmt::format(
                                        "dataset \"{}\" is being listed; leat "
                                        "describe dataset {} shows how far "
                                        "that is\n",
                                        Printable(name), Printable(name))
                                 << std::flush;
    RETURN_IF_ERROR(WithNearNames(admin.Do("refresh-dataset", name), admin,
                                  *FindKind("datasets"), name));
    session.Say(
        fmt::format("dataset \"{}\" was listed again; jobs that exist "
                    "keep the listing that they have",
                    name));
    return absl::OkStatus();
  });
}

namespace {

// Says beforehand that no worker will be left.
absl::Status WarnOfLastWorkers(Session& session, Admin& admin,
                               const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const Json answer, List(admin, *FindKind("workers")));
  size_t goes = 0;
  for (const Json& worker : Items(answer, "workers")) {
    if (Text(worker, "state") != "WORKER_STATE_READY") continue;
    if (std::find(names.begin(), names.end(), Text(worker, "name")) ==
        names.end())
      return absl::OkStatus();
    ++goes;
  }
  if (goes > 0)
    session.Say(
        "no other worker is ready: jobs get no batches until one comes, or "
        "\"leat undrain\" gives shards back");
  return absl::OkStatus();
}

absl::StatusOr<int> SetDrained(Session& session, bool drained) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, session.Names());
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  Admin& admin = connection->admin();
  if (drained) RETURN_IF_ERROR(WarnOfLastWorkers(session, admin, names));
  return session.ForEach(names, [&](const std::string& name) -> absl::Status {
    RETURN_IF_ERROR(WithNearNames(admin.Do(drained ? "drain" : "undrain", name),
                                  admin, *FindKind("workers"), name));
    session.Say(drained ? fmt::format("worker \"{}\" drains: it owns no shard "
                                      "any more and finishes what it was asked",
                                      name)
                        : fmt::format("worker \"{}\" gets shards again", name));
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<int> RunDrain(Session& session) {
  return SetDrained(session, true);
}

absl::StatusOr<int> RunUndrain(Session& session) {
  return SetDrained(session, false);
}

absl::StatusOr<int> RunLogLevel(Session& session) {
  const Options& options = session.options();
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  Admin& admin = connection->admin();
  absl::Status status = admin.SetLogLevel(options.level, options.worker);
  if (!options.worker.empty()) {
    status = WithNearNames(status, admin, *FindKind("workers"), options.worker);
  }
  RETURN_IF_ERROR(status);
  session.Say(fmt::format("{} logs at level {}",
                          options.worker.empty()
                              ? "the coordinator"
                              : "worker \"" + options.worker + "\"",
                          options.level));
  return kGood;
}

}  // namespace leat::cli
