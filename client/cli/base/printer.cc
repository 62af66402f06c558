// SPDX-License-Identifier: Apache-2.0
//
// Widths are computed in four steps: columns only for `wide` are dropped; a
// long text counts as at most a third of the terminal; while the rest does not
// fit, the droppable column with the largest number is dropped; then the widest
// columns get narrower, or long texts take the remaining width. "…" shows where
// a text was cut.
#include "client/cli/base/printer.h"

#include <algorithm>

#include "client/cli/base/text.h"
#include "fmt/format.h"
#include "yaml-cpp/yaml.h"

namespace leat::cli {
namespace {

constexpr size_t kGap = 2;    // columns between cells
constexpr size_t kLong = 24;  // of a text, if columns are dropped
constexpr size_t kLeast = 6;  // of a narrowed column
constexpr size_t kRoom = 16;  // minimum for a value beside its name

std::string_view Escape(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "\x1b[32m";
    case Tone::kWarn:
      return "\x1b[33m";
    case Tone::kBad:
      return "\x1b[1;31m";
    case Tone::kDim:
      return "\x1b[2m";
    case Tone::kBold:
      return "\x1b[1m";
    case Tone::kPlain:
      break;
  }
  return "";
}

std::string Colored(std::string_view text, Tone tone, bool color) {
  const std::string_view escape = color ? Escape(tone) : "";
  if (escape.empty() || text.empty()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape, text);
}

// Returns the indices of the shown columns; adds those dropped to `dropped`.
std::vector<size_t> Shown(const Table& table, const std::vector<size_t>& widths,
                          const PrintStyle& style,
                          std::vector<std::string>& dropped) {
  std::vector<size_t> shown;
  size_t total = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].wide_only && style.format != Format::kWide) continue;
    shown.push_back(i);
    total += widths[i] + kGap;
  }
  if (style.width == 0 || style.format == Format::kWide) return shown;
  while (total > style.width + kGap) {
    const auto last =
        std::max_element(shown.begin(), shown.end(), [&](size_t a, size_t b) {
          return table.columns[a].drop < table.columns[b].drop;
        });
    if (last == shown.end() || table.columns[*last].drop == 0) break;
    dropped.push_back(table.columns[*last].title);
    total -= widths[*last] + kGap;
    shown.erase(last);
  }
  return shown;
}

// Narrows the widest shown columns until all fit, or widens those that are
// narrower than `wanted` until the room is used.
void Fit(const std::vector<size_t>& shown, const std::vector<size_t>& wanted,
         size_t room, std::vector<size_t>& widths) {
  size_t total = 0;
  for (const size_t i : shown) total += widths[i] + kGap;
  for (; total > room + kGap; --total) {
    const size_t widest = *std::max_element(
        shown.begin(), shown.end(),
        [&](size_t a, size_t b) { return widths[a] < widths[b]; });
    if (widths[widest] <= kLeast) return;
    --widths[widest];
  }
  for (const size_t i : shown) {
    const size_t more = std::min(room + kGap - total, wanted[i] - widths[i]);
    widths[i] += more;
    total += more;
  }
}

void AppendTable(const Table& table, const PrintStyle& style, Printed& out) {
  if (table.rows.empty()) return;
  std::vector<std::vector<std::string>> texts;
  std::vector<size_t> widths;
  for (const Column& column : table.columns) {
    widths.push_back(DisplayWidth(column.title));
  }
  for (const std::vector<Cell>& row : table.rows) {
    texts.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      texts.back().push_back(row[i].text.empty() ? "-"
                                                 : Printable(row[i].text));
      widths[i] = std::max(widths[i], DisplayWidth(texts.back()[i]));
    }
  }
  const bool cut = style.width > 0 && style.format != Format::kWide;
  const std::vector<size_t> wanted = widths;
  if (cut)
    for (size_t& width : widths)
      width = std::min(width, std::max(kLong, style.width / 3));
  const std::vector<size_t> shown = Shown(table, widths, style, out.dropped);
  const size_t limit = style.width > 0 ? style.width : std::string::npos;
  if (cut && !shown.empty()) Fit(shown, wanted, style.width, widths);
  const auto append_row = [&](auto text_of, auto tone_of) {
    size_t used = 0;
    for (size_t k = 0; k < shown.size(); ++k) {
      const size_t i = shown[k];
      if (cut && used >= style.width) break;
      std::string text = text_of(i);
      if (cut)
        text = (i == 0 ? ClipMiddle : Clip)(
            text, std::min(widths[i], style.width - used));
      const size_t width = DisplayWidth(text);
      const std::string pad(widths[i] - std::min(widths[i], width), ' ');
      const bool right = table.columns[i].right;
      const bool last = k + 1 == shown.size() ||
                        (cut && used + widths[i] + kGap >= style.width);
      out.text += right && used + widths[i] <= limit ? pad : "";
      out.text += Colored(text, tone_of(i), style.color);
      if (!last) out.text += (right ? "" : pad) + std::string(kGap, ' ');
      used += widths[i] + kGap;
    }
    out.text += '\n';
  };
  if (!style.further)
    append_row([&](size_t i) { return table.columns[i].title; },
               [](size_t) { return Tone::kDim; });
  for (size_t r = 0; r < texts.size(); ++r) {
    append_row([&](size_t i) { return texts[r][i]; },
               [&](size_t i) { return table.rows[r][i].tone; });
  }
}

void AppendFacts(const Section& section, const PrintStyle& style,
                 Printed& out) {
  size_t widest = 0;
  for (const auto& [key, cell] : section.facts) {
    widest = std::max(widest, DisplayWidth(key));
  }
  for (const auto& [key, cell] : section.facts) {
    const std::string text = cell.text.empty() ? "-" : Printable(cell.text);
    size_t indent = widest + kGap;
    size_t room = style.width - std::min(style.width, indent);  // 0: no bound
    // If long names leave little room, a value is printed below its name.
    const bool below =
        style.width > 0 && room < kRoom && DisplayWidth(text) > room;
    out.text += Colored(key, Tone::kDim, style.color);
    out.text += below ? "\n" : std::string(indent - DisplayWidth(key), ' ');
    if (below) {
      indent = kGap;
      room = std::max(kRoom, style.width - std::min(style.width, indent));
    }
    bool first = !below;
    for (const std::string& part : Wrap(text, room)) {
      if (!first) out.text += std::string(indent, ' ');
      out.text += Colored(part, cell.tone, style.color) + '\n';
      first = false;
    }
  }
}

void AppendLines(const Section& section, const PrintStyle& style,
                 Printed& out) {
  for (const Line& line : section.lines) {
    const auto indent = static_cast<size_t>(line.indent);
    const auto hang = static_cast<size_t>(line.hang);
    const size_t taken = indent + hang;
    const size_t room =
        style.width == 0
            ? 0
            : std::max<size_t>(8, style.width - std::min(style.width, taken));
    bool first = true;
    for (const std::string& part : Wrap(Printable(line.text), room)) {
      out.text += std::string(indent + (first ? 0 : hang), ' ');
      out.text += Colored(part, line.tone, style.color) + '\n';
      first = false;
    }
  }
}

// Escapes characters that JSON may contain, but that control a terminal.
std::string EscapeJson(std::string_view json) {
  std::string out;
  for (size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<uint8_t>(json[i]);
    const auto next =
        static_cast<uint8_t>(i + 1 < json.size() ? json[i + 1] : 0);
    if (byte == 0x7F) {
      out += "\\u007f";
    } else if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) {
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out += json[i];
    }
  }
  return out;
}

std::string ToJson(const Json& data) {
  return EscapeJson(data.dump(2, ' ', false, Json::error_handler_t::replace)) +
         '\n';
}

// Returns one line; if the data is a list, one line per item.
std::string ToJsonLines(const Json& data) {
  const auto line = [](const Json& json) {
    return EscapeJson(
               json.dump(-1, ' ', false, Json::error_handler_t::replace)) +
           '\n';
  };
  if (!data.is_object() || data.size() != 1 || !data.begin()->is_array())
    return line(data);
  std::string lines;
  for (const Json& item : *data.begin()) lines += line(item);
  return lines;
}

// Quotes as RFC 4180 does; lines end with line feeds. No value contains a line
// end: it is escaped.
std::string CsvCell(std::string_view text) {
  const std::string cell = Printable(text);
  if (cell.find_first_of("\",") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

// Prints facts and tables; an empty line separates sections.
std::string ToCsv(const View& view, bool titles) {
  std::string csv;
  const auto append = [&csv](const auto& cells, const auto& text_of) {
    bool first = true;
    for (const auto& cell : cells) {
      csv += (first ? "" : ",") + CsvCell(text_of(cell));
      first = false;
    }
    csv += '\n';
  };
  for (const Section& section : view.sections) {
    if (section.facts.empty() && section.table.rows.empty()) continue;
    if (!csv.empty()) csv += '\n';
    for (const auto& [key, cell] : section.facts)
      append(std::vector<std::string>{key, cell.text},
             [](const std::string& text) { return text; });
    if (section.table.rows.empty()) continue;
    if (titles)
      append(section.table.columns,
             [](const Column& column) { return column.title; });
    for (const std::vector<Cell>& row : section.table.rows)
      append(row, [](const Cell& cell) { return cell.text; });
  }
  return csv;
}

// Returns true if a YAML reader parses `text`, unquoted, as this very string.
bool PlainInYaml(std::string_view text) {
  static constexpr std::string_view kWords[] = {"y",    "n",   "yes",  "no",
                                                "on",   "off", "true", "false",
                                                "null", "nan", "inf",  "none"};
  if (text.empty() || text.size() > 64) return false;
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (!letter(text[0])) return false;
  std::string lower;
  for (const char c : text) {
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '.' && c != '-') {
      return false;
    }
    lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  return std::find(std::begin(kWords), std::end(kWords), lower) ==
         std::end(kWords);
}

void EmitYaml(const Json& value, YAML::Emitter& out) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, item] : value.items()) {
      out << YAML::Key << Printable(key) << YAML::Value;
      EmitYaml(item, out);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    if (value.empty()) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const Json& item : value) EmitYaml(item, out);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (!PlainInYaml(text)) out << YAML::DoubleQuoted;
    out << text;
  } else {
    out << value.dump();
  }
}

std::string ToYaml(const Json& data) {
  // The JSON round trip replaces text that is not UTF-8.
  const Json clean =
      Json::parse(ToJson(data), nullptr, /*allow_exceptions=*/false);
  YAML::Emitter out;
  EmitYaml(clean, out);
  return EscapeJson(out.c_str()) + '\n';  // YAML knows these escapes too
}

Printed ToText(const View& view, const PrintStyle& style) {
  Printed out;
  for (const Section& section : view.sections) {
    if (section.facts.empty() && section.lines.empty() &&
        section.table.rows.empty()) {
      continue;
    }
    if (!out.text.empty()) out.text += '\n';
    if (!section.title.empty()) {
      const std::string title =
          style.width > 0 ? Clip(section.title, style.width) : section.title;
      out.text += Colored(title, Tone::kBold, style.color) + '\n';
    }
    AppendFacts(section, style, out);
    AppendLines(section, style, out);
    AppendTable(section.table, style, out);
  }
  return out;
}

}  // namespace

Printed Print(const View& view, const PrintStyle& style) {
  switch (style.format) {
    case Format::kJson:
      return {ToJson(view.data), {}};
    case Format::kJsonl:
      return {ToJsonLines(view.data), {}};
    case Format::kYaml:
      return {(style.further ? "---\n" : "") + ToYaml(view.data), {}};
    case Format::kCsv:
      return {ToCsv(view, !style.further), {}};
    case Format::kName: {
      Printed out;
      for (const std::string& name : view.names) {
        out.text += Printable(name) + '\n';
      }
      return out;
    }
    case Format::kTable:
    case Format::kWide:
      break;
  }
  return ToText(view, style);
}

const std::vector<std::string>& FormatNames() {
  static const auto& names = *new std::vector<std::string>{
      "table", "wide", "json", "jsonl", "yaml", "csv", "name"};
  return names;
}

Format FormatOf(std::string_view name) {
  const std::vector<std::string>& names = FormatNames();
  const auto found = std::find(names.begin(), names.end(), name);
  return static_cast<Format>(found - names.begin());
}

}  // namespace leat::cli
