// SPDX-License-Identifier: Apache-2.0
#include "rpc/access/gate.h"

#include <string>
#include <utility>

#include "core/status.h"
#include "grpc/grpc.h"
#include "rpc/call/auth.h"
#include "rpc/call/grpc_status.h"

namespace leat::rpc {
namespace {

// gRPC's own classes can neither be made to fetch new certificates nor, without
// TLS, to call an auth metadata processor.
class GatedCredentials final : public grpc::ServerCredentials {
 public:
  explicit GatedCredentials(grpc_server_credentials* credentials)
      : credentials_(credentials) {}
  ~GatedCredentials() override {
    grpc_server_credentials_release(credentials_);
  }
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }
  grpc_server_credentials* const credentials_;
};

std::string_view TextOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
          GRPC_SLICE_LENGTH(slice)};
}

void Process(void* gate, grpc_auth_context*, const grpc_metadata* metadata,
             size_t count, grpc_process_auth_metadata_done_cb done,
             void* user_data) {
  std::string_view path, token;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = TextOf(metadata[i].key);
    if (key == ":path") path = TextOf(metadata[i].value);
    if (key == kTokenKey) token = TextOf(metadata[i].value);
  }
  const absl::Status status = (*static_cast<Gate*>(gate))(path, token);
  done(user_data, nullptr, 0, nullptr, 0,
       static_cast<grpc_status_code>(status.code()),
       status.ok() ? nullptr : std::string(Message(status)).c_str());
}

void Destroy(void* gate) { delete static_cast<Gate*>(gate); }

}  // namespace

std::shared_ptr<grpc::ServerCredentials> WithGate(
    grpc_server_credentials* credentials, Gate gate) {
  if (gate)
    grpc_server_credentials_set_auth_metadata_processor(
        credentials, {.process = Process,
                      .destroy = Destroy,
                      .state = new Gate(std::move(gate))});
  return std::make_shared<GatedCredentials>(credentials);
}

}  // namespace leat::rpc
