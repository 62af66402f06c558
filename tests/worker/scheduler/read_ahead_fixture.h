// SPDX-License-Identifier: Apache-2.0
//
// For tests of ReadAhead: streams that may read or not, records that count as a
// given number of bytes, and a fixture that reads them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "worker/scheduler/read_ahead.h"

namespace leat::worker {

// Records of the mean size that take the mean time do not change the means.
inline constexpr uint64_t kMeanRecord = 128 << 10;
inline constexpr Duration kMeanRead = std::chrono::milliseconds(1);

struct Reader : ReadAhead::Stream {
  bool may = true;
};

using Reads = std::shared_ptr<ReadAhead::GroupReads>;

// Returns a record that counts as `bytes` bytes.
inline RowRecords RecordOf(uint64_t sample, uint64_t bytes) {
  return {{.sample = sample, .stored = StoredSample{.form_bytes = bytes}}};
}

class ReadAheadRulesTest : public ::testing::Test {
 protected:
  void Limit(int threads, uint64_t records) {
    ahead_.emplace(threads, records * kMeanRecord);
  }
  void Open(Reader* reader, const std::string& job,
            const ReadAhead::Step& first = {0, 0}) {
    ahead_->Open(reader, job);
    ahead_->Put(reader, first);
  }
  Reader* Choose() {
    looks_ = 0;
    said_yes_ = nullptr;
    const auto look = [this](ReadAhead::Stream& stream) {
      ++looks_;
      auto& reader = static_cast<Reader&>(stream);
      if (reader.may) said_yes_ = &reader;
      return reader.may;
    };
    auto* const chosen = static_cast<Reader*>(ahead_->Choose(look));
    EXPECT_EQ(chosen, said_yes_) << "the last yes is the choice";
    return chosen;
  }
  static Reads GroupOf(Reader* reader, size_t rows) {
    return std::make_shared<ReadAhead::GroupReads>(reader, rows);
  }
  // Gives a thread rows of a separate group.
  ReadAhead::Read Begin(Reader* reader, size_t rows = 1) {
    return ahead_->Begin(GroupOf(reader, rows), rows);
  }
  void End(const ReadAhead::Read& read, uint64_t bytes = kMeanRecord,
           Duration each = kMeanRead) {
    std::vector<RowRecords> records;
    for (size_t i = 0; i < read.rows; ++i)
      records.push_back(RecordOf(read.first + i, bytes));
    ahead_->End(read, records, each * read.rows);
  }
  uint64_t RecordsAhead() const { return ahead_->bytes_ahead() / kMeanRecord; }

  std::optional<ReadAhead> ahead_{std::in_place, 8, 1000 * kMeanRecord};
  int looks_ = 0;
  Reader* said_yes_ = nullptr;
};

}  // namespace leat::worker
