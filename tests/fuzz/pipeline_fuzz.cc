// SPDX-License-Identifier: Apache-2.0
//
// A leat.v1.Graph that passes Check is computed on a small photo, sound or
// damaged: with and without fused operators, the result is the same bytes, or
// an error with its reason. An input is the photo (5 bytes) and the graph.
#include <vector>

#include "core/status.h"
#include "google/protobuf/stubs/logging.h"
#include "rpc/wire/messages.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/pipelines.h"
#include "tests/fuzz/target.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/views/view_graphs.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"

namespace leat::worker::pipeline_fuzz {
namespace {

constexpr size_t kMaxRowBytes = 1 << 18;
constexpr int64_t kMaxNumber = 500;  // of integers: or images grow too large

bool IsSmall(int64_t number) {
  return number >= -kMaxNumber && number <= kMaxNumber;
}

bool IsSmall(const Graph& graph) {
  if (graph.nodes.size() > 60) return false;
  for (const Node& node : graph.nodes)
    for (const auto& [name, value] : node.args) {
      if (const auto* one = std::get_if<int64_t>(&value))
        if (!IsSmall(*one)) return false;
      if (const auto* many = std::get_if<std::vector<int64_t>>(&value))
        for (const int64_t each : *many)
          if (!IsSmall(each)) return false;
    }
  return true;
}

// The photo, its damage, the position (in 65,536ths of its bytes), the amount.
constexpr size_t kPhotoBytes = 5;
enum Damage : uint8_t { kNone, kCut, kCutAndEnded, kFlipped, kErased, kFilled };
std::string PutPhoto(int photo, Damage damage, uint16_t where, int extent) {
  return fuzz::PutByte(photo) + fuzz::PutByte(damage) + fuzz::PutNumber(where) +
         fuzz::PutByte(extent);
}

const std::vector<std::string>& Photos() {
  using testing::JpegColor;
  static const std::vector<std::string>& photos = *new std::vector<std::string>{
      testing::MakeJpeg({.width = 9, .height = 7}),
      testing::MakeJpeg({.width = 41, .height = 83}),
      testing::MakeJpeg({.width = 70, .height = 45, .orientation = 6}),
      testing::MakeJpeg({.width = 50, .height = 60, .restart_interval = 3}),
      testing::MakeJpeg({.width = 33, .height = 61, .h = 1, .v = 1}),
      testing::MakeJpeg(
          {.width = 47, .height = 50, .h = 1, .v = 2, .orientation = 3}),
      testing::MakeJpeg({.width = 40, .height = 50, .progressive = true}),
      testing::MakeJpeg({.width = 40,
                         .height = 50,
                         .color = JpegColor::kYcck,
                         .h = 1,
                         .v = 1})};
  return photos;
}

std::string PhotoOf(std::string_view choice) {
  fuzz::Input input(choice);
  std::string photo = Photos()[input.Byte() % Photos().size()];
  const auto damage = static_cast<Damage>(input.Byte() % (kFilled + 1));
  const size_t at = photo.size() * input.Number<uint16_t>() >> 16;
  const uint8_t extent = input.Byte();
  const size_t count = std::min<size_t>(extent % 64u + 1u, photo.size() - at);
  switch (damage) {
    case kNone:
      break;
    case kCut:
      photo.resize(at);
      break;
    case kCutAndEnded:
      photo.resize(at);
      photo += "\xff\xd9";
      break;
    case kFlipped:
      photo[at] ^= static_cast<char>(1 << extent % 8);
      break;
    case kErased:
      photo.erase(at, count);
      break;
    case kFilled:
      photo.replace(at, count, count, static_cast<char>(extent));
      break;
  }
  return photo;
}

struct Result {
  absl::Status status;
  std::vector<std::vector<std::byte>> outputs;
};

Result Compute(const CheckedGraph& graph, const std::string& photo, bool fuse) {
  static const int32_t kLabel = 3;
  const StoredField fields[] = {
      {std::as_bytes(std::span(photo)), {}},
      {std::as_bytes(std::span(&kLabel, 1)), {}},
  };
  Result result;
  const auto program = RowProgram::Compile(graph, fuse);
  result.status = program.status();
  if (!program.ok()) return result;
  std::vector<std::span<std::byte>> outputs;
  for (const Field& field : graph.schema.fields)
    result.outputs.emplace_back(field.row_bytes);
  for (auto& output : result.outputs) outputs.emplace_back(output);
  Scratch scratch({.max_pixels = 1'000'000, .max_scratch_bytes = 64 << 20});
  result.status = (*program)->Run(
      {.seed = 5, .epoch = 1, .sample = 2, .fields = fields}, scratch, outputs);
  return result;
}

void Run(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  const std::string photo = PhotoOf(bytes.substr(0, kPhotoBytes));
  bytes.remove_prefix(std::min(bytes.size(), kPhotoBytes));
  v1::Graph proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return;
  const auto graph = rpc::FromProto(proto);
  if (!graph.ok() || !IsSmall(*graph)) return;
  const auto checked = Check(*graph, fuzz::Stored());
  if (!checked.ok() || !checked->typed) return;
  size_t row_bytes = 0;
  for (const Field& field : checked->schema.fields)
    row_bytes += field.row_bytes;
  if (row_bytes > kMaxRowBytes) return;
  const Result fused = Compute(*checked, photo, true);
  const Result plain = Compute(*checked, photo, false);
  fuzz::Require(fused.status.ok() == plain.status.ok());
  if (fused.status.ok())
    fuzz::Require(fused.outputs == plain.outputs);
  else
    fuzz::Require(!Message(fused.status).empty());
}

std::vector<std::string> Seeds() {
  const std::string sound = PutPhoto(0, kNone, 0, 0);
  std::vector<std::string> seeds;
  for (const JobSpec& spec : {fuzz::WithAllOperators(), fuzz::WithDraws()})
    seeds.push_back(sound + rpc::ToProto(spec.pipeline).SerializeAsString());
  // There is one pipeline for each operator.
  JobSpec all = fuzz::WithAllOperators();
  for (const auto& output : std::vector(all.pipeline.outputs)) {
    all.pipeline.outputs = {output};
    const auto one = Check(all.pipeline, fuzz::Stored());
    fuzz::Require(one.ok());
    seeds.push_back(sound + rpc::ToProto(one->graph).SerializeAsString());
  }
  // Views of damaged photos.
  int photo = 0;
  for (const Graph& graph : FusedViewGraphs()) {
    const Damage damage = photo % 2 == 0 ? kCutAndEnded : kFlipped;
    seeds.push_back(PutPhoto(++photo, damage, 40'000, 3) +
                    rpc::ToProto(graph).SerializeAsString());
  }
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "pipeline", .run = Run, .seeds = Seeds, .runs = 400});

}  // namespace
}  // namespace leat::worker::pipeline_fuzz
