// SPDX-License-Identifier: Apache-2.0
//
// Commands that observe a service over time.
#include "client/cli/options/command_line_state.h"

namespace leat::cli {

void CommandLine::State::AddBottleneck() {
  CLI::App* bottleneck = Command(
      "bottleneck", "Show what limits a job, and the one thing to change",
      "  leat bottleneck resnet50\n"
      "  leat bottleneck resnet50 --since 10m\n"
      "  leat bottleneck resnet50 -o json | jq -r .limit\n");
  Word(bottleneck, "JOB", options.name, "the job, its whole name",
       Names("jobs"));
  Add(bottleneck, "--since", options.since, "TIME",
      "judge by so much time, as 30s or 5m, up to 1h (1m)");
  AddOutput(bottleneck, true);
}

void CommandLine::State::AddTop() {
  CLI::App* top = Command(
      "top",
      "Show workers, jobs or consumers, sorted by activity, until Ctrl-C",
      "  leat top\n  leat top consumers --sort waits\n"
      "  leat top jobs --rows 10 --interval 5s\n"
      "  leat top --count 2 -o csv\n");
  Choice(Add(top, "KIND", options.kind, "",
             "workers (default), jobs or consumers"),
         {"workers", "jobs", "consumers"});
  Add(top, "--sort", options.sort, "COLUMN",
      "the beginning of a column's title (rate)");
  Add(top, "--rows", options.rows, "N", "rows shown, 1 to 1000 (32)")
      ->check(Between(1, 1000));
  AddOutput(top, true);
}

void CommandLine::State::AddDoctor() {
  CLI::App* doctor = Command(
      "doctor", "Find problems of this machine and the service, with remedies",
      "  leat doctor\n  leat doctor --local\n"
      "  leat doctor --local --state /var/lib/leat --data s3://bucket/train\n"
      "  leat doctor -o name    # codes of what is wrong\n");
  doctor->add_flag("--local", options.local,
                   "this machine alone: no coordinator is asked");
  Add(doctor, "--state", options.state_folder, "FOLDER",
      "also measure how long this folder takes to keep a write, as a "
      "coordinator does it in its --state",
      Files());
  Add(doctor, "--data", options.path, "URI",
      "also list this dataset and read one of its records, with this user's "
      "credentials",
      Files());
  AddOutput(doctor, false);
}

void CommandLine::State::AddWait() {
  CLI::App* wait =
      Command("wait", "Wait until workers, jobs or datasets are as is wanted",
              "  leat wait worker/node7 worker/node8 --for=ready\n"
              "  leat wait job/resnet50 --for=idle --within 1h\n"
              "  leat wait dataset/train --for=ready\n");
  Word(wait, "WHAT", options.names,
       "each of worker/NAME, job/NAME or dataset/NAME, the whole name");
  Add(wait, "--for", options.condition, "STATE",
      "ready, draining or lost for a worker; running or idle for a job; ready "
      "or failed for a dataset; gone for each")
      ->required();
  Add(wait, "--within", options.within, "TIME",
      "give up after so long, with exit code 4 (5m)");
  Add(wait, "--interval", options.interval, "TIME", "time between two looks");
}

void CommandLine::State::AddEvents() {
  CLI::App* events = Command(
      "events", "List past events, and with --watch new ones; times are UTC",
      "  leat events\n  leat events job/resnet50 --since 1h\n"
      "  leat events --watch worker\n"
      "  leat events --watch -o jsonl | jq -r .type\n");
  Add(events, "ABOUT", options.name, "",
      "worker, job, dataset, consumer, finding or coordinator, alone or with "
      "/NAME; default: everything");
  Add(events, "--since", options.since, "TIME",
      "events of the last so long, as 30s or 5m; default: all that the "
      "coordinator remembers");
  AddFormat(events);
  events->add_flag("-w,--watch", options.watch,
                   "go on with events as they happen");
  Add(events, "--count", options.count, "N",
      "with --watch: end after so many events");
}

void CommandLine::State::AddHealth() {
  CLI::App* health = Command("health", "Findings, and which of them are muted",
                             "  leat health\n"
                             "  leat health mute CERTIFICATE_EXPIRES --for 7d\n"
                             "  leat health unmute CERTIFICATE_EXPIRES\n");
  Choice(
      Add(health, "ACTION", options.kind, "", "show (default), mute or unmute"),
      {"show", "mute", "unmute"});
  Add(health, "CODE", options.names, "",
      "with mute and unmute: findings' codes");
  Add(health, "--for", options.expires, "TIME",
      "with mute: for so long, as 12h or 7d; default: until it is unmuted. A "
      "finding that gets worse is not muted");
  AddOutput(health, true);
}

void CommandLine::State::AddReport() {
  CLI::App* report =
      Command("report", "One HTML file with all of it, to attach to an issue",
              "  leat report -o report.html\n");
  Add(report, "-o,--output", options.report, "FILE",
      "file; - is stdout (report.html)", Files());
}

void CommandLine::State::AddContext() {
  CLI::App* context = Command(
      "context", "Services that leat knows by name, and the current one",
      "  leat context set lab --coordinator lab.example:7411 \\\n"
      "      --tls-ca ca.pem --access-token-file lab.token\n"
      "  leat context use lab\n"
      "  leat context list\n"
      "  leat --context lab status\n");
  Choice(
      Word(context, "ACTION", options.kind, "list, show, use, set or delete"),
      {"list", "show", "use", "set", "delete"});
  Add(context, "NAME", options.name, "",
      "the context; of show the current one by default", Names("contexts"));
  AddOutput(context, false);
}

void CommandLine::State::AddHelp() {
  CLI::App* help =
      Command("help", "Show the purpose and the options of a command",
              "  leat help\n  leat help get\n");
  std::vector<std::string> names;
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  Add(help, "COMMAND", options.name, "",
      "the command; default: lists all of them", Words(std::move(names)));
}

absl::StatusOr<std::string> CommandLine::State::HelpAsked() const {
  if (options.name.empty())
    return app.get_formatter()->make_help(&app, app.get_name(),
                                          CLI::AppFormatMode::Normal);
  const auto found = app.get_subcommands([this](const CLI::App* command) {
    return command->get_name() == options.name;
  });
  if (found.empty()) return UnknownCommand(app, options.name);
  return found.front()->help(app.get_name());
}

}  // namespace leat::cli
