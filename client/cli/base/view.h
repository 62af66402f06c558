// SPDX-License-Identifier: Apache-2.0
//
// View: what a command shows, independent of the format. Every command fills
// one, and one printer prints it in every format, so no command can lack a
// format.
//
// Cells, facts and lines hold the service's own text: the printer escapes it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/base/fields.h"

namespace leat::cli {

// How a text is highlighted if colours are on.
enum class Tone { kPlain, kGood, kWarn, kBad, kDim, kBold };

struct Column {
  std::string title;  // with its unit: "RATE(rows/s)"
  // When the terminal is too narrow, columns with the largest number are
  // dropped first; those with 0 never.
  int drop = 0;
  bool wide_only = false;
  bool right = false;  // right-aligned: numbers
};

struct Cell {
  Cell(std::string text, Tone tone = Tone::kPlain)  // NOLINT: a cell is a text
      : text(std::move(text)), tone(tone) {}
  Cell(const char* text) : text(text) {}  // NOLINT: as above
  std::string text;
  Tone tone = Tone::kPlain;
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // each has a cell for every column
};

struct Line {
  std::string text;  // broken at spaces if it is too long
  Tone tone = Tone::kPlain;
  int indent = 0;
  int hang = 0;  // extra indent of continuation lines
};

// Printed in this order; empty parts are left out.
struct Section {
  std::string title;
  std::vector<std::pair<std::string, Cell>> facts;  // "Seed", "7"
  std::vector<Line> lines;
  Table table;
};

struct View {
  Json data;                       // -o json, jsonl, yaml: stable names
  std::vector<std::string> names;  // -o name
  std::vector<Section> sections;   // -o table, wide and csv
  // For people, on stderr: "no workers; start one with ...".
  std::string note;
};

enum class Format { kTable, kWide, kJson, kJsonl, kYaml, kCsv, kName };

}  // namespace leat::cli
