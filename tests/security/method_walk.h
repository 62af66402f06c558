// SPDX-License-Identifier: Apache-2.0
//
// Lists all methods in the protos, and calls any of them on a daemon.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor_database.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "rpc/call/channel.h"
#include "rpc/call/grpc_status.h"

namespace leat {

// Sends one message to a method of any kind.
class AnyCall {
 public:
  // `method`: "leat.v1.AdminService/GetStatus". `token`: empty: none.
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
  // Reads a message. False: the call has ended.
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
  // Waits for the end, and ignores messages before it.
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

// Returns "leat.v1.AdminService/GetStatus" and so on, for all services in this
// program's protos.
inline std::vector<std::string> AllMethods() {
  using google::protobuf::DescriptorPool;
  std::vector<std::string> files, methods;
  DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
  for (const std::string& name : files) {
    if (!name.starts_with("leat/") && !name.starts_with("externalscaler/"))
      continue;
    const google::protobuf::FileDescriptor* const file =
        DescriptorPool::generated_pool()->FindFileByName(name);
    if (file == nullptr) {
      methods.push_back(name + "/?");
      continue;
    }
    for (int i = 0; i < file->service_count(); ++i)
      for (int j = 0; j < file->service(i)->method_count(); ++j)
        methods.push_back(file->service(i)->full_name() + "/" +
                          file->service(i)->method(j)->name());
  }
  return methods;
}

}  // namespace leat
