// SPDX-License-Identifier: Apache-2.0
#include "core/fd.h"

#include <unistd.h>

namespace leat {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Release();
  }
  return *this;
}

void Fd::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace leat
