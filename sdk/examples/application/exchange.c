/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares tensors with other libraries by DLPack: exchange
 * The struct goes to the other library. Here it comes back at once, as a tensor of its own that shares the memory. */
#include "example.h"

int main(void) {
  const int64_t dims[] = {2};
  mge_tensor *tensor = NULL, *shared = NULL, *old_shared = NULL;
  check(mge_tensor_create(MGE_DTYPE_F32, dims, 1, &tensor));

  /* DLPack 1 and later: the struct says whether the tensor may be written. */
  struct DLManagedTensorVersioned* managed = NULL;
  check(mge_tensor_to_dlpack(tensor, &managed));
  check(mge_tensor_from_dlpack(NULL, NULL, managed, &shared)); /* NULL: memory of the host. Owns `managed` now */

  /* The struct of older libraries. */
  struct DLManagedTensor* old = NULL;
  check(mge_tensor_to_old_dlpack(tensor, &old));
  check(mge_tensor_from_old_dlpack(NULL, NULL, old, &old_shared));

  ((float*)mge_tensor_data(tensor))[1] = 7;
  mge_tensor_release(tensor); /* the memory lives as long as a tensor that shares it */
  printf("shared: %g and %g\n", ((float*)mge_tensor_data(shared))[1], ((float*)mge_tensor_data(old_shared))[1]);
  mge_tensor_release(shared);
  mge_tensor_release(old_shared);
  return 0;
}
