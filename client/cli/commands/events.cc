// SPDX-License-Identifier: Apache-2.0
//
// Without --watch, `leat events` makes one View of all remembered events. With
// it, each answer is a View, and a call that was cut off is repeated from the
// last number that was seen:
//
//   ask {after 0}                     -> 1 2 3, sequence 3, instance 77
//   ... the connection breaks ...
//   ask {after 3, instance 77}        -> 4 5: none is missing, none comes twice
//   ... the coordinator starts again ...
//   ask {after 5, instance 77}        -> 1, instance 78
#include "client/cli/commands/events.h"

#include <algorithm>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/printer.h"
#include "client/cli/base/suggestions.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/listing.h"
#include "core/counted.h"
#include "core/status.h"

namespace leat::cli {
namespace {

// Time between two attempts to reach a coordinator that has gone.
constexpr absl::Duration kAskAgain = absl::Seconds(2);

Tone ToneOf(const Json& event) {
  const std::string severity = Text(event, "severity");
  if (severity == "error") return Tone::kBad;
  return severity == "warn" ? Tone::kWarn : Tone::kPlain;
}

// Converts an RFC 3339 time to "11-21 01:59:59" in UTC. It shows the
// coordinator's clock, whatever this machine's clock says.
std::string Short(const std::string& rfc3339) {
  if (rfc3339.size() < 19 || rfc3339[10] != 'T') return rfc3339;
  return rfc3339.substr(5, 5) + ' ' + rfc3339.substr(11, 8);
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

View EventsView(const Json& events, Format format) {
  View view;
  Section section;
  section.table.columns = {{"SEQUENCE", 0, false, true},
                           {"AT"},
                           {"SEVERITY"},
                           {"TYPE"},
                           {"ABOUT"},
                           {"MESSAGE"}};
  for (const Json& event : events) {
    const std::vector<std::string> subjects = Strings(event, "subjects");
    view.names.push_back(Text(event, "type"));
    if (format == Format::kTable)
      section.lines.push_back(
          {fmt::format("{}  {}  {}", Short(Text(event, "at")),
                       Text(event, "type"), Text(event, "message")),
           ToneOf(event), 0, /*hang=*/2});
    else
      section.table.rows.push_back({Text(event, "sequence"),
                                    MillisecondsText(Text(event, "at")),
                                    {Text(event, "severity"), ToneOf(event)},
                                    Text(event, "type"),
                                    Joined(subjects),
                                    Text(event, "message")});
  }
  view.sections.push_back(std::move(section));
  view.data = Json::object();
  view.data["events"] = events;
  return view;
}

absl::StatusOr<std::string> EventSubject(const std::string& text) {
  if (text.empty()) return "";
  const size_t slash = text.find('/');
  const std::string word = text.substr(0, slash);
  const std::string name = slash == std::string::npos ? "" : text.substr(slash);
  if (const Kind* kind = FindKind(word);
      kind != nullptr && kind->plural != "shards" && kind->plural != "pools")
    return std::string(kind->singular) + name;
  for (const char* other : {"finding", "coordinator"})
    if (word == other || word == std::string(other) + 's') return other + name;
  return InvalidArgument(
      "no kind \"{}\"{}; want worker, job, dataset, consumer, finding or "
      "coordinator, alone or with /NAME",
      word,
      DidYouMean(word, {"worker", "job", "dataset", "consumer", "finding",
                        "coordinator"}));
}

namespace {

// A Follower holds the state of one run of `leat events`.
class Follower {
 public:
  Follower(Session* session, EventsQuery query)
      : session_(session), query_(std::move(query)) {}

  // Shows or keeps the events of one answer, and returns whether to continue.
  absl::StatusOr<bool> Take(std::string_view text) {
    ASSIGN_OR_RETURN(const Json answer, ParseObject(text, "events"));
    const uint64_t instance = Whole(answer, "instance");
    const bool again = query_.instance != 0 && query_.instance != instance;
    if (again) session_->Say("the coordinator has started again");
    if (const uint64_t missed = Whole(answer, "missed");
        missed > 0 && query_.instance != 0 && !again)
      session_->Say(fmt::format(
          "{} came meanwhile that the coordinator does not keep any more",
          Counted(missed, "event")));
    query_.after = Whole(answer, "sequence");
    query_.instance = instance;
    Json events = Items(answer, "events");
    if (!query_.follow) {
      for (const Json& event : events) all_.push_back(event);
      return true;
    }
    const uint32_t most = session_->options().count;
    while (most > 0 && shown_ + events.size() > most)
      events.erase(events.size() - 1);
    if (!events.empty()) {
      session_->PrintView(EventsView(events, session_->format()),
                          printed_++ > 0);
      shown_ += events.size();
    }
    return (most == 0 || shown_ < most) && session_->environment().out->good();
  }

  const EventsQuery& query() const { return query_; }
  const Json& all() const { return all_; }

 private:
  Session* const session_;
  EventsQuery query_;
  Json all_ = Json::array();
  size_t shown_ = 0, printed_ = 0;
};

// Makes one call. Sets `*ended` when no more events are wanted.
absl::Status Ask(Session& session, Follower* follower, bool* ended) {
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  absl::Status taken;
  const absl::Status asked = connection->admin().WatchEvents(
      follower->query(), [&](std::string_view text) {
        const absl::StatusOr<bool> more = follower->Take(text);
        taken = more.status();
        *ended = !more.ok() || !*more;
        return !*ended;
      });
  return taken.ok() ? asked : taken;
}

}  // namespace

absl::StatusOr<int> RunEvents(Session& session) {
  const Options& options = session.options();
  EventsQuery query;
  query.follow = options.watch;
  ASSIGN_OR_RETURN(query.subject, EventSubject(options.name));
  if (session.line().Given("--since")) {
    ASSIGN_OR_RETURN(query.since, ParseTimeFlag("--since", options.since));
  }
  Follower follower(&session, std::move(query));
  bool ended = false, lost = false, answered = false;
  while (true) {
    const absl::Status status = Ask(session, &follower, &ended);
    answered = answered || follower.query().instance != 0;
    if (ended && status.ok()) return kGood;
    const bool gone =
        absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
    if (!status.ok() && !(options.watch && answered && gone)) return status;
    if (!options.watch) break;
    // Watching continues while a coordinator restarts.
    if (!status.ok()) {
      if (!lost) session.Say(Message(status));
      session.environment().pause(kAskAgain);
    }
    lost = !status.ok();
  }
  View view = EventsView(follower.all(), session.format());
  if (follower.all().empty()) view.note = "no such event is remembered";
  session.PrintView(view, /*further=*/false);
  return kGood;
}

}  // namespace leat::cli
