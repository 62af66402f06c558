// SPDX-License-Identifier: Apache-2.0
//
// The canonical text of a graph, with one line per node and output:
//
//   0 readers.image_folder path="/data" repeat=1
//   1 decode (0:0) orient=true output="rgb"
//   2 normalize (1:0) mean=floats[0x1.fp+6] …
//   output "image" 2:0
//
// A list that is too long for a message is printed as its digest. An argument
// that is newer than its operator is not printed at its default.
//
// Every type of value has its own form, and text is quoted and escaped, so that
// two different graphs never have the same text.
#include "core/pipeline/graph.h"

#include <string_view>

#include "core/pipeline/canonical.h"
#include "core/pipeline/operators.h"
#include "fmt/format.h"

namespace leat {
namespace {

struct ValueWriter {
  std::string* out;
  void operator()(bool value) const { *out += value ? "true" : "false"; }
  void operator()(int64_t value) const { *out += fmt::format("{}", value); }
  void operator()(double value) const { AppendDouble(value, out); }
  void operator()(const std::string& value) const { AppendQuoted(value, out); }
  void operator()(const std::vector<int64_t>& values) const {
    *out += "ints[";
    for (size_t i = 0; i < values.size(); ++i)
      *out += fmt::format("{}{}", i ? "," : "", values[i]);
    out->push_back(']');
  }
  void operator()(const std::vector<double>& values) const {
    *out += "floats[";
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) out->push_back(',');
      AppendDouble(values[i], out);
    }
    out->push_back(']');
  }
  void operator()(const std::vector<std::string>& values) const {
    *out += "texts[";
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) out->push_back(',');
      AppendQuoted(values[i], out);
    }
    out->push_back(']');
  }
  void operator()(const NodeRef& ref) const {
    *out += fmt::format("({}:{})", ref.node, ref.output);
  }
  // Prints only the first entries: graphs are printed, stored and compared
  // often.
  void operator()(const LongList& list) const {
    *out += fmt::format("{}{{count={} sha256={} first=",
                        list.kind == LongList::Kind::kTexts ? "texts" : "ints",
                        list.count, ToHex(list.digest));
    (*this)(list.first);
    out->push_back('}');
  }
};

// Names are untrusted input: they are quoted unless they are plain.
void AppendName(std::string_view name, std::string* out) {
  bool plain = !name.empty();
  for (const char c : name)
    plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9') || c == '_' || c == '.');
  if (plain)
    *out += name;
  else
    AppendQuoted(name, out);
}

bool IsLaterDefault(const OperatorInfo* info, std::string_view name,
                    const Value& value) {
  if (info == nullptr) return false;
  for (const ArgInfo& arg : info->args)
    if (arg.added_later && arg.name == name) return arg.default_value == value;
  return false;
}

}  // namespace

std::string CanonicalText(const Node& node) {
  const OperatorInfo* info = FindOperator(node.op);
  std::string text;
  AppendName(node.op, &text);
  for (const NodeRef& input : node.inputs)
    text += fmt::format(" ({}:{})", input.node, input.output);
  for (const auto& [name, value] : node.args) {
    if (IsLaterDefault(info, name, value)) continue;
    text.push_back(' ');
    AppendName(name, &text);
    text.push_back('=');
    std::visit(ValueWriter{&text}, value);
  }
  return text;
}

std::string CanonicalText(const Graph& graph) {
  std::string text;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    text += fmt::format("{} {}\n", i, CanonicalText(graph.nodes[i]));
  for (const auto& [name, ref] : graph.outputs) {
    text += "output ";
    AppendQuoted(name, &text);
    text += fmt::format(" {}:{}\n", ref.node, ref.output);
  }
  return text;
}

}  // namespace leat
