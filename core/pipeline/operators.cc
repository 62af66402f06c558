// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/operators.h"

#include <utility>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "core/tensor/value_types.h"
#include "fmt/ranges.h"

namespace leat {

constexpr int64_t kMaxChannels = 4;

ArgInfo Arg(std::string name, ArgType type, std::optional<Value> default_value,
            std::string doc) {
  ArgInfo arg;
  arg.name = std::move(name);
  arg.type = type;
  arg.default_value = std::move(default_value);
  arg.doc = std::move(doc);
  arg.min = 1;
  arg.max = 0;
  return arg;
}

ArgInfo Ranged(ArgInfo arg, double min, double max) {
  arg.min = min;
  arg.max = max;
  return arg;
}

ArgInfo PerSample(ArgInfo arg) {
  arg.per_sample = true;
  return arg;
}

ArgInfo FlagArg(std::string name, bool value, std::string doc) {
  return Arg(std::move(name), ArgType::kBool, Value(value), std::move(doc));
}

ArgInfo IntArg(std::string name, int64_t value, double least, double most,
               std::string doc) {
  return Ranged(
      Arg(std::move(name), ArgType::kInt, Value(value), std::move(doc)), least,
      most);
}

ArgInfo FloatArg(std::string name, double value, double least, double most,
                 std::string doc) {
  return Ranged(
      Arg(std::move(name), ArgType::kFloat, Value(value), std::move(doc)),
      least, most);
}

ArgInfo IntsArg(std::string name, double least, double most, std::string doc) {
  return Ranged(
      Arg(std::move(name), ArgType::kInts, Value(Ints{}), std::move(doc)),
      least, most);
}

ArgInfo FloatsArg(std::string name, double least, double most,
                  std::string doc) {
  return Ranged(
      Arg(std::move(name), ArgType::kFloats, Value(Floats{}), std::move(doc)),
      least, most);
}

ArgInfo Scalar(std::string name, double value, double least, double most,
               std::string doc) {
  return PerSample(
      FloatArg(std::move(name), value, least, most, std::move(doc)));
}

ArgInfo AddedLater(ArgInfo arg) {
  arg.added_later = true;
  return arg;
}

ArgInfo OfData(ArgInfo arg) {
  arg.of_data = true;
  arg.doc += fmt::format("; up to {} entries", kMaxListEntries);
  return arg;
}

ArgInfo Choice(std::string name, std::optional<Value> default_value,
               std::vector<std::string> choices, std::string doc) {
  ArgInfo arg = Arg(std::move(name), ArgType::kString, std::move(default_value),
                    std::move(doc));
  arg.choices = std::move(choices);
  return arg;
}

Value Text(const char* text) { return Value(std::string(text)); }

ArgInfo PlacesRuleArg() {
  return AddedLater(
      Choice("rule", Text("fixed"), {"fixed", "dali"},
             "the arithmetic. fixed: positions in 64-bit fixed point, exact to "
             "2^-32; fastest. dali: positions in float32, each the previous "
             "one in its row plus a step, except every 256th"));
}

ArgInfo SizeArg(std::string doc) {
  return Ranged(Arg("size", ArgType::kInts, std::nullopt, std::move(doc)), 1,
                kMaxSide);
}

std::vector<ArgInfo> ResamplingArgs() {
  return {
      Choice("interpolation", Text("linear"),
             {"linear", "nearest", "cubic", "lanczos3", "gaussian"},
             "the filter; cubic has a = -0.5, gaussian is exp(-4 x²) cut off "
             "at 1"),
      Arg("antialias", ArgType::kBool, Value(true),
          "widen the filter by the scale when shrinking, as Pillow does; "
          "nearest never is"),
  };
}

ArgInfo ResamplingRuleArg() {
  return AddedLater(Choice(
      "rule", Text("pillow"), {"pillow", "dali"},
      "the arithmetic. pillow: fixed point, bytes between the passes, what "
      "lies outside the image does not count; fastest, and on GPUs, too. dali: "
      "float32, the edge goes on outside the image, linear between a filter's "
      "points, the cheaper pass first; a random window is a region, whose "
      "surroundings count"));
}

std::vector<ArgInfo> Join(std::vector<ArgInfo> first,
                          std::vector<ArgInfo> second) {
  for (ArgInfo& arg : second) first.push_back(std::move(arg));
  return first;
}

OperatorInfo Operator(std::string name, int inputs, int outputs,
                      std::vector<ArgInfo> args, std::string doc) {
  OperatorInfo info;
  info.name = std::move(name);
  info.doc = std::move(doc);
  info.inputs = inputs;
  info.outputs = outputs;
  info.args = std::move(args);
  return info;
}

OperatorInfo StoredTypes(OperatorInfo info) {
  info.stored_types = true;
  return info;
}

OperatorInfo TakesCarried(OperatorInfo info) {
  info.takes_carried = true;
  return info;
}

OperatorInfo Random(OperatorInfo info) {
  info.random = true;
  return info;
}

std::vector<ValueType> OneTensor(DType dtype, Shape shape) {
  return {{ValueType::Kind::kTensor, dtype, std::move(shape)}};
}

absl::Status WantImage(const ValueType& type) {
  if (type.kind == ValueType::Kind::kTensor && type.shape.size() == 3 &&
      type.shape[2] >= 1 && type.shape[2] <= kMaxChannels)
    return absl::OkStatus();
  return InvalidArgument(
      "input is {}, want an image: (height, width, 1 to {} channels){}",
      TypeText(type), kMaxChannels,
      type.kind == ValueType::Kind::kEncoded ? "; put a decode before it" : "");
}

absl::Status WantUint8Image(const ValueType& type) {
  RETURN_IF_ERROR(WantImage(type));
  if (type.dtype == DType::kUint8) return absl::OkStatus();
  return InvalidArgument("input is {}, want uint8: resample before casting",
                         TypeText(type));
}

absl::Status WantSides(const ValueType& image) {
  for (const size_t axis : {0, 1})
    if (static_cast<double>(image.shape[axis]) > kMaxSide)
      return InvalidArgument("input is {}, want sides of at most {}",
                             TypeText(image), kMaxSide);
  return absl::OkStatus();
}

absl::Status WantTensor(const ValueType& type) {
  if (type.kind == ValueType::Kind::kTensor) return absl::OkStatus();
  return InvalidArgument("input is {}, want a tensor; put a decode before it",
                         TypeText(type));
}

absl::Status WantInterval(const Node& node, const char* name) {
  const auto& values = ArgOf<std::vector<double>>(node, name);
  if (values.size() == 2 && values[0] <= values[1]) return absl::OkStatus();
  return InvalidArgument(
      "argument \"{}\" is [{}], want two numbers: least, largest", name,
      fmt::join(values, ", "));
}

absl::Status WantNumbers(const ValueType& type) {
  RETURN_IF_ERROR(WantTensor(type));
  if (type.dtype != DType::kBool) return absl::OkStatus();
  return InvalidArgument("input is {}, want numbers", TypeText(type));
}

absl::Status WantAtMostOne(const Node& node, const char* name) {
  const size_t count = ArgOf<Floats>(node, name).size();
  if (count <= 1) return absl::OkStatus();
  return InvalidArgument("argument \"{}\" has {} numbers, want none or one",
                         name, count);
}

absl::Status WantPerChannel(const Node& node, const char* name,
                            int64_t channels) {
  const size_t count = ArgOf<Floats>(node, name).size();
  if (count == 1 || count == static_cast<size_t>(channels))
    return absl::OkStatus();
  return InvalidArgument(
      "argument \"{}\" has {} numbers, want 1 or {}, one a channel", name,
      count, channels);
}

DType DTypeOf(const Node& node) {
  return *ParseDType(ArgOf<std::string>(node, "dtype"));
}

template <class T>
absl::Status CompletePair(Node* node, const char* name) {
  auto& numbers = std::get<std::vector<T>>(node->args.at(name));
  if (numbers.size() == 1) numbers.push_back(numbers[0]);
  if (numbers.size() <= 2) return absl::OkStatus();
  return InvalidArgument(
      "argument \"{}\" has {} numbers, want 1 or 2 (height, width)", name,
      numbers.size());
}
template absl::Status CompletePair<int64_t>(Node* node, const char* name);
template absl::Status CompletePair<double>(Node* node, const char* name);

absl::StatusOr<ImageSize> OptionalSize(Node* node) {
  RETURN_IF_ERROR(CompletePair<int64_t>(node, "size"));
  const Ints& size = ArgOf<Ints>(*node, "size");
  if (size.empty()) return ImageSize{0, 0};
  return ImageSize{size[0], size[1]};
}

std::span<const OperatorEntry> OperatorTable() {
  static const OperatorList& table = *new OperatorList([] {
    OperatorList list;
    AddReaders(&list);
    AddLoaderReaders(&list);
    AddRecordReaders(&list);
    AddArrayReaders(&list);
    AddTokenReaders(&list);
    AddImageOperators(&list);
    AddGeometryOperators(&list);
    AddTensorOperators(&list);
    AddColorOperators(&list);
    AddArithmeticOperators(&list);
    AddValueOperators(&list);
    AddRandomOperators(&list);
    AddBatchOperators(&list);
    AddPackOperator(&list);
    AddAugmentOperators(&list);
    return list;
  }());
  return table;
}

std::span<const OperatorInfo> AllOperators() {
  static const std::vector<OperatorInfo>& infos =
      *new std::vector<OperatorInfo>([] {
        std::vector<OperatorInfo> list;
        for (const OperatorEntry& entry : OperatorTable())
          list.push_back(entry.info);
        return list;
      }());
  return infos;
}

const OperatorInfo* FindOperator(std::string_view name) {
  for (const OperatorInfo& info : AllOperators())
    if (info.name == name) return &info;
  return nullptr;
}

}  // namespace leat
