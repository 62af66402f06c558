// SPDX-License-Identifier: Apache-2.0
#include "client/cli/options/command_line.h"

#include <algorithm>

#include "client/cli/base/suggestions.h"
#include "client/cli/options/command_line_state.h"
#include "client/cli/options/help_formatter.h"
#include "core/status.h"
#include "core/utf8.h"

namespace leat::cli {
namespace {

constexpr std::string_view kAddressHelp =
    "coordinator's address, HOST:PORT (LEAT_COORDINATOR; 127.0.0.1:7411)";

}  // namespace

void CommandLine::State::AddGlobal() {
  Add(&app, "--coordinator", options.coordinator, "ADDR",
      std::string(kAddressHelp));
  app.add_flag("--private", options.private_pid,
               "the private service of this user on this machine; "
               "--private=PID: of several the one that this process keeps");
  Add(&app, "--context", options.context, "NAME",
      "a service by its name in \"leat context list\" (LEAT_CONTEXT)",
      Names("contexts"));
  Add(&app, "--access-token-file", options.access_token_file, "FILE",
      "file with the service's access token (LEAT_ACCESS_TOKEN_FILE; "
      "LEAT_ACCESS_TOKEN is the token itself)",
      Files());
  Add(&app, "--tls-ca", options.tls_ca, "FILE",
      "roots to trust (LEAT_TLS_CA): use TLS; system: those of this machine",
      Files());
  Add(&app, "--tls-cert", options.tls_cert, "FILE",
      "own certificate (LEAT_TLS_CERT)", Files());
  Add(&app, "--tls-key", options.tls_key, "FILE", "its key (LEAT_TLS_KEY)",
      Files());
  Add(&app, "--timeout", options.timeout, "TIME",
      "time to connect, and time of every call, as 10s or 500ms");
  Choice(Add(&app, "--color", options.color, "WHEN",
             "auto (NO_COLOR is obeyed), always or never"),
         {"auto", "always", "never"});
}

void CommandLine::State::AddViews() {
  CLI::App* status = Command("status", "Health, workers and jobs on one screen",
                             "  leat status\n  leat status --watch\n"
                             "  leat status -o json | jq '.findings[].code'\n");
  AddOutput(status, true);

  CLI::App* get =
      Command("get", "List workers, jobs, datasets, shards, consumers or pools",
              "  leat get workers -o wide\n  leat get jobs --watch\n"
              "  leat get shards my-dataset\n"
              "  leat get jobs resnet50 vit -o yaml\n");
  Word(get, "KIND", options.kind,
       "workers, jobs, datasets, shards, consumers or pools (or w, j, ds, sh, "
       "c, p); also KIND/NAME",
       Words({"workers", "jobs", "datasets", "shards", "consumers", "pools"}));
  Add(get, "NAME", options.names, "",
      "those of them, by names or unique beginnings; for shards the dataset",
      NamesOfKind());
  AddOutput(get, true);

  CLI::App* describe =
      Command("describe", "Everything about workers, jobs or datasets",
              "  leat describe job resnet50\n"
              "  leat describe worker node7 node8\n"
              "  leat describe jobs         # all of them\n");
  Word(describe, "KIND", options.kind, "worker, job or dataset; also KIND/NAME",
       Words({"worker", "job", "dataset"}));
  Add(describe, "NAME", options.names, "",
      "names or unique beginnings; default: all of the kind", NamesOfKind());
  AddOutput(describe, true);
  AddBottleneck();
  AddTop();
  AddEvents();
  AddHealth();
  AddWait();
  AddDoctor();
  AddReport();
}

void CommandLine::State::AddActions() {
  CLI::App* remove = Command("delete", "Forget jobs or datasets",
                             "  leat delete job resnet50\n"
                             "  leat delete dataset train val --yes\n");
  Word(remove, "KIND", options.kind, "job or dataset; also KIND/NAME",
       Words({"job", "dataset"}));
  Add(remove, "NAME", options.names, "", "their whole names", NamesOfKind());
  remove->add_flag("-y,--yes", options.yes, "do not ask");

  CLI::App* refresh =
      Command("refresh", "List datasets again, for jobs to come",
              "  leat refresh dataset train val\n");
  Choice(Word(refresh, "KIND", options.kind, "dataset"), {"dataset"});
  Word(refresh, "NAME", options.names, "their whole names", Names("datasets"));

  CLI::App* drain =
      Command("drain", "Take workers' shards away; they finish what they have",
              "  leat drain node7 node8 && leat get workers --watch\n");
  Word(drain, "WORKER", options.names, "their whole names", Names("workers"));
  CLI::App* undrain = Command("undrain", "Give drained workers shards again",
                              "  leat undrain node7 node8\n");
  Word(undrain, "WORKER", options.names, "their whole names", Names("workers"));

  CLI::App* level = Command("log-level", "Change how much a daemon logs",
                            "  leat log-level debug\n"
                            "  leat log-level debug --worker node7\n");
  Choice(
      Word(level, "LEVEL", options.level, "trace, debug, info, warn or error"),
      {"trace", "debug", "info", "warn", "error"});
  Add(level, "--worker", options.worker, "NAME",
      "a worker; default: the coordinator", Names("workers"));
}

void CommandLine::State::AddAccess() {
  CLI::App* access = Command(
      "access", "Access tokens: who may call the service, and what",
      "  leat access create --role trainer --name vision --expires 90d > "
      "token\n"
      "  leat access list\n"
      "  leat access revoke vision 0a1b2c3d\n"
      "  leat access roles         # which role may call which method\n");
  Choice(Word(access, "ACTION", options.kind, "create, list, revoke or roles"),
         {"create", "list", "revoke", "roles"});
  Add(access, "TOKEN", options.names, "", "with revoke: their ids or names");
  Choice(Add(access, "--role", options.role, "ROLE",
             "with create: viewer, trainer, worker or operator"),
         {"viewer", "trainer", "worker", "operator"});
  Add(access, "--name", options.token_name, "NAME",
      "with create: a name for people; several tokens may have the same");
  Add(access, "--expires", options.expires, "TIME",
      "with create: how long the token is good for, as 90d or 12h; default: "
      "until it is revoked");
  AddOutput(access, false);
}

void CommandLine::State::AddLocal() {
  AddSheet();
  AddWhy();
  AddIndex();
  AddState();
  AddTrace();

  AddInspect();

  CLI::App* completion =
      Command("completion", "Script that completes leat's words in a shell",
              "  source <(leat completion bash)\n"
              "  leat completion zsh > ~/.zfunc/_leat\n"
              "  leat completion fish | source\n");
  Choice(Word(completion, "SHELL", options.shell, "bash, zsh or fish"),
         {"bash", "zsh", "fish"});
  CLI::App* man = Command("man", "Write leat's manual pages into a folder",
                          "  leat man ~/.local/share/man/man1 && man leat\n");
  Word(man, "FOLDER", options.path, "an existing folder", Files());
  Command("version", "The version of this program", "  leat version\n");
}

void CommandLine::State::AddWhy() {
  CLI::App* why =
      Command("why", "Explain a row of a step: file, offset and draws",
              "  leat why resnet50 --step 340\n"
              "  leat why resnet50 --step 340 --row 7\n"
              "  leat why resnet50 --epoch 2 --step 340 -o json\n");
  Word(why, "JOB", options.name, "the job, running or finished", Names("jobs"));
  Add(why, "--step", options.step, "S", "step, from 0")
      ->check(NotNegative())
      ->required();
  Add(why, "--row", options.row, "R",
      "row of the batch, from 0; default: all of them")
      ->check(NotNegative());
  Add(why, "--epoch", options.epoch, "E", "epoch, from 0")
      ->check(NotNegative());
  AddOutput(why, false);
}

void CommandLine::State::AddConvert() {
  CLI::App* convert = Command(
      "convert",
      "Write idx files or an image folder as Caffe2's LMDB, TFRecord or "
      "WebDataset",
      "  leat convert mnist db/MNIST --to caffe2      # training/, testing/\n"
      "  leat convert train-images-idx3-ubyte.gz train --to tfrecord\n"
      "  leat convert photos photos-tar --to webdataset --shard-size 1GiB\n");
  ConvertOptions& to = options.convert;
  Word(convert, "INPUT", to.input,
       "image folder, idx file of images, or folder with MNIST's idx files",
       Files());
  Word(convert, "OUTPUT", to.output, "folder to make", Files());
  Choice(Add(convert, "--to", to.to, "FORM", "caffe2, tfrecord or webdataset")
             ->required(),
         {"caffe2", "tfrecord", "webdataset"});
  Add(convert, "--labels", to.labels, "FILE",
      "idx file of the labels, if not found by name", Files());
  Choice(Add(convert, "--encoding", to.encoding, "KIND",
             "format of idx's images: png (default; loses nothing) or jpeg"),
         {"png", "jpeg"});
  Add(convert, "--quality", to.quality, "N", "quality of a JPEG, 1 to 100 (95)")
      ->check(Between(1, 100));
  Add(convert, "--shard-size", to.shard_bytes, "SIZE",
      "most bytes of a .tfrecord or .tar file (256MiB)")
      ->transform(CLI::AsSizeValue(true).description(""))
      ->check(Between(uint64_t{1}, uint64_t{1} << 50));
  convert->add_flag("-f,--force", to.force,
                    "replace an output that leat convert wrote");
}

CommandNode CommandLine::State::Node(const CLI::App* command) const {
  CommandNode node;
  node.name = command->get_name();
  node.text = command->get_description();
  if (const auto found = examples.find(command); found != examples.end())
    node.examples = found->second;
  for (const CLI::Option* option : command->get_options()) {
    const auto found = values.find(option);
    const Values known = found == values.end() ? Values{} : found->second;
    if (option->get_positional()) {
      node.positionals.push_back({option->get_name(/*positional=*/true),
                                  option->get_description(),
                                  option->get_required(), known,
                                  option->get_items_expected_max() > 1});
      continue;
    }
    OptionNode item{
        {},    option->get_description(), option->get_items_expected_max() > 0,
        known, option->get_type_name(),   option->get_required()};
    for (const std::string& name : option->get_snames()) {
      item.flags.push_back("-" + name);
    }
    for (const std::string& name : option->get_lnames()) {
      item.flags.push_back("--" + name);
    }
    node.options.push_back(std::move(item));
  }
  for (const CLI::App* sub :
       command->get_subcommands([](const CLI::App*) { return true; })) {
    node.commands.push_back(Node(sub));
  }
  return node;
}

absl::Status CommandLine::State::CheckWords(const CLI::App& chosen) const {
  for (const CLI::App* each : {&chosen, &app})
    for (const CLI::Option* option : each->get_options()) {
      const auto found = values.find(option);
      // Files may have any name.
      if (found != values.end() && found->second.of == Values::Of::kFiles)
        continue;
      for (const std::string& word : option->results()) {
        if (word.size() <= kMaxWordBytes && IsUtf8(word)) continue;
        return InvalidArgument(
            "{}: {} \"{}\" of {} bytes: want at most {}, in UTF-8",
            chosen.get_name(), option->get_name(option->get_positional()),
            ToUtf8(word, 40), word.size(), kMaxWordBytes);
      }
    }
  return absl::OkStatus();
}

CommandLine::CommandLine() : state_(std::make_unique<State>()) {
  CLI::App& app = state_->app;
  app.formatter(std::make_shared<HelpFormatter>(&state_->examples));
  app.set_help_flag("-h,--help", "this help");
  app.set_version_flag("--version", "leat", "the version");
  app.require_subcommand(0, 1);
  app.fallthrough();
  state_->examples[&app] =
      "  leat status\n  leat get jobs --watch\n"
      "  leat sheet resnet50 --step 10 -o sheet.png\n";
  app.footer(
      "Exit codes: 0 good, 1 failed, 2 wrong use, 3 not found, 4 cannot "
      "connect or out\nof time, 5 not allowed, 6 unhealthy. \"leat COMMAND "
      "--help\" says more about a\ncommand.");
  state_->AddGlobal();
  state_->AddViews();
  state_->AddActions();
  state_->AddAccess();
  state_->AddPool();
  state_->AddSlurm();
  state_->AddContext();
  state_->AddConvert();
  state_->AddLocal();
  state_->AddHelp();
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) {
    sub->fallthrough();
    sub->footer("Options of every command, and exit codes: leat --help");
  }
}

CommandLine::~CommandLine() = default;

namespace {

// Returns the error of a word that was not understood, in our words.
absl::Status UnknownOption(const CLI::App& app, const CLI::App& at,
                           std::string_view where, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* each : {&at, &app})
    for (const CLI::Option* option : each->get_options())
      for (const std::string& name : option->get_lnames())
        names.push_back("--" + name);
  const std::string name = word.substr(0, word.find('='));
  if (std::find(names.begin(), names.end(), name) != names.end())
    return InvalidArgument(
        "{}{} stands behind \"--\", where all words are names: put it before",
        where, word);
  return InvalidArgument("{}unknown option {}{}", where, word,
                         DidYouMean(word, names));
}

absl::Status Unexpected(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining(true);
  const auto chosen = app.get_subcommands();
  const CLI::App* at = chosen.empty() ? &app : chosen.front();
  const std::string where =
      chosen.empty() ? "" : fmt::format("{}: ", at->get_name());
  // An unknown option explains why another word is missing.
  const auto option =
      std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
        return word.starts_with("-") && word != "-" && word != "--";
      });
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (option != rest.end() && (code == CLI::ExitCodes::ExtrasError ||
                               code == CLI::ExitCodes::RequiredError))
    return UnknownOption(app, *at, where, *option);
  if (code != CLI::ExitCodes::ExtrasError || rest.empty())
    return InvalidArgument("{}{}", where, error.what());
  const std::string& word = rest.front();
  if (!chosen.empty())
    return InvalidArgument("{}unexpected \"{}\"", where, word);
  return UnknownCommand(app, word);
}

// Splits "describe job/a" into "describe job a"; "why job/a" is "why a".
absl::Status SplitKind(const std::string& command, Options* options) {
  if (command != "events" && options->name.starts_with("job/"))
    options->name.erase(0, 4);
  if (const size_t slash = options->kind.find('/');
      slash != std::string::npos) {
    options->names.insert(options->names.begin(),
                          options->kind.substr(slash + 1));
    options->kind.resize(slash);
  }
  if (options->names.empty() && command == "delete")
    return InvalidArgument("delete: {} NAME: NAME is missing", options->kind);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine::Parsed> CommandLine::Parse(
    std::vector<std::string> args) {
  CLI::App& app = state_->app;
  std::reverse(args.begin(), args.end());  // as CLI11 wants it
  try {
    app.parse(args);
  } catch (const CLI::CallForHelp&) {
    return Parsed{"", app.help()};
  } catch (const CLI::CallForVersion&) {
    return Parsed{"version", ""};
  } catch (const CLI::ParseError& error) {
    return Unexpected(app, error);
  }
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return InvalidArgument("a command is wanted");
  RETURN_IF_ERROR(state_->CheckWords(*chosen.front()));
  const std::string command = chosen.front()->get_name();
  if (command == "help") {
    ASSIGN_OR_RETURN(std::string help, state_->HelpAsked());
    return Parsed{"", std::move(help)};
  }
  RETURN_IF_ERROR(SplitKind(command, &state_->options));
  return Parsed{command, ""};
}

const Options& CommandLine::options() const { return state_->options; }

bool CommandLine::Given(std::string_view flag) const {
  const CLI::App& app = state_->app;
  std::vector<const CLI::App*> at = {&app};
  for (const CLI::App* chosen : app.get_subcommands()) at.push_back(chosen);
  return std::any_of(at.begin(), at.end(), [&](const CLI::App* each) {
    const CLI::Option* option = each->get_option_no_throw(std::string(flag));
    return option != nullptr && option->count() > 0;
  });
}

std::string CommandLine::Chosen() const {
  const auto chosen = state_->app.get_subcommands();
  return chosen.empty() ? "" : chosen.front()->get_name();
}

bool CommandLine::Takes(std::string_view flag) const {
  const auto chosen = state_->app.get_subcommands();
  return !chosen.empty() &&
         chosen.front()->get_option_no_throw(std::string(flag)) != nullptr;
}

std::string CommandLine::Help() const { return state_->app.help(); }

CommandNode CommandLine::Tree() const { return state_->Node(&state_->app); }

}  // namespace leat::cli
