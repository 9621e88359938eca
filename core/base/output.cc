// SPDX-License-Identifier: Apache-2.0
#include "core/base/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "core/base/errors.h"

namespace mge {

void HoldStandardFiles() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // open() returns the lowest free descriptor, which is `fd`.
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

int FlushOutput(int code) {
  const bool lost_before = std::ferror(stdout);
  if (std::fflush(stdout) == 0 && !lost_before) return code;
  std::fprintf(stderr, "mge: error[E%04d] standard output cannot be written\n", errors::kFileWrite.id);
  return code != 0 ? code : ExitCode(errors::kFileWrite.kind());
}

}  // namespace mge
