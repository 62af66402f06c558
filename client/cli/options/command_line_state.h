// SPDX-License-Identifier: Apache-2.0
//
// The parts of a CommandLine that its sources share. Internal.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/cli/base/printer.h"
#include "client/cli/base/suggestions.h"
#include "client/cli/base/text.h"
#include "client/cli/options/command_line.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "rpc/process/whole_number.h"

namespace leat::cli {

inline constexpr size_t kMaxWordBytes = 1024;

inline Values Words(std::vector<std::string> words) {
  return {Values::Of::kWords, std::move(words), ""};
}
inline Values Files() { return {Values::Of::kFiles, {}, ""}; }
inline Values Names(std::string kind) {
  return {Values::Of::kNames, {}, std::move(kind)};
}
inline Values NamesOfKind() { return {Values::Of::kNamesOfKind, {}, ""}; }

// CLI11's own names the largest double, digit by digit.
inline CLI::Validator NotNegative() {
  return {[](std::string& word) {
            return word.starts_with('-')
                       ? fmt::format("\"{}\": want 0 or more", Printable(word))
                       : std::string();
          },
          ""};
}

// The type of an option's single values.
template <class T>
struct SingleOf {
  using Type = T;
};
template <class T>
struct SingleOf<std::optional<T>> : SingleOf<T> {};
template <class T>
struct SingleOf<std::vector<T>> : SingleOf<T> {};

// The help says the bounds in its own words.
template <class T>
CLI::Validator Between(T least, T most) {
  return CLI::Range(least, most).description("");
}

// No command of the program has this name.
inline absl::Status UnknownCommand(const CLI::App& app,
                                   const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return InvalidArgument("unknown command \"{}\"{}", word,
                         DidYouMean(word, names));
}

struct CommandLine::State {
  CLI::App app{"Looks at a Leat service and runs it.", "leat"};
  Options options;
  std::map<const CLI::App*, std::string> examples;
  std::map<const CLI::Option*, Values> values;

  CLI::App* Command(const std::string& name, const std::string& text,
                    const std::string& example) {
    CLI::App* command = app.add_subcommand(name, text);
    examples[command] = example;
    return command;
  }
  // Adds an option that sets `value`. `type`: what the help calls the value, as
  // "FILE"; empty for a positional. `known`: what a shell offers for it.
  template <class T>
  CLI::Option* Add(CLI::App* command, const std::string& flags, T& value,
                   const std::string& type, const std::string& text,
                   Values known = {}) {
    CLI::Option* option = command->add_option(flags, value, text);
    if (!type.empty()) option->type_name(type);
    using Single = typename SingleOf<T>::Type;
    if constexpr (std::is_integral_v<Single>)
      option->transform(rpc::WholeNumber(std::is_signed_v<Single>));
    values[option] = std::move(known);
    return option;
  }
  // Adds a positional that must be given.
  template <class T>
  CLI::Option* Word(CLI::App* command, const std::string& name, T& value,
                    const std::string& text, Values known = {}) {
    return Add(command, name, value, "", text, std::move(known))->required();
  }
  // Accepts these words alone.
  CLI::Option* Choice(CLI::Option* option, std::vector<std::string> words) {
    option->check(CLI::Validator(
        [words](std::string& word) {
          if (std::find(words.begin(), words.end(), word) != words.end())
            return std::string();
          return fmt::format("\"{}\": want {}{}{}", Printable(word),
                             words.size() == 1 ? "" : "one of ",
                             fmt::join(words, ", "), DidYouMean(word, words));
        },
        ""));
    values[option] = Words(std::move(words));
    return option;
  }
  void AddFormat(CLI::App* command) {
    Choice(Add(command, "-o,--output", options.output, "FORMAT",
               "table, wide, json, jsonl, yaml, csv or name"),
           FormatNames());
  }
  void AddOutput(CLI::App* command, bool watch) {
    AddFormat(command);
    if (!watch) return;
    command->add_flag("-w,--watch", options.watch, "print again and again");
    Add(command, "--interval", options.interval, "TIME",
        "time between two prints, as 2s or 500ms");
    Add(command, "--count", options.count, "N", "stop after so many prints");
  }
  void AddGlobal();
  void AddViews();
  void AddActions();
  void AddAccess();
  void AddPool();
  void AddSlurm();
  void AddLocal();
  void AddWhy();
  void AddBottleneck();
  void AddTop();
  void AddWait();
  void AddDoctor();
  void AddConvert();
  void AddContext();
  void AddEvents();
  void AddHealth();
  void AddReport();
  void AddIndex();
  void AddInspect();
  void AddSheet();
  void AddVocabulary(CLI::App* command);
  void AddReader(CLI::App* command);
  void AddState();
  void AddTrace();
  void AddHelp();
  // Returns the text that "help" prints. kInvalidArgument: there is no such
  // command.
  absl::StatusOr<std::string> HelpAsked() const;
  CommandNode Node(const CLI::App* command) const;
  // kInvalidArgument: a word, other than a file's name, that is not UTF-8 or is
  // longer than kMaxWordBytes.
  absl::Status CheckWords(const CLI::App& chosen) const;
};

}  // namespace leat::cli
