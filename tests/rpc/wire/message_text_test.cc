// SPDX-License-Identifier: Apache-2.0
//
// No message is written that its reader would reject for bytes that are not
// UTF-8: tries each `string` of each message in this program.
#include <memory>
#include <string>
#include <vector>

#include "core/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "leat/v1/coordinator.pb.h"
#include "leat/v1/worker.pb.h"

namespace leat {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;

int bad_texts = 0;

class MessageText : public testing::Test {
 protected:
  MessageText() : before_(SetBadTextHandler([](auto) { ++bad_texts; })) {
    bad_texts = 0;
  }
  ~MessageText() override { SetBadTextHandler(before_); }

 private:
  const BadTextHandler before_;
};

void AddMessages(const Descriptor* type, std::vector<const Descriptor*>* to) {
  if (type->options().map_entry()) return;
  to->push_back(type);
  for (int i = 0; i < type->nested_type_count(); ++i)
    AddMessages(type->nested_type(i), to);
}

// Returns the messages of the .proto files of this tree.
std::vector<const Descriptor*> AllMessages() {
  std::vector<std::string> files;
  DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
  std::vector<const Descriptor*> messages;
  for (const std::string& name : files) {
    if (name.starts_with("google/")) continue;
    const auto* file = DescriptorPool::generated_pool()->FindFileByName(name);
    for (int i = 0; i < file->message_type_count(); ++i)
      AddMessages(file->message_type(i), &messages);
  }
  return messages;
}

std::unique_ptr<Message> New(const Descriptor* type) {
  return std::unique_ptr<Message>(
      MessageFactory::generated_factory()->GetPrototype(type)->New());
}

std::string Read(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  return field->is_repeated() ? reflection->GetRepeatedString(message, field, 0)
                              : reflection->GetString(message, field);
}

void Check(const Descriptor* type, const FieldDescriptor* field) {
  SCOPED_TRACE(field->full_name());
  const std::unique_ptr<Message> written = New(type), read = New(type);
  const auto* reflection = written->GetReflection();
  if (field->is_repeated())
    reflection->AddString(written.get(), field, "caf\xe9.\xc3\xa9\xc3");
  else
    reflection->SetString(written.get(), field, "caf\xe9.\xc3\xa9\xc3");
  bad_texts = 0;
  ASSERT_TRUE(read->ParseFromString(written->SerializeAsString()));
  EXPECT_EQ(Read(*read, field), "caf?.\xc3\xa9?");
  EXPECT_EQ(bad_texts, 1);
}

TEST_F(MessageText, EveryStringOfEveryMessageCanBeReadAgain) {
  // Makes the linker keep the messages.
  ASSERT_NE(v1::IndexFailure::descriptor(), nullptr);
  ASSERT_NE(v1::RowsRequest::descriptor(), nullptr);
  int tried = 0, keys = 0;
  for (const Descriptor* type : AllMessages()) {
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      // Keys of maps are written by protobuf's headers. Messages on the wire
      // have one such map, a node's arguments, which rpc/wire/messages.cc
      // fills.
      if (field->is_map()) {
        ++keys;
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        Check(type, field);
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 200);
  EXPECT_EQ(keys, 2) << "look at what fills the new map's keys";
}

TEST_F(MessageText, TextAndBytesStayAsTheyAre) {
  v1::IndexFailure failure;
  failure.set_message("caf\xc3\xa9 \xf0\x9f\x98\x80");
  v1::IndexFailure read;
  ASSERT_TRUE(read.ParseFromString(failure.SerializeAsString()));
  EXPECT_EQ(read.message(), failure.message());
  EXPECT_EQ(bad_texts, 0);
  EXPECT_EQ(&FieldText(failure.message()), &failure.message());
}

#ifndef NDEBUG
TEST(MessageTextDeathTest, ADebugBuildEnds) {
  v1::IndexFailure failure;
  failure.set_message("caf\xe9");
  EXPECT_DEATH((void)failure.SerializeAsString(), "caf\\\\xe9.*ToUtf8");
}
#endif

}  // namespace
}  // namespace leat
