// SPDX-License-Identifier: Apache-2.0
//
// A tar archive (POSIX ustar): per member a header of 512 bytes and its bytes,
// padded to a multiple of 512; two blocks of zeros at the end. Owner and time
// are zero, so that the same records make the same archive.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "client/cli/convert/outputs.h"
#include "client/cli/convert/shard_files.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr size_t kBlock = 512;

// REQUIRES: `name` is under 100 bytes, `bytes` under 8 GiB.
std::string Member(std::string_view name, std::string_view bytes) {
  std::string member(kBlock, '\0');
  const auto put = [&](size_t at, std::string_view text) {
    text.copy(member.data() + at, text.size());
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");  // user
  put(116, "0000000");  // group
  put(124, fmt::format("{:011o}", bytes.size()));
  put(136, "00000000000");  // time
  put(148, "        ");     // the checksum, counted as blanks
  put(156, "0");            // a regular file
  put(257, std::string_view("ustar\0"
                            "00",
                            8));
  uint32_t sum = 0;
  for (const char c : member) sum += static_cast<uint8_t>(c);
  put(148, fmt::format("{:06o}", sum));
  member[154] = '\0';
  member += bytes;
  member.resize((member.size() + kBlock - 1) / kBlock * kBlock);
  return member;
}

class WebdatasetOutput : public RecordOutput {
 public:
  WebdatasetOutput(const std::string& folder, uint64_t max_file_bytes)
      : files_(folder, ".tar", std::string(2 * kBlock, '\0'), max_file_bytes) {}

  absl::Status Add(const Record& record) override {
    const std::string key = fmt::format("{:09}", records_++);
    return files_.Add(Member(key + "." + record.extension, record.image) +
                      Member(key + ".cls", std::to_string(record.label)));
  }
  absl::Status Finish() override { return files_.Finish(); }

 private:
  ShardFiles files_;
  uint64_t records_ = 0;
};

}  // namespace

std::unique_ptr<RecordOutput> NewWebdatasetOutput(const std::string& folder,
                                                  uint64_t max_file_bytes) {
  return std::make_unique<WebdatasetOutput>(folder, max_file_bytes);
}

}  // namespace leat::cli
