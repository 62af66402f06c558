// SPDX-License-Identifier: Apache-2.0
#include "core/file_kind.h"

namespace leat {

// The numbers are those of inode(7).
std::string_view FileKind(uint32_t mode) {
  switch (mode & 0170000) {
    case 0100000:
      return "a file";
    case 0040000:
      return "a directory";
    case 0010000:
      return "a named pipe";
    case 0140000:
      return "a socket";
    case 0020000:
      return "a character device";
    case 0060000:
      return "a block device";
    default:
      return "a file of an unknown kind";
  }
}

}  // namespace leat
