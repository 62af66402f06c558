// SPDX-License-Identifier: Apache-2.0
//
// The printer renders a View in one of the formats, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/cli/base/view.h"

namespace leat::cli {

struct PrintStyle {
  Format format = Format::kTable;
  bool color = false;
  size_t width = 0;  // columns of the terminal; 0: no limit
  // Continues an earlier output with the same columns: csv and wide print no
  // titles again, yaml begins a document.
  bool further = false;
};

struct Printed {
  std::string text;
  // Titles of columns that did not fit into the width, without those only for
  // `wide`.
  std::vector<std::string> dropped;
};

// Never fails: text that is not UTF-8 is escaped (table, wide, csv, name) or
// replaced (json, jsonl, yaml). In no format can a character control a
// terminal.
Printed Print(const View& view, const PrintStyle& style);

// Returns the names of the formats in the order of the enumerators.
const std::vector<std::string>& FormatNames();
// REQUIRES: one of FormatNames().
Format FormatOf(std::string_view name);

}  // namespace leat::cli
