// SPDX-License-Identifier: Apache-2.0
#include "worker/source/webdataset/tar.h"

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/webdataset/tar_maker.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Code = absl::StatusCode;

class TarTest : public ::testing::Test {
 protected:
  // Returns the members, as "name=bytes".
  absl::StatusOr<std::vector<std::string>> Members(const std::string& archive) {
    const std::string path = dir_.Write("a.tar", archive);
    const auto file = storage_->Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    std::vector<std::string> found;
    const absl::Status status =
        WalkTar(**file, nullptr, [&](const TarMember& member) {
          std::string bytes(member.size, '\0');
          RETURN_IF_ERROR((*file)->ReadAt(
              member.offset,
              std::as_writable_bytes(std::span(bytes.data(), bytes.size()))));
          found.push_back(member.name + "=" + bytes);
          return absl::OkStatus();
        });
    if (!status.ok()) return status;
    return found;
  }
  std::vector<std::string> Good(const std::string& archive) {
    const auto members = Members(archive);
    EXPECT_TRUE(members.ok()) << members.status();
    return members.value_or(std::vector<std::string>());
  }
  absl::Status Error(const std::string& archive) {
    return Members(archive).status();
  }

  TempDir dir_;
  std::unique_ptr<Storage> storage_ = *Storage::Create({});
};

TEST_F(TarTest, FilesAreGivenInOrderAndOthersPassedOver) {
  EXPECT_THAT(
      Good(TarMemberOf("d/", "", {.type = '5'}) + TarMemberOf("d/a", "one") +
           TarMemberOf("l", "", {.type = '2'}) +
           TarHeaderOf("h", 700, {.type = '1'}) +  // a size without bytes
           TarMemberOf("b", std::string(512, 'x')) + TarMemberOf("e", "") +
           TarMemberOf("c", "y", {.type = '7'}) + TarEnd()),
      ElementsAre("d/a=one", "b=" + std::string(512, 'x'), "e=", "c=y"));
}

TEST_F(TarTest, NamesAreOfUstarGnuPaxAndV7) {
  const std::string longer(300, 'n');
  const std::string gnu("ustar  \0", 8), none(8, '\0');
  EXPECT_THAT(
      Good(TarMemberOf("name", "1", {.prefix = "pre/fix"}) +
           TarMemberOf("name", "2", {.magic = gnu, .prefix = "times"}) +
           TarMemberOf(std::string(100, 'h'), "3") + LongName(longer) +
           TarMemberOf("short", "4", {.magic = gnu}) +
           Pax(PaxRecord("path", "p/" + longer) + PaxRecord("mtime", "1.5")) +
           TarMemberOf("short", "5") + TarMemberOf("last", "6") +
           TarMemberOf("v7", "7", {.type = '\0', .magic = none}) +
           TarMemberOf("v7/", "", {.type = '\0', .magic = none}) +
           Pax(PaxRecord("comment", "x"), 'g') + TarMemberOf("g", "8")),
      ElementsAre("pre/fix/name=1", "name=2", std::string(100, 'h') + "=3",
                  longer + "=4", "p/" + longer + "=5", "last=6", "v7=7",
                  "g=8"));
}

TEST_F(TarTest, HarmfulNamesAreOnlyNames) {
  EXPECT_THAT(Good(TarMemberOf("/etc/passwd", "1") +
                   TarMemberOf("../../up", "2") + TarEnd()),
              ElementsAre("/etc/passwd=1", "../../up=2"));
}

TEST_F(TarTest, SizesMayBeBase256OrOfPax) {
  std::string binary(12, '\0');
  binary[0] = '\x80';
  binary[11] = '\x02';
  EXPECT_THAT(Good(TarHeaderOf("a", 0, {.size = binary}) + Padded("hi") +
                   Pax(PaxRecord("size", "3")) + TarHeaderOf("b", 0) +
                   Padded("you") + TarMemberOf("c", "?")),
              ElementsAre("a=hi", "b=you", "c=?"));
  binary[0] = '\xff';
  EXPECT_EQ(Error(TarHeaderOf("a", 0, {.size = binary})).code(),
            Code::kDataLoss);
  EXPECT_EQ(
      Error(TarHeaderOf("a", 0, {.size = "\x80" + std::string(11, '\xff')}))
          .code(),
      Code::kDataLoss);
  EXPECT_EQ(Error(TarHeaderOf("a", 0, {.size = "00000000008 "})).code(),
            Code::kDataLoss);
  EXPECT_THAT(
      Good(TarHeaderOf("a", 0, {.size = "          2 "}) + Padded("hi")),
      ElementsAre("a=hi"));
}

TEST_F(TarTest, ABlockOfZerosOrTheEndOfTheFileEndsIt) {
  const std::string a = TarMemberOf("a", "1"), b = TarMemberOf("b", "2");
  EXPECT_THAT(Good(a + b), ElementsAre("a=1", "b=2"));
  EXPECT_THAT(Good(a + std::string(512, '\0') + b), ElementsAre("a=1"));
  EXPECT_THAT(Good(TarEnd()), ElementsAre());
  EXPECT_THAT(Good(""), ElementsAre());
}

TEST_F(TarTest, AnArchiveCutOffInsideAMemberIsAnError) {
  const std::string member = TarMemberOf("name", std::string(600, 'x'));
  for (size_t size = 1; size < 2 * member.size(); ++size) {
    if (size == member.size()) continue;
    if (size % 512 > 2 && size % 512 < 510) continue;  // to be quick
    const absl::Status status = Error((member + member).substr(0, size));
    ASSERT_EQ(status.code(), Code::kDataLoss) << size;
    EXPECT_THAT(
        std::string(Message(status)),
        HasSubstr(fmt::format("a.tar: header at {}: ",
                              size < member.size() ? 0 : member.size())));
  }
  EXPECT_EQ(Error(LongName("n")).code(), Code::kDataLoss);
  EXPECT_EQ(Error(Pax(PaxRecord("path", "n")) + TarEnd()).code(),
            Code::kDataLoss);
}

TEST_F(TarTest, EveryFlippedBitOfAHeaderIsSeenByItsSum) {
  const std::string good = TarMemberOf("name", "bytes");
  for (size_t bit = 0; bit < 512 * 8; bit += 13) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const auto members = Members(bytes);
    if (bit / 8 >= 148 && bit / 8 < 156) continue;  // may be another spelling
    ASSERT_EQ(members.status().code(), Code::kDataLoss) << bit;
  }
}

TEST_F(TarTest, WhatItDoesNotReadIsRefused) {
  EXPECT_EQ(Error(TarMemberOf("s", "x", {.type = 'S'})).code(),
            Code::kUnimplemented);
  EXPECT_EQ(Error(TarMemberOf("m", "x", {.type = 'M'})).code(),
            Code::kUnimplemented);
  EXPECT_EQ(
      Error(Pax(PaxRecord("GNU.sparse.major", "1")) + TarMemberOf("s", "x"))
          .code(),
      Code::kUnimplemented);
  EXPECT_THAT(std::string(Message(Error("\x1f\x8b" + std::string(600, 'z')))),
              HasSubstr("gzip"));
  EXPECT_EQ(Error("x").code(), Code::kDataLoss);
  for (const std::string& records :
       {std::string("x"), std::string("99 path=a\n"), std::string("5 a\n"),
        std::string("9 path=ab"), std::string("0 path=a\n"),
        std::string("18446744073709551616 a=b\n"), PaxRecord("size", "x"),
        PaxRecord("size", "-1"), PaxRecord("size", "99999999999999999999")})
    EXPECT_EQ(Error(Pax(records) + TarMemberOf("a", "b")).code(),
              Code::kDataLoss)
        << records;
  EXPECT_EQ(Error(TarHeaderOf("L", 2 << 20, {.type = 'L'}) +
                  std::string(2 << 20, 'n') + TarMemberOf("a", "b"))
                .code(),
            Code::kResourceExhausted);
  EXPECT_EQ(Error(TarHeaderOf("a", uint64_t{1} << 32)).code(), Code::kDataLoss);
}

// Archives that GNU tar writes, in its formats, are read as it reads them.
TEST_F(TarTest, ReadsWhatTarWrites) {
  const std::string deep =
      "d/" + std::string(120, 'p') + "/" + std::string(110, 'q') + ".txt";
  dir_.Write("in/" + deep, "deep");
  dir_.Write("in/a.txt", "a");
  for (const char* format : {"v7", "ustar", "gnu", "oldgnu", "pax"}) {
    const std::string flags =
        std::string(format) == "v7" || std::string(format) == "ustar"
            ? " a.txt"
            : " a.txt d";
    const std::string command = "tar -C " + dir_.path() + "/in -cf " +
                                dir_.path() + "/out.tar --format=" + format +
                                flags + " 2>/dev/null";
    if (std::system(command.c_str()) != 0) GTEST_SKIP() << "no tar";
    const auto file = storage_->Open(dir_.path() + "/out.tar");
    std::vector<std::string> names;
    ASSERT_TRUE(WalkTar(**file, nullptr, [&](const TarMember& member) {
                  names.push_back(member.name);
                  return absl::OkStatus();
                }).ok());
    if (flags == " a.txt") {
      EXPECT_THAT(names, ElementsAre("a.txt")) << format;
    } else {
      EXPECT_THAT(names, ElementsAre("a.txt", deep)) << format;
    }
  }
}

}  // namespace
}  // namespace leat::worker
