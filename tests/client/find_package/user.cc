// SPDX-License-Identifier: Apache-2.0
#include <leat/admin.h>
#include <leat/client.h>
#include <leat/pipeline.h>

#include <iostream>

int main() {
  leat::PipelineBuilder p;
  const auto [encoded, label] = p.ImageFolder("/data");
  p.Output("label", label);
  leat::ConnectOptions options;
  options.address = "127.0.0.1:1";
  options.timeout = absl::Milliseconds(50);
  const auto service = leat::Service::Connect(options);
  std::cout << leat::Version() << " " << p.SpecJson({.name = "x", .batch = 1})
            << " " << service.status() << "\n";
  return absl::IsUnavailable(service.status()) ? 0 : 1;
}
