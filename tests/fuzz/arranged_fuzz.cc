// SPDX-License-Identifier: Apache-2.0
//
// Arrangements: an index that a coordinator sends, and a .npy file of numbers, or
// of weights. Samples of an index that opens are those of its base, a file that
// is accepted has each number once, or a weight for each sample.
#include <memory>
#include <set>

#include "core/status.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "worker/source/arranged/arrange.h"
#include "worker/source/arranged/arranged_source.h"
#include "worker/source/arranged/numbers.h"
#include "worker/source/arranged/packed_index_writer.h"
#include "worker/source/arranged/packing_message.h"
#include "worker/source/arranged/sample_groups.h"
#include "worker/source/index_blob.h"

namespace leat::worker::arranged_fuzz {
namespace {

constexpr int64_t kSamples = 1000;

struct Base {
  Base() {
    const auto index = BuildIndex(reader, {});
    fuzz::Require(index.ok());
    info.fingerprint = index->fingerprint;
    info.shards = index->shards;
    auto opened = OpenSource(reader, index->blob, {});
    fuzz::Require(opened.ok());
    source = *std::move(opened);
  }

  const Node reader{.op = "readers.external",
                    .inputs = {},
                    .args = {{"num_samples", kSamples},
                             {"types", std::vector<std::string>{"encoded"}},
                             {"name", std::string("fed")}}};
  DatasetInfo info;
  std::shared_ptr<const Source> source;
};

const Base& TheBase() {
  static const Base& base = *new Base;
  return base;
}

void RunIndex(std::string_view bytes) {
  const Base& base = TheBase();
  const auto source =
      OpenArranged(bytes, {base.source, base.info.fingerprint}, {});
  if (!source.ok()) return fuzz::Require(!Message(source.status()).empty());
  const uint64_t samples = (*source)->num_samples();
  for (uint64_t sample = 0; sample < samples; sample += 1 + samples / 100)
    fuzz::Require((*source)->RecordOf(sample) < (*source)->num_records());
  if (samples > 0) fuzz::Require(!(*source)->Describe(samples - 1).empty());
}

void RunFile(std::string_view bytes) {
  const NamedFile file(bytes);
  std::set<uint64_t> seen;
  const absl::Status status = ForEachNumber(
      {.uri = file.path()}, "fed", kSamples, {}, [&](uint64_t number) {
        fuzz::Require(number < kSamples);
        fuzz::Require(seen.insert(number).second);
        return absl::OkStatus();
      });
  fuzz::Require(status.ok() != seen.empty());
  const auto weights = ReadWeights({.uri = file.path()}, "fed", kSamples, {});
  fuzz::Require(!weights.ok() || weights->size() == kSamples);
}

void Run(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  RunIndex(bytes);
  RunFile(bytes);
}

std::string NumbersOf(const std::string& dict, const std::string& data) {
  std::string header = dict;
  header.resize((10 + dict.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) +
         '\0' + header + data;
}

// Returns an index of packed rows, of documents of 0 to 9 elements.
std::string PackedIndex(const Packing& packing, bool chosen) {
  const std::vector<ValueType> types = {
      {ValueType::Kind::kTensor, DType::kInt32, {-1}}};
  stored::v1::ArrangedHead head;
  head.set_base_fingerprint(BytesOf(TheBase().info.fingerprint));
  *head.mutable_packing() = ToStored({packing, {0}, {0}}, types);
  BlobWriter blob({});
  fuzz::Require(blob.Add(head).ok());
  PackedIndexWriter writer(
      packing, chosen, 1 << 20,
      [&](const stored::v1::PackedBlock& block, uint64_t rows) {
        return blob.Add(block, rows);
      });
  for (uint64_t i = 0; i < 200; ++i)
    fuzz::Require(writer.Add(chosen ? 999 - i : i, i % 10).ok());
  fuzz::Require(writer.Finish().ok());
  return *blob.Finish();
}

std::vector<std::string> Seeds() {
  const Base& base = TheBase();
  std::vector<std::string> seeds;
  for (const Numbers& samples :
       {Numbers{.begin = 0, .end = 900, .step = 3},
        Numbers{.list = {999, 0, 500, 7}}, Numbers{.list = {42}}}) {
    const auto index = Arrange(
        {.samples = samples, .where = ""},
        {.base = base.info, .reader = base.reader, .source = *base.source}, {});
    fuzz::Require(index.ok());
    seeds.push_back(index->blob);
  }
  seeds.push_back(PackedIndex({.length = 16, .overlap = 1}, false));
  seeds.push_back(PackedIndex({.how = PackHow::kFit, .length = 16}, true));
  seeds.push_back(NumbersOf(
      "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "abc"));
  seeds.push_back(
      NumbersOf("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
                std::string("\x09\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 16)));
  seeds.push_back(
      NumbersOf("{'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }",
                std::string(8 * kSamples, '\x3f')));
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "arranged", .run = Run, .seeds = Seeds, .runs = 2000});

}  // namespace
}  // namespace leat::worker::arranged_fuzz
