// SPDX-License-Identifier: Apache-2.0
//
// HelpFormatter: help in 80 columns, with examples.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "client/cli/base/text.h"
#include "fmt/ranges.h"

namespace leat::cli {

// Width of the help, and the column where descriptions begin.
constexpr size_t kHelpWidth = 80, kHelpColumn = 28;

// Puts the examples between the description and the usage.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(const std::map<const CLI::App*, std::string>* examples)
      : examples_(examples) {
    column_width(kHelpColumn);
  }
  std::string make_description(const CLI::App* app) const override {
    const auto found = examples_->find(app);
    std::string text = Wrapped(app->get_description(), kHelpWidth) + "\n";
    if (found != examples_->end()) text += "\nExamples:\n" + found->second;
    return text + "\n";
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    usage.erase(0, usage.find_first_not_of('\n'));
    return usage;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return Wrapped(option->get_description(), kHelpWidth - kHelpColumn);
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    std::ostringstream out;
    CLI::detail::format_help(
        out, sub->get_display_name(true),
        Wrapped(sub->get_description(), kHelpWidth - kHelpColumn), kHelpColumn);
    return out.str();
  }

 private:
  static std::string Wrapped(const std::string& text, size_t width) {
    return fmt::format("{}", fmt::join(Wrap(text, width), "\n"));
  }

  const std::map<const CLI::App*, std::string>* examples_;  // not owned
};

}  // namespace leat::cli
