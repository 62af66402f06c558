// SPDX-License-Identifier: Apache-2.0
//
// RiegeliWriter: ArrayRecord files in the layout of their own writer.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/worker/source/loader_support.h"
#include "tests/worker/source/varint.h"
#include "worker/source/array_record/highway_hash.h"

namespace leat::worker {

class RiegeliWriter {
 public:
  static uint64_t Hash(std::string_view bytes) {
    return HighwayHash64({0x2f696c6567656952, 0x0a7364726f636572,
                          0x2f696c6567656952, 0x0a7364726f636572},
                         std::as_bytes(std::span(bytes)));
  }
  // Returns the data of an uncompressed chunk.
  static std::string Simple(const std::vector<std::string>& records) {
    std::string sizes;
    std::string values;
    for (const std::string& record : records) {
      sizes += VarintOf(record.size());
      values += record;
    }
    return std::string(1, '\0') + VarintOf(sizes.size()) + sizes + values;
  }

  // Returns its position.
  uint64_t Chunk(const std::string& data, uint64_t records, uint64_t decoded,
                 char type = 'r') {
    const uint64_t at = file_.size();
    const std::string rest =
        Little(uint64_t{data.size()}) + Little(Hash(data)) +
        Little(records << 8 | static_cast<uint8_t>(type)) + Little(decoded);
    Put(Little(Hash(rest)) + rest + data);
    return at;
  }
  uint64_t Chunk(const std::vector<std::string>& records) {
    uint64_t bytes = 0;
    for (const std::string& record : records) bytes += record.size();
    return Chunk(Simple(records), records.size(), bytes);
  }

  // Writes a footer of these chunks, and what follows it.
  std::string Finish(const std::vector<uint64_t>& offsets,
                     const std::vector<uint64_t>& sizes) {
    uint64_t records = 0;
    for (const uint64_t size : sizes) records += size;
    const std::string about =
        "\x08\x01\x10" + VarintOf(sizes.size()) + "\x18" + VarintOf(records);
    std::vector<std::string> footer = {"\x0a" + VarintOf(about.size()) + about};
    for (size_t i = 0; i < offsets.size(); ++i)
      footer.push_back("\x08" + VarintOf(offsets[i]) + "\x18" +
                       VarintOf(sizes[i]));
    return FinishWith(Chunk(footer));
  }
  // Writes the last block, after the footer at `at`.
  std::string FinishWith(uint64_t at) {
    file_.resize((file_.size() + 65535) / 65536 * 65536);
    Chunk({"\x08" + VarintOf(at) + "\x10" + VarintOf(0x71930e704fdae05e)});
    file_.resize((file_.size() + 65535) / 65536 * 65536);
    return file_;
  }
  // Returns a file of these records in such groups.
  static std::string File(const std::vector<std::string>& records,
                          size_t group) {
    RiegeliWriter writer;
    writer.Chunk("", 0, 0, 's');
    std::vector<uint64_t> offsets;
    std::vector<uint64_t> sizes;
    for (size_t i = 0; i < records.size(); i += group) {
      const size_t end = std::min(records.size(), i + group);
      offsets.push_back(writer.Chunk(std::vector<std::string>(
          records.begin() + static_cast<ptrdiff_t>(i),
          records.begin() + static_cast<ptrdiff_t>(end))));
      sizes.push_back(end - i);
    }
    return writer.Finish(offsets, sizes);
  }

 private:
  void Put(std::string_view bytes) {
    while (!bytes.empty()) {
      if (file_.size() % 65536 == 0) file_ += std::string(24, 'B');
      const size_t piece = std::min(bytes.size(), 65536 - file_.size() % 65536);
      file_ += bytes.substr(0, piece);
      bytes.remove_prefix(piece);
    }
  }
  std::string file_;
};

}  // namespace leat::worker
