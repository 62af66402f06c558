// SPDX-License-Identifier: Apache-2.0
//
// Pulls batches of a folder of photos from a private service.
//
//   batches FOLDER [DAEMON_DIR]
#include <leat/client.h>
#include <leat/pipeline.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

std::string Spec(const std::string& folder) {
  leat::PipelineBuilder p;
  const auto [encoded, label] = p.ImageFolder(folder);
  const auto decoded = p.Op("decode", {encoded});
  const auto image = p.Op("random_resized_crop", {decoded},
                          {{"size", std::vector<int64_t>{64, 64}}});
  p.Output("image", image).Output("label", label);
  return p.SpecJson({.name = "example-cc", .batch = 8, .seed = 7});
}

void Print(const leat::Batch& batch) {
  std::cout << "epoch " << batch.epoch() << " step " << batch.step() << ":";
  for (const leat::Tensor& tensor : batch.tensors())
    std::cout << " " << tensor.name << " " << tensor.dtype << ", "
              << tensor.bytes << " bytes";
  std::cout << "\n";
}

absl::Status Run(const std::string& folder, const std::string& daemon_dir) {
  leat::ConnectOptions options;  // without an address: a private service
  options.daemon_dir = daemon_dir;
  auto service = leat::Service::Connect(options);
  if (!service.ok()) return service.status();
  auto job = (*service)->CreateJob(Spec(folder), absl::Minutes(5));
  if (!job.ok()) return job.status();
  leat::BatchesOptions one_epoch;
  one_epoch.epochs = 1;
  auto batches = (*job)->Open(one_epoch);
  if (!batches.ok()) return batches.status();
  while (true) {
    const absl::StatusOr<std::optional<leat::Batch>> batch =
        (*batches)->Next(absl::InfiniteFuture());
    if (!batch.ok()) return batch.status();
    if (!batch->has_value()) return absl::OkStatus();  // the end
    Print(**batch);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: batches FOLDER [DAEMON_DIR]\n";
    return 2;
  }
  const absl::Status status = Run(argv[1], argc > 2 ? argv[2] : "");
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
