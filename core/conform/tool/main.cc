// SPDX-License-Identifier: Apache-2.0
// mge-conform, the program that `mge sdk test` executes. It is a separate program because it forks for every check, must
// have only one thread, and replaces malloc.
#include "core/conform/tool/entry.h"

int main(int argc, char** argv) { return mge_private_conform(argc, argv); }
