// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/why.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client/cli/base/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

// Returns the result of a leat.v1.Draw; `why`: with the reason if it is
// unknown.
std::string DrawnText(const Json& draw, bool why) {
  if (const std::string text = Text(draw, "text"); !text.empty()) return text;
  const Json& values = Items(draw, "values");
  if (values.empty())
    return why ? fmt::format("? ({})", Text(draw, "unknown")) : "?";
  std::vector<std::string> texts;
  for (const Json& value : values)
    texts.push_back(
        fmt::format("{:.7g}", value.is_number() ? value.get<double>() : 0.0));
  if (texts.size() == 4)
    return fmt::format("y {}, x {}, {} x {} pixels", texts[0], texts[1],
                       texts[2], texts[3]);
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Returns "flip.horizontal", or the operator's name if the value has none.
std::string NameOfDraw(const Json& draw) {
  const std::string name = Text(draw, "name");
  return name.empty() ? Text(draw, "op") : name;
}

std::string DrawsText(const Json& draws) {
  std::string text;
  for (const Json& draw : draws)
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", NameOfDraw(draw),
                        DrawnText(draw, false));
  return text.empty() ? "-" : text;
}

// Returns where a record is in its file: "record 3 at 512"; "-" if it is a
// file.
std::string PlaceText(const Json& record) {
  std::string place;
  const auto add = [&](const char* field, const char* before) {
    if (!record.contains(field) || Text(record, field).empty()) return;
    place += fmt::format("{}{}{}", place.empty() ? "" : " ", before,
                         Text(record, field));
  };
  add("key", "");
  add("index", "record ");
  add("offset", "at ");
  return place.empty() ? "-" : place;
}

std::string PathText(const Json& record) {
  const std::string root = Text(record, "root");
  return fmt::format("{}{}{}", root, root.ends_with('/') ? "" : "/",
                     Text(record, "file"));
}

void AddRecord(const Json& record, Section* section) {
  const auto add = [&](const char* title, const char* field) {
    if (record.contains(field) && !Text(record, field).empty())
      section->facts.emplace_back(title, Text(record, field));
  };
  add("Source", "source");
  add("Class", "class_name");
  add("Sample", "sample");
  section->facts.emplace_back("File", PathText(record));
  add("Key", "key");
  add("Record in file", "index");
  add("Offset (bytes)", "offset");
  add("Size (bytes)", "size");
  section->facts.emplace_back(
      "Shard", fmt::format("{}, sample {} in it", Text(record, "shard"),
                           Text(record, "index_in_shard")));
}

// Lists the documents of a packed row.
Section DocumentsSection(const Json& documents) {
  Section section;
  const Json& listed = Items(documents, "listed");
  section.title = fmt::format("Documents ({})", Text(documents, "count"));
  section.table.columns = {{"AT", 0, false, true},
                           {"ELEMENTS", 0, false, true},
                           {"FROM", 1, false, true},
                           {"OF", 1, false, true},
                           {"SAMPLE", 0, false, true},
                           {"FILE"},
                           {"PLACE", 1}};
  for (const Json& each : listed)
    section.table.rows.push_back(
        {Text(each, "row_begin"), Text(each, "elements"), Text(each, "begin"),
         Text(each, "document_elements"), Text(each, "document"),
         Text(each, "file"), PlaceText(each)});
  const uint64_t count = Whole(documents, "count");
  if (listed.size() < count)
    section.lines.push_back({fmt::format(
        "and {} more; job.record(sample, first_document={}) lists them",
        count - listed.size(), listed.size())});
  return section;
}

std::vector<Section> OneRow(std::string title, const Json& row) {
  std::vector<Section> sections(1);
  sections[0].title = fmt::format("Row {} of {}", Text(row, "row"), title);
  if (!row.contains("record")) {
    sections[0].lines.push_back({"The row holds no sample."});
    return sections;
  }
  if (Text(row, "padding") == "true")
    sections[0].lines.push_back({"The row only fills the step."});
  const Json& record = At(row, "record");
  AddRecord(record, &sections[0]);
  if (record.contains("documents"))
    sections.push_back(DocumentsSection(At(record, "documents")));
  if (row.contains("partner")) {
    Section& partner = sections.emplace_back();
    partner.title = fmt::format("Partner: row {}", Text(row, "partner_row"));
    AddRecord(At(row, "partner"), &partner);
  }
  Section draws;
  draws.title = "Draws";
  draws.table.columns = {
      {"NODE", 0, false, true}, {"OPERATOR"}, {"FOR"}, {"DRAWN"}};
  for (const Json& draw : Items(row, "draws"))
    draws.table.rows.push_back({"%" + Text(draw, "node"), Text(draw, "op"),
                                Text(draw, "name"), DrawnText(draw, true)});
  if (draws.table.rows.empty())
    draws.lines.push_back({"The pipeline draws nothing at random."});
  sections.push_back(std::move(draws));
  return sections;
}

Section AllRows(std::string title, const Json& rows) {
  Section section;
  section.title = std::move(title);
  const bool mixed = std::ranges::any_of(rows, [](const Json& row) {
    return !Text(row, "record.source").empty();
  });
  const bool classes = std::ranges::any_of(rows, [](const Json& row) {
    return !Text(row, "record.class_name").empty();
  });
  const bool packed = std::ranges::any_of(rows, [](const Json& row) {
    return At(row, "record").contains("documents");
  });
  section.table.columns = {{"ROW", 0, false, true},
                           {"SAMPLE", 0, false, true},
                           {"FILE"},
                           {"PLACE", 1},
                           {"PARTNER", 2, false, true},
                           {"DRAWS"}};
  // The first columns after the row's number.
  std::vector<Column>& columns = section.table.columns;
  if (classes) columns.insert(columns.begin() + 1, Column{"CLASS", 1});
  if (mixed) columns.insert(columns.begin() + 1, Column{"SOURCE"});
  if (packed) section.table.columns.push_back({"DOCUMENTS", 0, false, true});
  for (const Json& row : rows) {
    const Json& record = At(row, "record");
    const bool empty = record.is_null();
    section.table.rows.push_back(
        {Text(row, "row"), empty ? "-" : Text(record, "sample"),
         empty ? "-" : Text(record, "file"), empty ? "-" : PlaceText(record),
         row.contains("partner_row") ? Text(row, "partner_row") : "-",
         Text(row, "padding") == "true" ? "padding"
                                        : DrawsText(Items(row, "draws"))});
    auto& cells = section.table.rows.back();
    if (classes) cells.insert(cells.begin() + 1, Text(record, "class_name"));
    if (mixed) cells.insert(cells.begin() + 1, Text(record, "source"));
    if (packed)
      cells.push_back(
          record.contains("documents") ? Text(record, "documents.count") : "-");
  }
  return section;
}

}  // namespace

View WhyView(const WhichRows& which, const Json& rows) {
  View view;
  view.data = {{"job", which.job},
               {"epoch", which.epoch},
               {"step", which.step},
               {"rows", rows}};
  for (const Json& row : rows)
    view.names.push_back(row.contains("record") ? PathText(At(row, "record"))
                                                : "-");
  std::string title = fmt::format("step {} of epoch {} of job {}", which.step,
                                  which.epoch, which.job);
  if (which.one && rows.size() == 1) {
    view.sections = OneRow(std::move(title), rows[0]);
    return view;
  }
  title.front() = 'S';
  if (!rows.empty())
    title +=
        fmt::format(", files below {}", Text(At(rows[0], "record"), "root"));
  view.sections = {AllRows(std::move(title), rows)};
  for (const Json& row : rows)
    for (const Json& draw : Items(row, "draws"))
      if (Items(draw, "values").empty() && Text(draw, "text").empty()) {
        view.note = "--row R says more about what is \"?\" here";
        return view;
      }
  return view;
}

}  // namespace leat::cli
