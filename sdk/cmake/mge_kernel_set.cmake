# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=FOLDER -DFILES=a;b -DOUTPUT=HEADER -P mge_kernel_set.cmake
# Writes a header that defines MGE_KERNEL_SET, the hash of the names (relative to ROOT) and contents of these files.
set(text "")
list(SORT FILES)
foreach(file IN LISTS FILES)
  file(RELATIVE_PATH name ${ROOT} ${file})
  file(SHA256 ${file} hash)
  string(APPEND text "${name} ${hash}\n")
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "// Generated from the sources of the kernels.\n#define MGE_KERNEL_SET \"${hash}\"\n")
