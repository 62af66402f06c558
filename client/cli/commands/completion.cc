// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/completion.h"

#include <algorithm>

#include "client/cli/base/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

std::string Join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// Escapes characters with a meaning in zsh's specifications.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\'' ? '"' : c;
  }
  return out;
}

std::vector<std::string> AllFlags(const CommandNode& root,
                                  const CommandNode& command) {
  std::vector<std::string> flags;
  for (const CommandNode* node : {&command, &root}) {
    for (const OptionNode& option : node->options) {
      for (const std::string& flag : option.flags) {
        if (std::find(flags.begin(), flags.end(), flag) == flags.end()) {
          flags.push_back(flag);
        }
      }
    }
  }
  return flags;
}

std::vector<std::string> CommandNames(const CommandNode& root) {
  std::vector<std::string> names;
  for (const CommandNode& command : root.commands) {
    names.push_back(command.name);
  }
  return names;
}

// Returns a bash statement that fills COMPREPLY.
std::string BashReply(const Values& values) {
  switch (values.of) {
    case Values::Of::kWords:
      return fmt::format("_leat_words {}", Quoted(Join(values.words)));
    case Values::Of::kFiles:
      return "_leat_files";
    case Values::Of::kNames:
      return fmt::format("_leat_offer {}", values.kind);
    case Values::Of::kNamesOfKind:
      return "_leat_offer \"${args[0]}\"";
    case Values::Of::kNothing:
      break;
  }
  return ":";
}

// Lists names of a kind of entity, in any POSIX shell.
constexpr std::string_view kNamesFunction = R"(_leat_names() {
  local kind=$1
  case $kind in
    sh|shard|shards) kind=datasets ;;
    contexts) command leat context list -o name 2>/dev/null; return ;;
  esac
  command leat get "$kind" -o name --timeout 1s 2>/dev/null
}
)";

// compgen -W expands its words, so it gets none of the service's names: one may
// hold a command. A name is offered as the shell must be given it.
constexpr std::string_view kBashHead = R"(# bash completion of leat
{names}_leat_words() {{
  local IFS=$' \t\n'
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}}
_leat_offer() {{
  local name
  while IFS= read -r name; do
    printf -v name %q "$name"
    if [[ $name == "$cur"* ]]; then COMPREPLY+=("$name"); fi
  done < <(_leat_names "$1")
}}
_leat_files() {{
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$cur"))
}}
_leat() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  # bash makes three words of --flag=value.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  local i word command=
  local -a args=()
  local valued=' {valued} '
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    case $word in
      -*)
        if [[ $valued == *" $word "* ]]; then
          ((i++))
          if [[ ${{COMP_WORDS[i]}} == = ]]; then ((i++)); fi
        fi ;;
      *) if [[ -z $command ]]; then command=$word; else args+=("$word"); fi ;;
    esac
  done
  COMPREPLY=()
)";

}  // namespace

std::string BashCompletion(const CommandNode& root) {
  std::vector<std::string> valued;
  std::string of_options, of_flags, of_positionals;
  const auto add_option = [&](const std::string& command,
                              const OptionNode& option) {
    if (!option.takes_value) return;
    for (const std::string& flag : option.flags) {
      if (std::find(valued.begin(), valued.end(), flag) == valued.end()) {
        valued.push_back(flag);
      }
      of_options += fmt::format("    {}:{}) {}; return ;;\n", command, flag,
                                BashReply(option.values));
    }
  };
  for (const CommandNode& command : root.commands) {
    for (const OptionNode& option : command.options) {
      add_option(command.name, option);
    }
    of_flags += fmt::format("      {}) _leat_words {} ;;\n", command.name,
                            Quoted(Join(AllFlags(root, command))));
    for (size_t i = 0; i < command.positionals.size(); ++i) {
      const PositionalNode& each = command.positionals[i];
      // The pattern matches this number and all larger ones.
      const std::string further =
          each.repeats ? fmt::format("|{}:[{}-9]|{}:[1-9][0-9]*", command.name,
                                     i, command.name)
                       : "";
      of_positionals += fmt::format("    {}:{}{}) {} ;;\n", command.name, i,
                                    further, BashReply(each.values));
    }
  }
  for (const OptionNode& option : root.options) add_option("*", option);
  std::string out =
      fmt::format(fmt::runtime(kBashHead), fmt::arg("names", kNamesFunction),
                  fmt::arg("valued", Join(valued)));
  out += "  case $command:$prev in\n" + of_options + "  esac\n";
  out += "  if [[ $cur == -* ]]; then\n    case $command in\n" + of_flags +
         fmt::format("      *) _leat_words {} ;;\n",
                     Quoted(Join(AllFlags(root, root)))) +
         "    esac\n    return\n  fi\n";
  out += "  case $command:${#args[@]} in\n" + of_positionals +
         fmt::format("    :0) _leat_words {} ;;\n",
                     Quoted(Join(CommandNames(root)))) +
         "  esac\n}\ncomplete -F _leat leat\n";
  return out;
}

namespace {

std::string ZshAction(const Values& values) {
  switch (values.of) {
    case Values::Of::kWords:
      return "(" + Join(values.words) + ")";
    case Values::Of::kFiles:
      return "_files";
    case Values::Of::kNames:
      return fmt::format("{{_leat_offer {}}}", values.kind);
    case Values::Of::kNamesOfKind:
      return "{_leat_offer $line[1]}";
    case Values::Of::kNothing:
      break;
  }
  return " ";
}

// Returns one or two specifications of _arguments: '(-o
// --output)'{-o,--output}'[..]'.
std::string ZshOption(const OptionNode& option) {
  const std::string rest = fmt::format(
      "[{}]{}", ZshText(option.text),
      option.takes_value ? ":value:" + ZshAction(option.values) : "");
  if (option.flags.size() == 1) return Quoted(option.flags[0] + rest);
  return fmt::format("'({})'{{{}}}{}", Join(option.flags),
                     fmt::join(option.flags, ","), Quoted(rest));
}

}  // namespace

std::string ZshCompletion(const CommandNode& root) {
  std::string out = "#compdef leat\n";
  out += kNamesFunction;
  out += R"zsh(_leat_offer() {
  local -a names
  names=(${(f)"$(_leat_names $1)"})
  compadd -a names
}
_leat() {
  local context state state_descr line
  typeset -A opt_args
  local -a commands globals
  globals=(
)zsh";
  for (const OptionNode& option : root.options) {
    out += "    " + ZshOption(option) + "\n";
  }
  out += "  )\n  commands=(\n";
  for (const CommandNode& command : root.commands) {
    out += "    " + Quoted(command.name + ":" + ZshText(command.text)) + "\n";
  }
  out += R"zsh(  )
  _arguments -C $globals '1:command:->command' '*::argument:->argument' && return
  case $state in
    command) _describe command commands ;;
    argument)
      case $line[1] in
)zsh";
  for (const CommandNode& command : root.commands) {
    out += fmt::format("        {}) _arguments $globals", command.name);
    for (const OptionNode& option : command.options) {
      const auto same = [&](const OptionNode& global) {
        return global.flags == option.flags;  // all commands have --help
      };
      if (std::any_of(root.options.begin(), root.options.end(), same)) continue;
      out += " \\\n          " + ZshOption(option);
    }
    for (size_t i = 0; i < command.positionals.size(); ++i) {
      const PositionalNode& each = command.positionals[i];
      out += " \\\n          " +
             Quoted(fmt::format("{}:argument:{}",
                                each.repeats ? "*" : std::to_string(i + 1),
                                ZshAction(each.values)));
    }
    out += " ;;\n";
  }
  out += R"zsh(      esac ;;
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _leat "$@"; else compdef _leat leat; fi
)zsh";
  return out;
}

namespace {

std::string FishValues(const Values& values) {
  switch (values.of) {
    case Values::Of::kWords:
      return " -a " + Quoted(Join(values.words));
    case Values::Of::kNames:
      return fmt::format(" -a '(__leat_names {})'", values.kind);
    case Values::Of::kNamesOfKind:
      return " -a '(__leat_names (__leat_argument 1))'";
    case Values::Of::kFiles:
      return " -F";
    case Values::Of::kNothing:
      break;
  }
  return "";
}

std::string FishOption(const OptionNode& option, std::string_view condition) {
  std::string out = fmt::format("complete -c leat{}", condition);
  for (const std::string& flag : option.flags) {
    out += flag.starts_with("--") ? " -l " + flag.substr(2)
                                  : " -s " + flag.substr(1);
  }
  out += " -d " + Quoted(option.text);
  if (option.takes_value) out += " -r" + FishValues(option.values);
  return out + "\n";
}

}  // namespace

std::string FishCompletion(const CommandNode& root) {
  std::vector<std::string> valued;
  std::string body;
  const auto note_valued = [&](const CommandNode& node) {
    for (const OptionNode& option : node.options) {
      if (!option.takes_value) continue;
      valued.insert(valued.end(), option.flags.begin(), option.flags.end());
    }
  };
  note_valued(root);
  for (const OptionNode& option : root.options) body += FishOption(option, "");
  for (const CommandNode& command : root.commands) {
    note_valued(command);
    body += fmt::format("complete -c leat -n '__leat_at 0' -a {} -d {}\n",
                        command.name, Quoted(command.text));
    const std::string seen =
        fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name);
    for (const OptionNode& option : command.options) {
      if (option.flags.front() != "-h") body += FishOption(option, seen);
    }
    for (size_t i = 0; i < command.positionals.size(); ++i) {
      const PositionalNode& each = command.positionals[i];
      body += fmt::format("complete -c leat -n '__leat_{} {} {}'{}\n",
                          each.repeats ? "from" : "at", i + 1, command.name,
                          FishValues(each.values));
    }
  }
  std::sort(valued.begin(), valued.end());
  valued.erase(std::unique(valued.begin(), valued.end()), valued.end());
  std::string out = fmt::format(R"(# fish completion of leat
function __leat_arguments
  set -l skip 0
  for token in (commandline -opc)[2..-1]
    if test $skip -eq 1
      set skip 0
    else if contains -- $token {}
      set skip 1
    else if not string match -q -- '-*' $token
      echo $token
    end
  end
end
function __leat_argument
  set -l all (__leat_arguments)
  echo $all[(math $argv[1] + 1)]
end
function __leat_at
  set -l all (__leat_arguments)
  test (count $all) -eq $argv[1]; and begin
    test (count $argv) -eq 1; or test "$all[1]" = "$argv[2]"
  end
end
function __leat_from
  set -l all (__leat_arguments)
  test (count $all) -ge $argv[1]; and test "$all[1]" = "$argv[2]"
end
function __leat_names
  set -l kind $argv[1]
  contains -- "$kind" sh shard shards; and set kind datasets
  if test "$kind" = contexts
    command leat context list -o name 2>/dev/null
    return
  end
  command leat get $kind -o name --timeout 1s 2>/dev/null
end
complete -c leat -f
)",
                                Join(valued));
  return out + body;
}

}  // namespace leat::cli
