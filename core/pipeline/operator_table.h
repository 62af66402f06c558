// SPDX-License-Identifier: Apache-2.0
//
// The table of operators, and the words in which its parts are written. Each
// family has one file in core/operators: signature and types side by side.
//
// docs/howto/operator.md says how to add one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"

namespace leat {

using TypesOr = absl::StatusOr<std::vector<ValueType>>;

struct OperatorEntry {
  OperatorInfo info;
  // The outputs' types of a node. Checks what a single argument's range cannot
  // say, and completes the node: a single number in `size` becomes two.
  // kInvalidArgument: names the argument or the input, without the node.
  // REQUIRES: the arguments are complete and of their types; as many inputs as
  // the operator has. Null if `stored_types`.
  TypesOr (*infer)(Node* node, std::span<const ValueType> inputs);
};

std::span<const OperatorEntry> OperatorTable();

using OperatorList = std::vector<OperatorEntry>;
void AddReaders(OperatorList* list);
void AddLoaderReaders(OperatorList* list);
void AddRecordReaders(OperatorList* list);
void AddArrayReaders(OperatorList* list);
void AddImageOperators(OperatorList* list);
void AddGeometryOperators(OperatorList* list);
void AddWarpOperators(OperatorList* list);  // by the one above
void AddTensorOperators(OperatorList* list);
void AddColorOperators(OperatorList* list);
void AddArithmeticOperators(OperatorList* list);
void AddValueOperators(OperatorList* list);
void AddRandomOperators(OperatorList* list);
void AddBatchOperators(OperatorList* list);
void AddAugmentOperators(OperatorList* list);

// --- Signatures -------------------------------------------------------------

inline constexpr double kMaxSide = 65'500;  // of an image: as JPEG's

ArgInfo Arg(std::string name, ArgType type, std::optional<Value> default_value,
            std::string doc);
ArgInfo Ranged(ArgInfo arg, double min, double max);
ArgInfo PerSample(ArgInfo arg);
// A number that may differ from sample to sample.
ArgInfo Scalar(std::string name, double value, double least, double most,
               std::string doc);
// For an argument that an operator gets after pipelines have been made with it.
ArgInfo AddedLater(ArgInfo arg);
// For a list that may have an entry for each sample.
ArgInfo OfData(ArgInfo arg);
ArgInfo Choice(std::string name, std::optional<Value> default_value,
               std::vector<std::string> choices, std::string doc);
Value Text(const char* text);
// "rule" of operators that move pixels to any place.
ArgInfo PlacesRuleArg();
// "size": height and width.
ArgInfo SizeArg(std::string doc);
std::vector<ArgInfo> ResamplingArgs();
ArgInfo ResamplingRuleArg();
std::vector<ArgInfo> Join(std::vector<ArgInfo> first,
                          std::vector<ArgInfo> second);
OperatorInfo Operator(std::string name, int inputs, int outputs,
                      std::vector<ArgInfo> args, std::string doc);
OperatorInfo Random(OperatorInfo info);
// Marks a reader whose outputs' types only the data knows.
OperatorInfo StoredTypes(OperatorInfo info);

// --- Types ------------------------------------------------------------------

template <class T>
const T& ArgOf(const Node& node, const char* name) {
  return std::get<T>(node.args.at(name));
}
// How many entries a list argument has, in either of its forms.
template <class T>
uint64_t CountOf(const Node& node, const char* name) {
  const Value& value = node.args.at(name);
  const auto* const list = std::get_if<LongList>(&value);
  return list != nullptr ? list->count : std::get<std::vector<T>>(value).size();
}
std::vector<ValueType> OneTensor(DType dtype, Shape shape);
// (height, width, 1 to 4 channels).
absl::Status WantImage(const ValueType& type);
absl::Status WantUint8Image(const ValueType& type);
absl::Status WantTensor(const ValueType& type);
// Two numbers, least and largest.
absl::Status WantInterval(const Node& node, const char* name);

}  // namespace leat
