// SPDX-License-Identifier: Apache-2.0
//
// Which methods a daemon serves, by its own reflection, and what it answers to
// a call of any of them.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "rpc/channel.h"
#include "rpc/status.h"

namespace leat {

// Sends one message to a method of any kind, and no more.
class AnyCall {
 public:
  // `method`: "leat.v1.AdminService/GetStatus". `token` empty: none.
  AnyCall(const std::shared_ptr<grpc::Channel>& channel,
          const std::string& method, const std::string& token)
      : stub_(channel) {
    rpc::AddMetadata({.token = token}, &context_);
    context_.set_deadline(std::chrono::system_clock::now() +
                          std::chrono::seconds(30));
    call_ = stub_.PrepareCall(&context_, "/" + method, &queue_);
    call_->StartCall(nullptr);
    Wait();
  }
  ~AnyCall() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  void Send(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    call_->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(),
                     nullptr);
    Wait();
  }
  // False: the call has ended.
  bool Read(std::string* bytes) {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, nullptr);
    if (!Wait()) return false;
    std::vector<grpc::Slice> slices;
    if (!buffer.Dump(&slices).ok()) return false;
    bytes->clear();
    for (const grpc::Slice& slice : slices)
      bytes->append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    return true;
  }
  // Waits for the end, whatever comes before it.
  absl::Status End() {
    std::string ignored;
    while (Read(&ignored)) {
    }
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Wait();
    return rpc::FromGrpc(status);
  }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// The texts in all fields of this number, of a serialised message.
inline std::vector<std::string> TextsIn(const std::string& message,
                                        int number) {
  google::protobuf::UnknownFieldSet fields;
  std::vector<std::string> texts;
  if (!fields.ParseFromString(message)) return texts;
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).number() == number &&
        fields.field(i).type() ==
            google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      texts.push_back(fields.field(i).length_delimited());
  return texts;
}

// By grpc.reflection.v1alpha: names of all services.
inline std::vector<std::string> ServicesOf(
    const std::shared_ptr<grpc::Channel>& channel) {
  AnyCall call(channel,
               "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
               "");
  call.Send(std::string("\x3a\x00", 2));  // list_services = ""
  std::string answer;
  std::vector<std::string> names;
  if (!call.Read(&answer)) return names;
  for (const std::string& list : TextsIn(answer, 6))  // list_services_response
    for (const std::string& service : TextsIn(list, 1))
      for (const std::string& name : TextsIn(service, 1)) names.push_back(name);
  return names;
}

// "leat.v1.AdminService/GetStatus", of all services of ours.
inline std::vector<std::string> MethodsOf(
    const std::vector<std::string>& services) {
  std::vector<std::string> methods;
  for (const std::string& name : services) {
    if (name.starts_with("grpc.")) continue;
    const google::protobuf::ServiceDescriptor* service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
            name);
    if (service == nullptr) {
      methods.push_back(name + "/?");
      continue;
    }
    for (int i = 0; i < service->method_count(); ++i)
      methods.push_back(name + "/" + service->method(i)->name());
  }
  return methods;
}

}  // namespace leat
