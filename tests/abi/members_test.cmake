# SPDX-License-Identifier: Apache-2.0
# mge_members() reads names, kinds and marks of all members. cmake -DSOURCE=... -DFOLDER=... -P members_test.cmake
include(${SOURCE}/sdk/cmake/members.cmake)

file(WRITE ${FOLDER}/members.h [=[
/* A table; with a list: {1, 2}. */
typedef struct mge_x_api {
  uint32_t struct_size;
  uint32_t minor;
  mge_code (*open)(uint32_t index, /* of a device; >= 0 */ mge_device** out); /* [one] */
  /* [optional] Returns a number; see
   * below. [any] */
  int32_t (*begin)(mge_queue* queue, void (*body)(void* context, uint64_t chunk));
  int32_t (*end)(mge_queue* queue); /* [optional, with begin] */
  void (*close)(mge_device* device);
  const mge_y_api* y; /* [optional] */
  /* [optional if nothing has state] */
  void (*state)(void);
  int32_t perm[8];
  double min, max; /* both 0: no range */
} mge_x_api;
]=])
mge_members(${FOLDER}/members.h found)
set(expected
    "mge_x_api|struct_size|value|required" "mge_x_api|minor|value|required" "mge_x_api|open|function|required"
    "mge_x_api|begin|function|optional" "mge_x_api|end|function|with begin" "mge_x_api|close|function|required"
    "mge_x_api|y|table|optional" "mge_x_api|state|function|optional" "mge_x_api|perm|value|required"
    "mge_x_api|min|value|required" "mge_x_api|max|value|required")
if(NOT found STREQUAL expected)
  message(FATAL_ERROR "found:\n${found}\nexpected:\n${expected}")
endif()
