// SPDX-License-Identifier: Apache-2.0
//
// The reader of token files.
#include <string>

#include "core/pipeline/operator_table.h"

namespace leat {

void AddTokenReaders(OperatorList* list) {
  list->push_back(
      {StoredTypes(Operator(
           "readers.tokens", 0, 1,
           {OfData(Arg("files", ArgType::kStrings, std::nullopt,
                       "paths or URIs of files; of directories (with a slash "
                       "at the end: their .bin and .npy), or patterns with * ? "
                       "[] in the last parts, which stand for the files in the "
                       "byte order of their names; {000..123} and {a,b} stand "
                       "for each in turn")),
            Choice("dtype", Text(""),
                   {"", "uint8", "int8", "int16", "uint16", "int32", "uint32",
                    "int64", "float16", "float32", "bfloat16"},
                   "files that are no .npy have only elements, of this type, "
                   "little-endian; empty: they are Megatron's .bin, each with "
                   "its .idx beside it"),
            IntArg("end", -1, -1, 9e15,
                   "a token with which each document ends, in files "
                   "without an .idx; -1: a file is one document"),
            Choice("unit", Text("document"), {"document", "sequence"},
                   "what of a .bin a sample is: the .idx joins sequences to "
                   "documents")},
           "documents of token files (Megatron's .bin and .idx, elements only, "
           "or .npy of one axis) -> the tokens, in the files' type and any "
           "number")),
       nullptr});
}

}  // namespace leat
