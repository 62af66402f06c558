// SPDX-License-Identifier: Apache-2.0
//
// The operator that puts documents into rows of one length. It is computed
// where records are read, not where rows are: core/packing/pack_node.h.
#include <utility>

#include "core/packing/pack_node.h"
#include "core/pipeline/operator_table.h"
#include "core/status.h"

namespace leat {
namespace {

// Returns the types of a packed row: each value with `length` in place of its
// open axis, then segment_ids and positions.
TypesOr InferPack(Node* node, std::span<const ValueType> inputs) {
  ASSIGN_OR_RETURN(const PackNode pack, ReadPackNode(*node));
  const auto length = static_cast<int64_t>(pack.packing.length);
  RETURN_IF_ERROR(CheckPackedTypes(pack, inputs));
  std::vector<ValueType> types(inputs.begin(), inputs.end());
  for (ValueType& type : types) type.shape[0] = length;
  for (int i = 0; i < 2; ++i)
    types.push_back({ValueType::Kind::kTensor, DType::kInt32, {length}});
  return types;
}

}  // namespace

void AddPackOperator(OperatorList* list) {
  OperatorInfo info = Operator(
      "pack", 1, 2,
      {Ranged(Arg("length", ArgType::kInt, std::nullopt, "elements of a row"),
              1, static_cast<double>(kMaxPackedLength)),
       Choice("how", Text("cut"), {"cut", "fit"},
              "\"cut\": documents follow one another, and every length "
              "elements are a row; \"fit\": a document stands in one row, and "
              "rows have padding"),
       IntArg("overlap", 0, 0, static_cast<double>(kMaxPackedLength - 1),
              "elements that a row has from the end of the row before it; "
              "1 gives inputs and targets. how=\"fit\": the pieces of a "
              "document that is cut"),
       Choice("longer", Text("cut"), {"cut", "drop", "error"},
              "what how=\"fit\" does with a document that is longer than a "
              "row"),
       IntArg("max_documents", 0, 0, kMaxPackedDocuments,
              "pieces of documents in a row of how=\"fit\"; 0: any number"),
       Arg("fill_values", ArgType::kFloats, Value(std::vector<double>{0}),
           "padding of each value, or one number for all")},
      "puts documents into rows of one length: values of a reader, whose "
      "first axis is open, in rows of `length`; then segment_ids, which count "
      "the row's documents from 1 (0: padding), and positions, which count "
      "each piece's elements from 0 (both int32[length]); a row is a sample "
      "of the dataset, so it has the same documents in each epoch");
  info.variadic = true;
  info.takes_carried = true;
  list->push_back({std::move(info), InferPack});
}

}  // namespace leat
