// SPDX-License-Identifier: Apache-2.0
//
// reduced_bench [ROUNDS] FOLDER: milliseconds per row of decode(reduce="auto")
// and at full resolution, for the JPEG files under FOLDER, one thread,
// processor time, in turns: random_resized_crop to 224 in a first epoch, by
// seek indexes and by coefficients, and all of each photo to 224. Prints
// medians of the rounds, the ratio to full resolution, and the pixels'
// difference from full resolution's: the mean over all of them, and the worst
// photo's.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
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

// Acts as in a first epoch, whose decodes note where MCUs begin; or keeps the
// form that each file's first decode has made.
class BenchKeeper final : public FormKeeper {
 public:
  explicit BenchKeeper(std::optional<JpegFormKind> kind) : kind_(kind) {}

  FormWish Begin(std::span<const std::byte> file, DecodeClass) override {
    file_ = file.data();
    FormWish wish;
    wish.max_bytes = size_t{1} << 30;
    const auto it = kept_.find(file_);
    if (it != kept_.end())
      wish.use = it->second;
    else if (kind_)
      wish.make = FormKinds::Only(*kind_);
    else
      wish.grow = true;
    return wish;
  }
  void End(FormAnswer answer) override {
    if (kind_)
      for (KeptForm& form : answer.made) kept_[file_] = std::move(form);
  }

 private:
  const std::optional<JpegFormKind> kind_;
  std::map<const std::byte*, KeptForm> kept_;
  const std::byte* file_ = nullptr;
};

class Case {
 public:
  Case(const char* name, const char* op, std::optional<JpegFormKind> kind)
      : name_(name), keepers_{BenchKeeper(kind), BenchKeeper(kind)} {
    for (const char* reduce : {"none", "auto"}) {
      Graph graph;
      graph.nodes = {
          {"readers.image_folder", {}, {{"path", Value(std::string("/"))}}},
          {"decode", {{0, 0}}, {{"reduce", Value(std::string(reduce))}}},
          {op, {{1, 0}}, {{"size", Ints{224}}}}};
      graph.outputs = {{"image", {2, 0}}};
      const auto checked = Check(graph);
      programs_.push_back(*RowProgram::Compile(checked.value()));
      rows_.emplace_back(checked->schema.fields[0].row_bytes);
    }
    times_.resize(2);
  }

  // Makes the forms, and measures the pixels' differences.
  void Compare(const std::vector<std::string>& files) {
    double sum = 0;
    for (size_t i = 0; i < files.size(); ++i) {
      Run(0, files[i], i);
      Run(1, files[i], i);
      double apart = 0;
      for (size_t at = 0; at < rows_[0].size(); ++at)
        apart += std::abs(std::to_integer<int>(rows_[0][at]) -
                          std::to_integer<int>(rows_[1][at]));
      apart /= static_cast<double>(rows_[0].size());
      sum += apart;
      worst_ = std::max(worst_, apart);
    }
    apart_ = sum / static_cast<double>(files.size());
  }
  void Round(const std::vector<std::string>& files, uint64_t round) {
    for (size_t which = 0; which < 2; ++which) {
      const double begin = ThreadSeconds();
      for (size_t i = 0; i < files.size(); ++i)
        Run(which, files[i], round * files.size() + i);
      times_[which].push_back((ThreadSeconds() - begin) * 1e3 /
                              static_cast<double>(files.size()));
    }
  }
  void Print() const {
    const double full = Median(times_[0]), reduced = Median(times_[1]);
    std::printf(
        "%-28s %8.2f ms %8.2f ms   %.2f x   apart %.2f (at worst %.2f)\n",
        name_, full, reduced, full / reduced, apart_, worst_);
  }

 private:
  void Run(size_t which, const std::string& file, uint64_t sample) {
    const std::span<std::byte> output(rows_[which]);
    const StoredSample stored = StoredImage(std::as_bytes(std::span(file)), 0);
    const absl::Status status =
        programs_[which]->Run({.seed = 1,
                               .sample = sample,
                               .fields = stored.fields,
                               .forms = &keepers_[which]},
                              scratch_, {&output, 1});
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", std::string(Message(status)).c_str());
    std::exit(1);
  }

  const char* const name_;
  std::array<BenchKeeper, 2> keepers_;  // one for each program
  Scratch scratch_{ImageLimits{}};
  std::vector<std::unique_ptr<RowProgram>> programs_;
  std::vector<std::vector<std::byte>> rows_;
  std::vector<std::vector<double>> times_;
  double apart_ = 0, worst_ = 0;
};

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  using namespace leat::worker;  // a program of one file
  const int rounds = argc == 3 ? std::atoi(argv[1]) : 7;
  if (argc < 2 || argc > 3 || rounds < 1) {
    std::fprintf(stderr, "usage: reduced_bench [ROUNDS] FOLDER\n");
    return 2;
  }
  const std::vector<std::string> files = leat::ReadPhotos(argv[argc - 1]);
  if (files.empty()) return 1;
  constexpr char kCrop[] = "random_resized_crop";
  std::vector<std::unique_ptr<Case>> cases;
  cases.push_back(
      std::make_unique<Case>("crop, first epoch", kCrop, std::nullopt));
  cases.push_back(std::make_unique<Case>("crop, seek index", kCrop,
                                         JpegFormKind::kSeekIndex));
  cases.push_back(std::make_unique<Case>("crop, coefficients", kCrop,
                                         JpegFormKind::kCoefficients));
  cases.push_back(
      std::make_unique<Case>("crop, pixels", kCrop, JpegFormKind::kPixels));
  cases.push_back(
      std::make_unique<Case>("whole, first epoch", "resize", std::nullopt));
  cases.push_back(std::make_unique<Case>("whole, coefficients", "resize",
                                         JpegFormKind::kCoefficients));
  cases.push_back(
      std::make_unique<Case>("whole, pixels", "resize", JpegFormKind::kPixels));
  for (const auto& one : cases) one->Compare(files);
  for (int round = 0; round < rounds; ++round)
    for (const auto& one : cases)
      one->Round(files, static_cast<uint64_t>(round));
  std::printf("%-28s %11s %11s\n", "", "full", "reduced");
  for (const auto& one : cases) one->Print();
  return 0;
}
