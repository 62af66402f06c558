// SPDX-License-Identifier: Apache-2.0
//
// packing_bench FOLDER: rows of tokens through a Source, one thread;
// measured_cases.h describes the protocol.
//
// FOLDER has two files of Megatron's with the .idx beside each, which
// token_files.py makes: rows.bin, whose documents are of one length, and
// web.bin, whose documents have the lengths of texts of the web. The cases read
// the documents of rows.bin, and the rows of kLength tokens that web.bin makes
// when it is packed, with segments and positions; in order and shuffled.
//
// It prints how full the packed rows are ("fill fit 0.99980 of 15000 rows"), and
// writes the shuffled order of rows.bin to FOLDER/order, as uint64.
#include <cstdint>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/arrangement.h"
#include "core/random/permutation.h"
#include "core/status.h"
#include "fmt/format.h"
#include "tests/bench/measured_cases.h"
#include "worker/source/arranged/arrange.h"
#include "worker/source/arranged/arranged_source.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

constexpr uint32_t kLength = 2048;
constexpr size_t kBatch = 64;  // rows that live at a time

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "packing_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T ValueOrFail(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(std::string(Message(value.status())));
  return *std::move(value);
}

// A token file, listed and opened.
struct Tokens {
  explicit Tokens(const std::string& path)
      : reader{
            "readers.tokens", {}, {{"files", std::vector<std::string>{path}}}} {
    const BuiltIndex index = ValueOrFail(BuildIndex(reader, {}));
    base.name = index.name;
    base.reader = CanonicalText(reader);
    base.fingerprint = index.fingerprint;
    base.content = index.content;
    base.shards = index.shards;
    base.types = index.types;
    source = ValueOrFail(OpenSource(reader, index.blob, {}));
  }

  std::shared_ptr<const Source> Packed(PackHow how) const {
    Arrangement arrangement;
    arrangement.pack = {.packing = {.how = how, .length = kLength},
                        .outputs = {0},
                        .fill_values = {0}};
    const BuiltIndex index = ValueOrFail(Arrange(
        arrangement, {.base = base, .reader = reader, .source = *source}, {}));
    return ValueOrFail(OpenArranged(index.blob, {source, base.fingerprint},
                                    index.fingerprint));
  }

  Node reader;
  DatasetInfo base;
  std::shared_ptr<const Source> source;
};

std::vector<uint64_t> OrderOf(uint64_t rows, bool shuffled) {
  std::vector<uint64_t> order(rows);
  if (shuffled)
    Permutation(rows, 7).Map(0, order);
  else
    std::iota(order.begin(), order.end(), uint64_t{0});
  return order;
}

void AddCases(const std::string& name,
              const std::shared_ptr<const Source>& source,
              std::vector<MeasuredCase>* cases) {
  for (const bool shuffled : {false, true}) {
    const std::vector<uint64_t> order =
        OrderOf(source->num_samples(), shuffled);
    auto batch = std::make_shared<std::vector<StoredSample>>(kBatch);
    cases->push_back({name + (shuffled ? ", shuffled" : ""), [=] {
                        size_t next = 0;
                        for (const uint64_t row : order)
                          (*batch)[next++ % kBatch] =
                              ValueOrFail(source->Read(row));
                        return order.size();
                      }});
  }
}

// Returns the share of a packing's elements that are no padding.
double FillOf(const Source& rows) {
  uint64_t real = 0;
  for (uint64_t row = 0; row < rows.num_samples(); ++row) {
    const StoredSample stored = ValueOrFail(rows.Read(row));
    const std::span<const std::byte> segments = stored.fields[1].bytes;
    const auto* const begin = reinterpret_cast<const int32_t*>(segments.data());
    for (uint32_t i = 0; i < kLength; ++i) real += begin[i] > 0;
  }
  return static_cast<double>(real) /
         static_cast<double>(kLength * rows.num_samples());
}

int Run(const std::string& folder) {
  std::vector<MeasuredCase> cases;
  const std::shared_ptr<const Source> documents =
      Tokens(folder + "/rows.bin").source;
  AddCases("token rows", documents, &cases);
  const std::vector<uint64_t> order = OrderOf(documents->num_samples(), true);
  std::ofstream(folder + "/order", std::ios::binary)
      .write(reinterpret_cast<const char*>(order.data()),
             static_cast<std::streamsize>(8 * order.size()));
  const Tokens web(folder + "/web.bin");
  for (const PackHow how : {PackHow::kFit, PackHow::kCut}) {
    const std::string_view name = how == PackHow::kFit ? "fit" : "cut";
    const std::shared_ptr<const Source> rows = web.Packed(how);
    std::printf("fill %s %.5f of %llu rows\n", std::string(name).c_str(),
                FillOf(*rows),
                static_cast<unsigned long long>(rows->num_samples()));
    AddCases(fmt::format("packed rows, {}", name), rows, &cases);
  }
  return MeasureCases(cases);
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  if (argc == 2) return leat::worker::Run(argv[1]);
  std::fprintf(stderr, "usage: packing_bench FOLDER\n");
  return 2;
}
