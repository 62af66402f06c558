// SPDX-License-Identifier: Apache-2.0
//
// lengths_bench DOCUMENTS FOLDER: how long it takes to list packed rows of that
// many documents, whose lengths are made up as they are asked for, and how much
// memory. By hand, since 10⁹ documents take minutes, and 2 GB in FOLDER:
//
//   lengths_bench 1000000000 /var/tmp/lengths
//
// Beside it stands a bare loop over the same lengths, which packs window after
// window and does nothing else. Both take turns with parts of the documents, so
// that a busy machine slows both. The index's blocks are kept as a coordinator
// with --state keeps them.
//
// Times are processor time, so that other programs do not count. Memory is the
// process's most, beyond what it had before the listing.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/packing/fit_window.h"
#include "core/packing/windows.h"
#include "core/plan/arrangement.h"
#include "core/status.h"
#include "fmt/format.h"
#include "server/store/block_store.h"
#include "tests/bench/measured_cases.h"
#include "worker/source/arranged/arrange.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

constexpr Packing kPacking = {.how = PackHow::kFit, .length = 2048};

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "lengths_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T ValueOrFail(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(std::string(Message(value.status())));
  return *std::move(value);
}

// Lengths as those of texts of the web: log-normal, with a median of 420.
class WebLengths {
 public:
  WebLengths() : quantiles_(1 << 16) {
    for (size_t i = 0; i < quantiles_.size(); ++i) {
      // Twelve uniform numbers are nearly normal.
      double normal = -6;
      for (uint64_t draw = 0; draw < 12; ++draw)
        normal += static_cast<double>(Mixed(12 * i + draw) >> 11) * 0x1p-53;
      quantiles_[i] = static_cast<uint32_t>(420 * std::exp(1.1 * normal)) + 16;
    }
  }
  uint64_t Of(uint64_t document) const {
    return quantiles_[Mixed(document) >> 48];
  }

 private:
  static uint64_t Mixed(uint64_t number) {
    number = (number + 1) * 0x9E3779B97F4A7C15;
    number = (number ^ number >> 32) * 0xD6E8FEB86659FD93;
    return number ^ number >> 32;
  }

  std::vector<uint32_t> quantiles_;
};

// Documents that have a length and nothing else.
class Generated final : public FormatSource {
 public:
  Generated(const WebLengths& lengths, uint64_t documents)
      : lengths_(lengths), documents_(documents) {}

  uint64_t num_samples() const override { return documents_; }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t) const override {
    return Unimplemented("there is nothing to read");
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    return fmt::format("document {}", sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t) const override {
    return Unimplemented("it is nowhere");
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    if (column != "length") return FormatSource::IndexedColumn(column, sample);
    return static_cast<int64_t>(lengths_.Of(sample));
  }

 private:
  const WebLengths& lengths_;
  const uint64_t documents_;
  const Digest fingerprint_{};
};

// Packs documents window by window.
class BareLoop {
 public:
  BareLoop(const WebLengths& lengths, uint64_t documents)
      : lengths_(lengths), documents_(documents) {}

  // Packs about so many more documents.
  void Go(uint64_t some) {
    const double begin = ProcessorSeconds();
    for (const uint64_t end = next_ + std::min(some, documents_ - next_);
         next_ < end;) {
      window_.clear();
      const uint64_t window_end =
          std::min(next_ + kWindowDocuments, documents_);
      while (next_ < window_end) window_.push_back(lengths_.Of(next_++));
      rows_ += ValueOrFail(FitWindow::Pack(kPacking, window_)).num_rows();
    }
    seconds_ += ProcessorSeconds() - begin;
  }
  uint64_t rows() const { return rows_; }
  double seconds() const { return seconds_; }

 private:
  const WebLengths& lengths_;
  const uint64_t documents_;
  std::vector<uint64_t> window_;
  uint64_t next_ = 0, rows_ = 0;
  double seconds_ = 0;
};

// Keeps blocks, and gives the bare loop its turn after each.
class Blocks final : public IndexSink {
 public:
  Blocks(server::BlockStore* store, BareLoop* bare)
      : store_(store), bare_(bare) {}

  absl::Status Add(std::string bytes, uint64_t samples) override {
    ++count_;
    bytes_ += bytes.size();
    RETURN_IF_ERROR(store_->Put(HashOf(bytes), bytes, Clock::Real().WallNow()));
    if (samples > 0) bare_->Go(kDocumentsATurn);
    return absl::OkStatus();
  }
  uint64_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kDocumentsATurn = 1 << 20;  // about as a block has

  server::BlockStore* const store_;
  BareLoop* const bare_;
  uint64_t count_ = 0, bytes_ = 0;
};

double MostMegabytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) * 1024 / 1e6;
}

int Run(uint64_t documents, const std::string& folder) {
  const WebLengths lengths;
  const Generated source(lengths, documents);
  const Node reader{"readers.tokens", {}, {}};
  DatasetInfo base;
  base.name = "generated";
  base.types = {{ValueType::Kind::kTensor, DType::kUint16, {-1}}};
  base.shards = ValueOrFail(
      ShardTable::Uniform(documents, ShardTable::DefaultShardSize(documents)));
  Arrangement arrangement;
  arrangement.pack = {.packing = kPacking, .outputs = {0}, .fill_values = {0}};
  const auto store = ValueOrFail(server::FileBlocks::Open(folder));
  BareLoop bare(lengths, documents);
  Blocks blocks(store.get(), &bare);
  SourceLimits limits;
  limits.blocks = &blocks;
  const double memory = MostMegabytes(), begin = ProcessorSeconds();
  const MonotonicTime began = Clock::Real().Now();
  const BuiltIndex index = ValueOrFail(Arrange(
      arrangement, {.base = base, .reader = reader, .source = source}, limits));
  const double seconds = ProcessorSeconds() - begin - bare.seconds();
  const double most = MostMegabytes() - memory;
  const std::chrono::duration<double> passed = Clock::Real().Now() - began;
  bare.Go(documents);
  fmt::print(
      "{} documents: {} rows in {} blocks of {:.0f} MB\n"
      "listing {:.1f} s, {:.1f} ns a document; bare loop {:.1f} s, {:.1f} ns a "
      "document, {} rows; ratio {:.2f}\n"
      "{:.1f} MB beyond what it had; {:.0f} s by the clock with the bare "
      "loop's turns\n",
      documents, index.shards.num_samples(), blocks.count(),
      static_cast<double>(blocks.bytes()) / 1e6, seconds,
      seconds * 1e9 / static_cast<double>(documents), bare.seconds(),
      bare.seconds() * 1e9 / static_cast<double>(documents), bare.rows(),
      seconds / bare.seconds(), most, passed.count());
  return 0;
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  uint64_t documents = 0;
  if (argc == 3 && absl::SimpleAtoi(argv[1], &documents) && documents > 0)
    return leat::worker::Run(documents, argv[2]);
  std::fprintf(stderr, "usage: lengths_bench DOCUMENTS FOLDER\n");
  return 2;
}
