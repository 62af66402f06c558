// SPDX-License-Identifier: Apache-2.0
//
// CommandLine: the program's commands and options, as a CLI11 tree; the parsed
// values; and the same tree as plain data for the shells' completion and the
// manual pages.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/clusters/kubernetes_server.h"
#include "client/cli/clusters/slurm_scripts.h"
#include "client/cli/convert/convert.h"

namespace leat::cli {

struct Options {
  // Common to all commands.
  std::string coordinator, access_token_file, tls_ca, tls_cert, tls_key;
  std::string private_pid;  // "true": the only one
  std::string context;
  std::string timeout = "10s";
  std::string color = "auto";
  // For commands that print a View.
  std::string output = "table";
  bool watch = false;
  std::string interval = "2s";
  uint32_t count = 0;  // redraws; 0: unlimited
  // Each of these belongs to few commands.
  std::string kind, name, worker, level, shell, path;
  std::vector<std::string> names;  // for commands that take several
  std::string role, token_name, expires;
  std::optional<uint32_t> min_workers, max_workers;
  bool yes = false, local = false;
  std::string format, daemon_dir, state_folder;
  std::vector<std::string> reader_args;
  uint64_t read_records = 100;
  bool seek = false;      // for index
  std::string backup_to;  // for state backup
  std::string duration = "10s", trace = "trace.json";
  double ratio = 1;
  std::string since = "1m";
  std::string sort, condition, within = "5m", look_within = "30s";
  uint64_t epoch = 0, step = 0;
  std::optional<uint32_t> row;
  uint32_t rows = 32;
  int columns = 0;
  std::string field;
  std::string picture = "sheet.png";
  std::string vocabulary;
  std::vector<uint64_t> row_lengths;
  std::string source;  // of a mixture
  std::string report = "report.html";
  ConvertOptions convert;
  SlurmOptions slurm;
  KubernetesOptions kubernetes;
};

// The completions that a shell offers for a value.
struct Values {
  enum class Of { kNothing, kWords, kFiles, kNames, kNamesOfKind };
  Of of = Of::kNothing;
  std::vector<std::string> words;  // kWords
  std::string kind;  // kNames: "workers"; kNamesOfKind: the previous value
};

struct OptionNode {
  std::vector<std::string> flags;  // "-o", "--output"
  std::string text;
  bool takes_value = false;
  Values values;
  std::string type;  // of the value: "FORMAT"
  bool required = false;
};

struct PositionalNode {
  std::string name;  // "JOB"
  std::string text;
  bool required = false;
  Values values;
  bool repeats = false;  // also takes all following words
};

struct CommandNode {
  std::string name;
  std::string text;
  std::vector<OptionNode> options;
  std::vector<PositionalNode> positionals;
  std::vector<CommandNode> commands;
  std::string examples;  // one per line, indented
};

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();

  struct Parsed {
    std::string command;  // "" after `help` was printed
    std::string help;     // to print instead, exit code 0
  };
  // `args` are without the program's name. kInvalidArgument: says what was
  // expected, and similar words.
  absl::StatusOr<Parsed> Parse(std::vector<std::string> args);

  const Options& options() const;
  // Returns whether the flag was given on the command line. For use after
  // Parse.
  bool Given(std::string_view flag) const;
  // Returns the command that the line names, even if Parse rejects the rest; or
  // "".
  std::string Chosen() const;
  // Returns whether that command has the option.
  bool Takes(std::string_view flag) const;
  std::string Help() const;
  CommandNode Tree() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leat::cli
