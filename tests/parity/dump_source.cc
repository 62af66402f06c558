// SPDX-License-Identifier: Apache-2.0
//
// dump_source READER NAME=TEXT... NAME:=TEXT|TEXT... NAME?=true|false...:
// indexes a dataset and prints, for each sample, a line of its fields: the
// shape's sizes where the type leaves them open, and the SHA-256 of the bytes.
// It is for comparisons with other readers of the same files; errors of samples
// are lines "error ...".
#include <cstdio>
#include <string>

#include "core/hash.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

bool AddArgument(std::string_view text, Node* reader) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  std::string_view value = text.substr(equals + 1);
  if (text[equals - 1] == '?') {
    reader->args[std::string(text.substr(0, equals - 1))] = value == "true";
    return value == "true" || value == "false";
  }
  if (text[equals - 1] != ':') {
    reader->args[std::string(text.substr(0, equals))] = std::string(value);
    return true;
  }
  std::vector<std::string> list;
  while (true) {
    const size_t bar = value.find('|');
    list.emplace_back(value.substr(0, bar));
    if (bar == std::string_view::npos) break;
    value.remove_prefix(bar + 1);
  }
  reader->args[std::string(text.substr(0, equals - 1))] = std::move(list);
  return true;
}

absl::Status Dump(const Node& reader) {
  const SourceLimits limits;
  ASSIGN_OR_RETURN(const BuiltIndex index, BuildIndex(reader, limits));
  ASSIGN_OR_RETURN(const auto source, OpenSource(reader, index.blob, limits));
  for (uint64_t i = 0; i < source->num_samples(); ++i) {
    const absl::StatusOr<StoredSample> sample = source->Read(i);
    std::string line = fmt::format("{}", i);
    if (!sample.ok()) {
      fmt::print("{} error {}\n", line, Message(sample.status()));
      continue;
    }
    for (const StoredField& field : sample->fields) {
      const std::string_view bytes(
          reinterpret_cast<const char*>(field.bytes.data()),
          field.bytes.size());
      line += fmt::format(" [{}]{}", fmt::join(field.shape, ","),
                          ToHex(HashOf(bytes)));
    }
    fmt::print("{}\n", line);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr,
            "usage: %s READER NAME=TEXT NAME:=TEXT|TEXT NAME?=true ...\n",
            argv[0]);
    return 2;
  }
  leat::Node reader{.op = argv[1], .inputs = {}, .args = {}};
  for (int i = 2; i < argc; ++i) {
    if (leat::worker::AddArgument(argv[i], &reader)) continue;
    fprintf(stderr, "%s: want NAME=TEXT, NAME:=TEXT|TEXT, NAME?=true\n",
            argv[i]);
    return 2;
  }
  const absl::Status status = leat::worker::Dump(reader);
  if (status.ok()) return 0;
  fprintf(stderr, "%s\n", std::string(leat::Message(status)).c_str());
  return 1;
}
