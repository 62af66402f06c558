// SPDX-License-Identifier: Apache-2.0
#include "worker/source/formats.h"

#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/indexes.pb.h"
#include "worker/source/file_set.h"
#include "worker/source/index_blob.h"

namespace leat::worker {
namespace {

// The paths do not exist, so a known reader fails because of what is missing.
TEST(Formats, EveryReaderOfTheTableHasOne) {
  for (const OperatorInfo& info : AllOperators()) {
    if (!info.name.starts_with("readers.")) continue;
    Node reader{.op = info.name, .inputs = {}, .args = {}};
    for (const ArgInfo& arg : info.args)
      if (arg.default_value)
        reader.args[arg.name] = *arg.default_value;
      else if (arg.type == ArgType::kStrings)
        reader.args[arg.name] = std::vector<std::string>{"/nowhere/x"};
      else
        reader.args[arg.name] = std::string("/nowhere/x");
    EXPECT_THAT(Message(BuildIndex(reader, {}).status()),
                testing::Not(testing::HasSubstr("not known to this worker")))
        << info.name << ": want its format in worker/source/source.cc";
  }
}

constexpr char kSigned[] = "https://user:pass@host/a?signature=secret";

std::string ErrorOf(const Node& reader, const std::string& index) {
  const absl::Status status = OpenSource(reader, index, {}).status();
  EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsInvalidArgument(status))
      << status;
  return std::string(Message(status));
}

// Returns an index of two messages.
std::string IndexOf(const google::protobuf::MessageLite& head,
                    const google::protobuf::MessageLite& rest) {
  BlobWriter blob({});
  EXPECT_TRUE(blob.Add(head).ok() && blob.Add(rest).ok());
  return *blob.Finish();
}

TEST(Formats, AnIndexThatDoesNotFitIsShownWithoutSecrets) {
  const auto shown = [](const std::string& error) {
    EXPECT_THAT(error, testing::HasSubstr("https://host/a: "));
    EXPECT_THAT(error, testing::Not(testing::HasSubstr("pass")));
    EXPECT_THAT(error, testing::Not(testing::HasSubstr("secret")));
  };
  const Node records{.op = "readers.array_record",
                     .inputs = {},
                     .args = {{"paths", std::vector<std::string>{kSigned}}}};
  stored::v1::ArrayRecordHead records_head;
  records_head.set_reader(CanonicalText(records));
  stored::v1::ArrayRecordFile file;
  file.mutable_file()->set_name(kSigned);
  file.mutable_file()->set_bytes(100);
  file.set_records(3);
  file.set_group(5);
  shown(ErrorOf(records, IndexOf(records_head, file)));
  file.add_offsets(0);
  file.add_offsets(101);
  shown(ErrorOf(records, IndexOf(records_head, file)));

  const Node array{
      .op = "readers.numpy", .inputs = {}, .args = {{"array", kSigned}}};
  stored::v1::NumpyHead array_head;
  array_head.set_reader(CanonicalText(array));
  array_head.mutable_type()->set_dtype(static_cast<uint32_t>(DType::kUint8));
  stored::v1::NumpyFiles arrays;
  auto& one = *arrays.add_files();
  *one.mutable_file() = file.file();
  one.set_data_offset(101);
  shown(ErrorOf(array, IndexOf(array_head, arrays)));
  one.set_data_offset(10);
  one.add_shape(1);
  shown(ErrorOf(array, IndexOf(array_head, arrays)));

  const Node images{
      .op = "readers.idx", .inputs = {}, .args = {{"images", kSigned}}};
  stored::v1::IdxIndex index;
  index.mutable_images()->set_uri(kSigned);
  shown(ErrorOf(images, index.SerializeAsString()));
}

TEST(Formats, ANameThatIsNotUtf8IsShownWithoutSecrets) {
  FileSet files;
  const absl::Status status =
      files.Add(std::string("https://host/\xff?signature=secret"), 1, "size=1");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), testing::Not(testing::HasSubstr("secret")));
}

}  // namespace
}  // namespace leat::worker
