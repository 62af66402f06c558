// SPDX-License-Identifier: Apache-2.0
//
// operator_bench IMAGES FOLDER: measures row programs of one operator each,
// from memory to memory, one thread; measured_cases.h describes the protocol.
//
// It takes up to kBatch JPEG files below IMAGES that have the commonest size
// and are not turned by EXIF, and leaves in FOLDER what other programs need to
// measure the same: the files unchanged (0.jpg, 1.jpg, …), their pixels
// (photo.raw), the same resized to 224 x 224 (small.raw), and the sizes
// ("sizes": images, height, width).
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "tests/bench/measured_cases.h"
#include "tests/worker/image/base/stored_image.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"

namespace leat::worker {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Bytes = std::vector<std::byte>;

constexpr size_t kBatch = 64;  // also the rows of results
constexpr int64_t kSmall = 224;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "operator_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T ValueOrFail(absl::StatusOr<T> value, const std::string& what) {
  if (!value.ok()) Fail(what + ": " + std::string(Message(value.status())));
  return *std::move(value);
}

struct Photos {
  std::vector<std::string> files;
  int64_t height = 0, width = 0;
};

Photos CommonestPhotos(const char* folder) {
  JpegDecoder decoder{ImageLimits{}};
  std::map<std::pair<int64_t, int64_t>, std::vector<std::string>> by_size;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::string data{std::istreambuf_iterator<char>(file), {}};
    if (!decoder.Open(std::as_bytes(std::span(data))).ok()) continue;
    const JpegDecoder::Header& header = decoder.header();
    const auto [height, width] = header.size;
    if (!header.ycc || header.orientation != 1 ||
        std::min(width, height) < kSmall)
      continue;
    std::vector<std::string>& same = by_size[{height, width}];
    if (same.size() < kBatch) same.push_back(std::move(data));
  }
  if (by_size.empty())
    Fail(std::string(folder) +
         ": no upright JPEG photos of at least 224 x 224");
  const auto most = std::max_element(by_size.begin(), by_size.end(),
                                     [](const auto& a, const auto& b) {
                                       return a.second.size() < b.second.size();
                                     });
  return {std::move(most->second), most->first.first, most->first.second};
}

// Samples of one field each, contiguous.
struct Input {
  ValueType type;  // the field's
  std::vector<StoredSample> samples;
};

// Runs the operators in sequence on samples; writes results into a batch.
class Program {
 public:
  Program(std::vector<Node> nodes, const Input* input) : input_(input) {
    const bool encoded = input->type.kind == ValueType::Kind::kEncoded;
    Graph graph;
    graph.nodes = {{encoded ? "readers.image_folder" : "readers.numpy",
                    {},
                    {{"path", std::string(encoded ? "/" : "/none.npy")}}}};
    std::string names;
    for (Node& node : nodes) {
      node.inputs = {{static_cast<uint32_t>(graph.nodes.size()) - 1, 0}};
      names += " " + node.op;
      graph.nodes.push_back(std::move(node));
    }
    graph.outputs = {
        {"result", {static_cast<uint32_t>(graph.nodes.size()) - 1, 0}}};
    const CheckedGraph checked = ValueOrFail(
        encoded ? Check(graph) : Check(graph, {&input->type, 1}), names);
    program_ = ValueOrFail(RowProgram::Compile(checked), names);
    row_bytes_ = checked.schema.fields[0].row_bytes;
    results_.resize(row_bytes_ * input->samples.size());
  }

  size_t Run() {
    for (const StoredSample& sample : input_->samples) {
      const size_t row = next_++ % input_->samples.size();
      const std::span<std::byte> result =
          std::span(results_).subspan(row * row_bytes_, row_bytes_);
      const absl::Status status =
          program_->Run({.seed = 1, .sample = next_, .fields = sample.fields},
                        scratch_, {&result, 1});
      if (!status.ok()) Fail(std::string(Message(status)));
    }
    return input_->samples.size();
  }
  const Bytes& results() const { return results_; }

 private:
  const Input* const input_;
  std::unique_ptr<RowProgram> program_;
  size_t row_bytes_ = 0;
  Bytes results_;
  uint64_t next_ = 0;
  Scratch scratch_{ImageLimits{}};
};

// Cuts `bytes` into samples of the type. Borrows them.
Input InputOf(ValueType type, const Bytes& bytes) {
  Input input{std::move(type), {}};
  size_t size = SizeOf(input.type.dtype);
  for (const int64_t axis : input.type.shape) size *= static_cast<size_t>(axis);
  for (size_t at = 0; at < bytes.size(); at += size) {
    StoredSample sample;
    sample.fields = {{std::span(bytes).subspan(at, size), {}}};
    input.samples.push_back(std::move(sample));
  }
  return input;
}

ValueType PixelType(int64_t height, int64_t width) {
  return {ValueType::Kind::kTensor, DType::kUint8, {height, width, 3}};
}

// The data that cases are measured on. Fields of samples refer to these
// members.
struct Inputs {
  Photos photos;
  Bytes photo_pixels, small_pixels, label_bytes;
  Input files, photo, small, labels;
};

std::unique_ptr<Inputs> MakeInputs(const char* folder) {
  auto in = std::make_unique<Inputs>();
  in->photos = CommonestPhotos(folder);
  in->files.type.kind = ValueType::Kind::kEncoded;
  for (const std::string& file : in->photos.files)
    in->files.samples.push_back(StoredImage(std::as_bytes(std::span(file)), 0));
  const int64_t height = in->photos.height, width = in->photos.width;
  const auto pixels = [](std::vector<Node> nodes, const Input* input) {
    Program program(std::move(nodes), input);
    program.Run();
    return program.results();
  };
  in->photo_pixels = pixels(
      {{"decode", {}, {}}, {"crop", {}, {{"size", Ints{height, width}}}}},
      &in->files);
  in->photo = InputOf(PixelType(height, width), in->photo_pixels);
  in->small_pixels =
      pixels({{"resize", {}, {{"size", Ints{kSmall}}}}}, &in->photo);
  in->small = InputOf(PixelType(kSmall, kSmall), in->small_pixels);
  for (size_t i = 0; i < in->photos.files.size(); ++i) {
    const auto label = static_cast<int32_t>(i * 997 % 1000);
    const auto bytes = std::as_bytes(std::span(&label, size_t{1}));
    in->label_bytes.insert(in->label_bytes.end(), bytes.begin(), bytes.end());
  }
  in->labels =
      InputOf({ValueType::Kind::kTensor, DType::kInt32, {}}, in->label_bytes);
  return in;
}

void WriteFile(const std::filesystem::path& path, const char* data,
               size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(data, static_cast<std::streamsize>(size));
  if (!file.flush()) Fail("cannot write " + path.string());
}

void WriteInputs(const Inputs& in, const std::filesystem::path& folder) {
  for (size_t i = 0; i < in.photos.files.size(); ++i)
    WriteFile(folder / (std::to_string(i) + ".jpg"), in.photos.files[i].data(),
              in.photos.files[i].size());
  const auto write = [&](const char* name, const Bytes& bytes) {
    WriteFile(folder / name, reinterpret_cast<const char*>(bytes.data()),
              bytes.size());
  };
  write("photo.raw", in.photo_pixels);
  write("small.raw", in.small_pixels);
  const std::string sizes = std::to_string(in.photos.files.size()) + " " +
                            std::to_string(in.photos.height) + " " +
                            std::to_string(in.photos.width) + "\n";
  WriteFile(folder / "sizes", sizes.data(), sizes.size());
}

class CaseList {
 public:
  void Add(const char* name, const Input& input, std::vector<Node> nodes) {
    auto program = std::make_shared<Program>(std::move(nodes), &input);
    cases_.push_back({name, [program] { return program->Run(); }});
  }
  void Add(const char* name, const Input& input, const char* op,
           std::map<std::string, Value> args) {
    Add(name, input, {{op, {}, std::move(args)}});
  }
  const std::vector<MeasuredCase>& cases() const { return cases_; }

 private:
  std::vector<MeasuredCase> cases_;
};

Value Text(const char* text) { return std::string(text); }

void AddResampling(const Inputs& in, CaseList* list) {
  const Ints small{kSmall, kSmall};
  const Ints whole{in.photos.height, in.photos.width};
  list->Add("decode", in.files,
            {{"decode", {}, {}}, {"crop", {}, {{"size", whole}}}});
  list->Add(
      "decode, random_resized_crop", in.files,
      {{"decode", {}, {}}, {"random_resized_crop", {}, {{"size", small}}}});
  list->Add("decode, resize", in.files,
            {{"decode", {}, {}}, {"resize", {}, {{"size", small}}}});
  for (const char* filter : {"linear", "cubic", "lanczos3"}) {
    const std::string name = std::string("resize ") + filter;
    list->Add(name.c_str(), in.photo, "resize",
              {{"size", small}, {"interpolation", Text(filter)}});
    list->Add((name + ", no antialias").c_str(), in.photo, "resize",
              {{"size", small},
               {"interpolation", Text(filter)},
               {"antialias", false}});
  }
  list->Add("resize nearest", in.photo, "resize",
            {{"size", small}, {"interpolation", Text("nearest")}});
  list->Add("resize linear, larger", in.small, "resize", {{"size", whole}});
}

void AddGeometry(const Inputs& in, CaseList* list) {
  const Ints small{kSmall, kSmall};
  const Floats mean{123.675, 116.28, 103.53}, std{58.395, 57.12, 57.375};
  list->Add("crop", in.photo, "crop", {{"size", small}});
  list->Add("flip", in.small, "flip", {});
  list->Add("flip vertical", in.small, "flip",
            {{"horizontal", false}, {"vertical", true}});
  list->Add("crop_mirror_normalize", in.photo, "crop_mirror_normalize",
            {{"crop", small}, {"mirror", true}, {"mean", mean}, {"std", std}});
  list->Add("crop_mirror_normalize float16", in.photo, "crop_mirror_normalize",
            {{"crop", small},
             {"mirror", true},
             {"mean", mean},
             {"std", std},
             {"dtype", Text("float16")}});
  list->Add("rotate", in.small, "rotate",
            {{"angle", 12.5}, {"keep_size", true}, {"fill_value", Floats{0}}});
  list->Add("warp_affine", in.small, "warp_affine",
            {{"matrix", Floats{0.9, 0.2, -3.5, -0.15, 1.1, 8.25}},
             {"fill_value", Floats{0}}});
  list->Add("gaussian_blur", in.small, "gaussian_blur", {{"sigma", 1.7}});
  list->Add("erase", in.small, "erase",
            {{"anchor", Floats{60, 40}}, {"shape", Floats{80, 100}}});
  list->Add("pad", in.small, "pad",
            {{"axes", Ints{0, 1}}, {"align", Ints{256, 256}}});
  list->Add("transpose", in.small, "transpose", {{"perm", Ints{2, 0, 1}}});
}

void AddValues(const Inputs& in, CaseList* list) {
  const Floats mean{123.675, 116.28, 103.53}, std{58.395, 57.12, 57.375};
  list->Add("normalize", in.small, "normalize", {{"mean", mean}, {"std", std}});
  list->Add("brightness_contrast", in.small, "brightness_contrast",
            {{"brightness", 1.2}, {"contrast", 0.8}});
  list->Add("hue", in.small, "hue", {{"hue", 30.0}});
  list->Add("hsv", in.small, "hsv",
            {{"hue", 30.0}, {"saturation", 1.3}, {"value", 0.9}});
  list->Add("color_twist", in.small, "color_twist",
            {{"brightness", 1.1},
             {"contrast", 0.9},
             {"hue", 20.0},
             {"saturation", 1.3}});
  list->Add("color_space_conversion gray", in.small, "color_space_conversion",
            {{"image_type", Text("rgb")}, {"output_type", Text("gray")}});
  list->Add("jpeg_compression_distortion", in.small,
            "jpeg_compression_distortion", {{"quality", 50.0}});
  list->Add("cast float32", in.small, "cast", {{"dtype", Text("float32")}});
  list->Add("lookup_table", in.small, "lookup_table",
            {{"keys", Ints{0, 1, 2, 128, 255}},
             {"values", Floats{10, 20, 30, 40, 50}},
             {"dtype", Text("uint8")}});
  list->Add("one_hot", in.labels, "one_hot", {{"num_classes", int64_t{1000}}});
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  using namespace leat::worker;  // a program of one file
  if (argc != 3) {
    std::fprintf(stderr, "usage: operator_bench IMAGES FOLDER\n");
    return 2;
  }
  const std::unique_ptr<Inputs> inputs = MakeInputs(argv[1]);
  WriteInputs(*inputs, argv[2]);
  CaseList list;
  AddResampling(*inputs, &list);
  AddGeometry(*inputs, &list);
  AddValues(*inputs, &list);
  return leat::MeasureCases(list.cases());
}
