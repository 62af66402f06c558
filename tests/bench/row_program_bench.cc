// SPDX-License-Identifier: Apache-2.0
//
// row_program_bench [SECONDS] FOLDER: images per processor second, one thread,
// from memory, measured in turns: bare libjpeg-turbo full decode (the
// yardstick) and row programs, also by forms that an earlier decode of the same
// file has made. Prints medians of the rounds and ratios to the yardstick.
#include <turbojpeg.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "tests/bench/photo_rounds.h"
#include "tests/worker/image/base/stored_image.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"

namespace leat::worker {
namespace {

using Ints = std::vector<int64_t>;

constexpr int kRounds = 9;

Graph Pipeline(std::vector<Node> operators, NodeRef output) {
  Graph graph;
  graph.nodes = {
      {"readers.image_folder", {}, {{"path", Value(std::string("/"))}}},
      {"decode", {{0, 0}}, {}}};
  for (Node& node : operators) graph.nodes.push_back(std::move(node));
  graph.outputs = {{"image", output}};
  return graph;
}

// Keeps the form that each file's first decode has made.
class OneKind final : public FormKeeper {
 public:
  explicit OneKind(JpegFormKind kind) : kind_(kind) {}

  FormWish Begin(std::span<const std::byte> file, DecodeClass) override {
    file_ = file.data();
    FormWish wish;
    const auto it = kept_.find(file_);
    if (it != kept_.end())
      wish.use = it->second;
    else
      wish.make = FormKinds::Only(kind_);
    wish.max_bytes = size_t{1} << 30;
    return wish;
  }
  void End(FormAnswer answer) override {
    for (KeptForm& form : answer.made) kept_[file_] = std::move(form);
  }

 private:
  const JpegFormKind kind_;
  std::map<const std::byte*, KeptForm> kept_;
  const std::byte* file_ = nullptr;
};

struct Case {
  const char* name;
  std::function<void(const std::string& file, uint64_t sample)> run;
  std::vector<double> rates;
};

std::function<void(const std::string&, uint64_t)> ProgramCase(
    const Graph& graph, std::optional<JpegFormKind> kind = std::nullopt) {
  auto checked = Check(graph);
  auto program = RowProgram::Compile(checked.value());
  auto row = std::make_shared<std::vector<std::byte>>(
      checked->schema.fields[0].row_bytes);
  auto scratch = std::make_shared<Scratch>(ImageLimits{});
  std::shared_ptr<RowProgram> shared = *std::move(program);
  const auto keeper = kind ? std::make_shared<OneKind>(*kind) : nullptr;
  return [=](const std::string& file, uint64_t sample) {
    const std::span<std::byte> output(*row);
    const StoredSample stored = StoredImage(std::as_bytes(std::span(file)), 0);
    const absl::Status status = shared->Run({.seed = 1,
                                             .epoch = 0,
                                             .sample = sample,
                                             .fields = stored.fields,
                                             .forms = keeper.get()},
                                            *scratch, {&output, 1});
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", std::string(Message(status)).c_str());
      std::exit(1);
    }
  };
}

std::function<void(const std::string&, uint64_t)> BareDecode() {
  std::shared_ptr<void> handle(tjInitDecompress(), tjDestroy);
  auto pixels = std::make_shared<std::vector<unsigned char>>();
  return [=](const std::string& file, uint64_t) {
    int width = 0, height = 0, sampling = 0, colours = 0;
    const auto* data = reinterpret_cast<const unsigned char*>(file.data());
    if (tjDecompressHeader3(handle.get(), data, file.size(), &width, &height,
                            &sampling, &colours) != 0)
      return;
    const size_t size =
        size_t{3} * static_cast<size_t>(width) * static_cast<size_t>(height);
    if (pixels->size() < size) pixels->resize(size);
    tjDecompress2(handle.get(), data, file.size(), pixels->data(), width, 0,
                  height, TJPF_RGB, 0);
  };
}

std::vector<Case> Cases() {
  const Node random_crop{
      "random_resized_crop", {{1, 0}}, {{"size", Ints{224}}}};
  const Node resize{"resize", {{1, 0}}, {{"size", Ints{224}}}};
  const Node coin{"coin_flip", {}, {}};
  const Node flip{"flip", {{2, 0}}, {{"horizontal", NodeRef{3, 0}}}};
  const Graph crop = Pipeline({random_crop, coin, flip}, {4, 0});
  return {
      {"bare libjpeg-turbo, whole image", BareDecode(), {}},
      {"random_resized_crop 224 + flip", ProgramCase(crop), {}},
      {"the same, seek index", ProgramCase(crop, JpegFormKind::kSeekIndex), {}},
      {"the same, coefficients",
       ProgramCase(crop, JpegFormKind::kCoefficients),
       {}},
      {"the same, pixels", ProgramCase(crop, JpegFormKind::kPixels), {}},
      {"resize 224 of the whole image",
       ProgramCase(Pipeline({resize}, {2, 0})),
       {}},
  };
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  using namespace leat::worker;  // a program of one file
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: row_program_bench [SECONDS] FOLDER\n");
    return 2;
  }
  const double seconds = argc == 3 ? std::atof(argv[1]) : 10;
  const std::vector<std::string> files = leat::ReadPhotos(argv[argc - 1]);
  if (files.empty()) return 1;
  std::vector<Case> cases = Cases();
  const double slice = seconds / (kRounds * static_cast<double>(cases.size()));
  uint64_t sample = 0;
  // All files for every case, in slices that take turns.
  for (int round = 0; round < kRounds; ++round)
    for (Case& c : cases) {
      const double begin = leat::ThreadSeconds();
      double elapsed = 0;
      size_t done = 0;
      do {
        for (const std::string& file : files) c.run(file, sample++);
        done += files.size();
        elapsed = leat::ThreadSeconds() - begin;
      } while (elapsed < slice);
      c.rates.push_back(static_cast<double>(done) / elapsed);
    }
  double yardstick = 0;
  for (const Case& c : cases) {
    const double rate = leat::Median(c.rates);
    if (yardstick == 0) yardstick = rate;
    std::printf("%-34s %8.1f img/s   %.3f\n", c.name, rate, rate / yardstick);
  }
  return 0;
}
