/* SPDX-License-Identifier: Apache-2.0
 * The contract in strict C99 and in older C++: compiled, never run. */
#include "mge/plugin.h"

MGE_PLUGIN_NOTE("strict", "1.0", "strict", MGE_ISA_AVX2);

mge_code mge_test_strict(const mge_query_in* in, mge_query_out* out);
mge_code mge_test_strict(const mge_query_in* in, mge_query_out* out) {
  out->reason.data = 0;
  out->reason.size = 0;
  return in->struct_size >= sizeof(mge_query_in) && in->header_hash == MGE_ABI_HASH ? MGE_OK : MGE_FAILED_PRECONDITION;
}
