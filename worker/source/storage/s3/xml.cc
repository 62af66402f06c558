// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/s3/xml.h"

#include <expat.h>

#include <limits>
#include <memory>
#include <vector>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxDepth = 16;

struct Reader {
  XML_Parser parser;
  const std::function<void(const std::string&, const std::string&)>& each;
  std::string path;
  std::vector<std::pair<size_t, std::string>> open;  // parent's path, text
  bool refused = false;

  void Refuse() {
    refused = true;
    XML_StopParser(parser, XML_FALSE);
  }
};

void OnStart(void* user, const char* name, const char** /*attributes*/) {
  auto* const self = static_cast<Reader*>(user);
  if (self->open.size() >= kMaxDepth) {
    self->Refuse();
    return;
  }
  self->open.emplace_back(self->path.size(), "");
  if (!self->path.empty()) self->path += '/';
  self->path += name;
}

void OnEnd(void* user, const char* /*name*/) {
  auto* const self = static_cast<Reader*>(user);
  if (self->refused || self->open.empty()) return;
  self->each(self->path, self->open.back().second);
  self->path.resize(self->open.back().first);
  self->open.pop_back();
}

void OnText(void* user, const char* text, int size) {
  auto* const self = static_cast<Reader*>(user);
  if (!self->open.empty()) self->open.back().second.append(text, size);
}

void OnDoctype(void* user, const char*, const char*, const char*, int) {
  static_cast<Reader*>(user)->Refuse();
}

}  // namespace

absl::Status ForEachElement(
    std::string_view xml,
    const std::function<void(const std::string& path, const std::string& text)>&
        each) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate("UTF-8"), &XML_ParserFree);
  if (parser == nullptr) return ResourceExhausted("XML: no memory");
  if (xml.size() > std::numeric_limits<int>::max()) {
    return DataLoss("XML: {} bytes are too many", xml.size());
  }
  Reader reader = {.parser = parser.get(), .each = each};
  XML_SetUserData(parser.get(), &reader);
  XML_SetElementHandler(parser.get(), &OnStart, &OnEnd);
  XML_SetCharacterDataHandler(parser.get(), &OnText);
  XML_SetStartDoctypeDeclHandler(parser.get(), &OnDoctype);
  if (XML_Parse(parser.get(), xml.data(), static_cast<int>(xml.size()),
                XML_TRUE) == XML_STATUS_OK) {
    return absl::OkStatus();
  }
  if (reader.refused) {
    return DataLoss("XML line {}: a DOCTYPE, or over {} elements deep",
                    XML_GetCurrentLineNumber(parser.get()), kMaxDepth);
  }
  return DataLoss("XML line {}: {}", XML_GetCurrentLineNumber(parser.get()),
                  XML_ErrorString(XML_GetErrorCode(parser.get())));
}

}  // namespace leat::worker
