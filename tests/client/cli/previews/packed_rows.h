// SPDX-License-Identifier: Apache-2.0
//
// Packed rows for tests of sheets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/base/environment.h"
#include "client/cli/previews/sequences.h"
#include "gtest/gtest.h"

namespace leat::cli {

template <class T>
Field FieldOf(std::string name, std::string dtype, std::vector<int64_t> shape,
              const std::vector<T>& values) {
  Field field{std::move(name), std::move(dtype), std::move(shape), {}};
  const auto bytes = std::as_bytes(std::span<const T>(values));
  field.data.assign(bytes.begin(), bytes.end());
  return field;
}

// Two rows of six tokens, the segments under another name than usual.
inline Rows PackedRows() {
  Rows rows;
  rows.job_json = R"({"spec": {"name": "llm", "pipeline": {
      "nodes": [{"op": "readers.tokens"},
                {"op": "pack", "inputs": [{"node": 0, "output": 0}]}],
      "outputs": [{"name": "parts", "ref": {"node": 1, "output": 1}},
                  {"name": "ids", "ref": {"node": 1, "output": 0}}]}},
      "dataset": {"name": "web"}, "plan_hash": "AAECAwQFBgcICQ=="})";
  rows.step = 3;
  rows.steps_per_epoch = 9;
  rows.batch = 8;
  rows.samples = {17, 4};
  rows.fields = {FieldOf<int32_t>("parts", "int32", {2, 6},
                                  {1, 1, 1, 2, 2, 0, 1, 1, 1, 1, 1, 1}),
                 FieldOf<uint16_t>("ids", "uint16", {2, 6},
                                   {0, 1, 2, 0, 60'000, 9, 1, 1, 1, 1, 1, 1})};
  rows.record = [](uint64_t sample) -> absl::StatusOr<std::string> {
    if (sample != 17) return "{}";
    return R"json({"documents": {"count": 2, "first": 0, "listed": [
      {"document": 3, "file": "a<b>.bin", "key": "", "index": 3, "begin": 7,
       "elements": 3, "row_begin": 0, "document_elements": 20},
      {"document": 9, "file": "c.bin", "key": "k", "begin": 0,
       "elements": 2, "row_begin": 3, "document_elements": 2}]}})json";
  };
  return rows;
}

inline constexpr const char* kVocabulary = R"json({"model": {"vocab":
    {"Hi": 0, "Ġ<there>": 1, "\u001b[31m": 2}},
    "decoder": {"type": "ByteLevel"}})json";

inline Sequences Made(const Vocabulary* vocabulary) {
  auto made = SequencesOf(PackedRows(), "", vocabulary);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

}  // namespace leat::cli
