// SPDX-License-Identifier: Apache-2.0
#include <leat/admin.h>
#include <leat/client.h>
#include <leat/pipeline.h>

#include <iostream>

int main() {
  leat::PipelineBuilder p;
  const auto [encoded, label] = p.ImageFolder("/data");
  p.Output("label", label);
  const auto service = leat::Service::Connect(
      {.address = "127.0.0.1:1", .timeout = absl::Milliseconds(50)});
  std::cout << leat::Version() << " " << p.SpecJson({.name = "x", .batch = 1})
            << " " << service.status() << "\n";
  return absl::IsUnavailable(service.status()) ? 0 : 1;
}
