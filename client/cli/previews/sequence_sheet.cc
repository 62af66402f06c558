// SPDX-License-Identifier: Apache-2.0
//
// Neighbours have different colours: those of segment s are number s modulo
// their number.
#include "client/cli/previews/sequence_sheet.h"

#include <algorithm>
#include <array>
#include <vector>

#include "client/cli/base/text.h"
#include "client/cli/previews/canvas.h"
#include "core/html.h"
#include "fmt/format.h"

namespace leat::cli {
namespace {

constexpr std::array<Color, 6> kColors = {{{86, 140, 200},
                                           {236, 170, 92},
                                           {112, 178, 122},
                                           {214, 120, 130},
                                           {150, 128, 196},
                                           {204, 196, 96}}};
constexpr Color kPadding = {228, 228, 226};
constexpr int kStripWidth = 1000;
constexpr int kStripHeight = 20;
constexpr int kTextLines = 2;
// Parts of a strip in the page; the rest is one part.
constexpr size_t kMaxParts = 1024;

Color ColorOf(const Segment& segment, size_t number) {
  return segment.padding ? kPadding : kColors[number % kColors.size()];
}

// Column x shows the element in the middle of its part of the row.
void DrawStrip(const SequenceRow& row, uint64_t length, int x, int y,
               Canvas* canvas) {
  size_t number = 0;
  for (int u = 0; u < kStripWidth; ++u) {
    const uint64_t element = (2 * static_cast<uint64_t>(u) + 1) * length /
                             (2 * uint64_t{kStripWidth});
    while (number + 1 < row.segments.size() &&
           element >= row.segments[number + 1].begin)
      ++number;
    const Segment& segment = row.segments[number];
    for (int v = 0; v < kStripHeight; ++v) {
      const bool hatch = segment.padding && (u + v) % 6 == 0;
      canvas->Dot(x + u, y + v, hatch ? kPale : ColorOf(segment, number));
    }
  }
  if (row.bad)
    canvas->Frame(x - 2, y - 2, kStripWidth + 4, kStripHeight + 4, kRed);
}

// Returns the documents of a row in one line.
std::string DocumentsLine(const SequenceRow& row) {
  std::string line;
  for (const Segment& segment : row.segments) {
    if (segment.document.empty()) continue;
    line += fmt::format("{}{}", line.empty() ? "" : " | ", segment.document);
    if (line.size() > kStripWidth) break;  // more than a line has room for
  }
  return line;
}

// Returns the beginning of a row's text in lines of ASCII.
std::vector<std::string> TextLines(const SequenceRow& row) {
  const size_t room = static_cast<size_t>(kStripWidth / TextWidth(1, 1));
  std::string text;
  for (const Segment& segment : row.segments) {
    if (segment.padding) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " | ", segment.text);
    if (text.size() > 8 * room * kTextLines) break;
  }
  std::string ascii = CutToPixels(
      text, TextWidth(room * static_cast<size_t>(kTextLines), 1), 1);
  std::vector<std::string> lines;
  for (int i = 0; i < kTextLines; ++i) {
    lines.push_back(ascii.substr(0, room));
    ascii.erase(0, room);
  }
  return lines;
}

// The same colours, light enough for black text.
std::string Style() {
  std::string style =
      "body{font:14px/1.5 system-ui,sans-serif;margin:20px;max-width:1100px;"
      "color:#1c1c1e;background:#fafaf8}"
      "h1{font-size:20px;margin:0}h2{font-size:14px;margin:24px 0 4px}"
      ".detail,.documents{color:#6c6c70;margin:0 0 4px}"
      ".bad{color:#be1e1e}"
      ".strip{display:flex;height:20px;width:100%;overflow:hidden}"
      ".strip span{min-width:0}"
      ".text{white-space:pre-wrap;overflow-wrap:anywhere;margin:6px 0}"
      ".text span{padding:1px 0}"
      ".p{background:#e4e4e2}";
  for (size_t i = 0; i < kColors.size(); ++i) {
    const Color& c = kColors[i];
    style += fmt::format(".c{}{{background:rgb({},{},{})}}", i, c.r, c.g, c.b);
    style += fmt::format(".text .c{}{{background:rgb({},{},{})}}", i,
                         255 - (255 - c.r) / 3, 255 - (255 - c.g) / 3,
                         255 - (255 - c.b) / 3);
  }
  return style;
}

std::string ClassOf(const Segment& segment, size_t number) {
  return segment.padding ? "p" : fmt::format("c{}", number % kColors.size());
}

std::string RowHtml(const SequenceRow& row, uint64_t length) {
  std::string html =
      fmt::format("<h2{}>{}</h2><div class=\"strip\">",
                  row.bad ? " class=\"bad\"" : "", HtmlText(row.caption));
  for (size_t i = 0; i < std::min(row.segments.size(), kMaxParts); ++i) {
    const Segment& segment = row.segments[i];
    const uint64_t size =
        i + 1 == kMaxParts ? length - segment.begin : segment.size;
    html +=
        fmt::format("<span class=\"{}\" style=\"flex:{}\" title=\"{}\"></span>",
                    ClassOf(segment, i), size,
                    HtmlText(segment.padding ? "padding" : segment.document));
  }
  html += "</div><p class=\"text\">";
  for (size_t i = 0; i < row.segments.size(); ++i) {
    const Segment& segment = row.segments[i];
    if (segment.padding || segment.text.empty()) continue;
    html += fmt::format("<span class=\"{}\" title=\"{}\">{}</span> ",
                        ClassOf(segment, i), HtmlText(segment.document),
                        HtmlText(segment.text));
  }
  return html + "</p>\n";
}

}  // namespace

RgbImage DrawSequences(const Sequences& sequences, bool text) {
  const int line = LineHeight(1);
  const int lines = text ? kTextLines : 0;
  const int row_height =
      line + kStripHeight + kLineGap + (1 + lines) * line + kSheetGap;
  const int head = LineHeight(2) + line + kSheetGap;
  Canvas canvas(2 * kMargin + kStripWidth,
                2 * kMargin + head +
                    static_cast<int>(sequences.rows.size()) * row_height);
  canvas.Write(CutToPixels(sequences.title, kStripWidth, 2), kMargin, kMargin,
               2, kInk);
  canvas.Write(CutToPixels(sequences.detail, kStripWidth, 1), kMargin,
               kMargin + LineHeight(2), 1, kPale);
  int y = kMargin + head;
  for (const SequenceRow& row : sequences.rows) {
    canvas.Write(CutToPixels(row.caption, kStripWidth, 1), kMargin, y, 1,
                 row.bad ? kRed : kInk);
    DrawStrip(row, sequences.length, kMargin, y + line, &canvas);
    int under = y + line + kStripHeight + kLineGap;
    canvas.Write(CutToPixels(DocumentsLine(row), kStripWidth, 1), kMargin,
                 under, 1, kPale);
    if (text) {
      for (const std::string& each : TextLines(row))
        canvas.Write(each, kMargin, under += line, 1, kInk);
    }
    y += row_height;
  }
  return canvas.Take();
}

std::string SequencePage(const Sequences& sequences) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
      "<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
      "<title>{0}</title><style>{2}</style>\n<h1>{0}</h1>"
      "<p class=\"detail\">{1}</p>\n",
      HtmlText(sequences.title), HtmlText(sequences.detail), Style());
  for (const SequenceRow& row : sequences.rows)
    html += RowHtml(row, sequences.length);
  return html + "</html>\n";
}

std::string HtmlText(std::string_view text) {
  return EscapeHtml(Printable(text));
}

}  // namespace leat::cli
