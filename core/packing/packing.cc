// SPDX-License-Identifier: Apache-2.0
#include "core/packing/packing.h"

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace leat {
namespace {

const char* NameOf(PackHow how) { return how == PackHow::kFit ? "fit" : "cut"; }

const char* NameOf(PackLonger longer) {
  switch (longer) {
    case PackLonger::kCut:
      return "cut";
    case PackLonger::kDrop:
      return "drop";
    case PackLonger::kError:
      return "error";
  }
  return "unknown";
}

}  // namespace

absl::Status CheckPacking(const Packing& packing) {
  const auto invalid = [](auto... parts) {
    return absl::InvalidArgumentError(absl::StrCat("pack: ", parts...));
  };
  if (packing.how > PackHow::kFit) {
    return invalid("how is ", static_cast<int>(packing.how),
                   ": want cut or fit");
  }
  if (packing.longer > PackLonger::kError) {
    return invalid("longer is ", static_cast<int>(packing.longer),
                   ": want cut, drop or error");
  }
  if (packing.length == 0 || packing.length > kMaxPackedLength) {
    return invalid("length is ", packing.length, ": want 1 to ",
                   kMaxPackedLength);
  }
  if (packing.overlap >= packing.length) {
    return invalid("overlap is ", packing.overlap,
                   ": want less than length, which is ", packing.length);
  }
  if (packing.max_documents > kMaxPackedDocuments) {
    return invalid("max_documents is ", packing.max_documents,
                   ": want at most ", kMaxPackedDocuments);
  }
  if (packing.how == PackHow::kFit) return absl::OkStatus();
  if (packing.longer != PackLonger::kCut) {
    return invalid("longer is ", NameOf(packing.longer),
                   ", but how=cut cuts every document: want how=fit with it");
  }
  if (packing.max_documents != 0) {
    return invalid("max_documents is ", packing.max_documents,
                   ", but how=cut fills every row: want how=fit with it");
  }
  return absl::OkStatus();
}

std::string PackingText(const Packing& packing) {
  return absl::StrCat("pack(how=", NameOf(packing.how),
                      ",length=", packing.length, ",overlap=", packing.overlap,
                      ",longer=", NameOf(packing.longer),
                      ",max_documents=", packing.max_documents, ")");
}

absl::StatusOr<uint64_t> PiecesOf(const Packing& packing, uint64_t document,
                                  uint64_t elements) {
  if (elements <= packing.length) return elements == 0 ? 0 : 1;
  if (packing.longer == PackLonger::kDrop) return 0;
  if (packing.longer == PackLonger::kError) {
    return absl::InvalidArgumentError(
        absl::StrCat("document ", document, " has ", elements,
                     " elements, more than length=", packing.length,
                     ": want longer=\"cut\" or \"drop\", or longer rows"));
  }
  const uint64_t step = packing.length - packing.overlap;
  const uint64_t pieces = 1 + (elements - packing.length + step - 1) / step;
  if (pieces > kMaxDocumentPieces) {
    return absl::InvalidArgumentError(absl::StrCat(
        "document ", document, " has ", elements, " elements, which are ",
        pieces, " pieces of length=", packing.length, ": want at most ",
        kMaxDocumentPieces, "; how=\"cut\" has no such bound"));
  }
  return pieces;
}

}  // namespace leat
