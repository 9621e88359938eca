# SPDX-License-Identifier: Apache-2.0
# The ABI hash covers declarations: comments and white space do not change them, a declaration does.
# cmake -DSOURCE=... -DFOLDER=... -P declarations_test.cmake
include(${SOURCE}/sdk/cmake/declarations.cmake)

function(expect name equal changed)
  set(original "/* A pool. */\ntypedef struct mge_pool {\n  int32_t size; /* bytes; [0] is \"none\" */\n  const char* name;\n} mge_pool;\n")
  file(WRITE ${FOLDER}/original.h "${original}")
  file(WRITE ${FOLDER}/changed.h "${changed}")
  mge_declarations(${FOLDER}/original.h a)
  mge_declarations(${FOLDER}/changed.h b)
  if(equal AND NOT "${a}" STREQUAL "${b}")
    message(FATAL_ERROR "${name}: the declarations differ:\n${a}\n${b}")
  elseif(NOT equal AND "${a}" STREQUAL "${b}")
    message(FATAL_ERROR "${name}: the declarations are equal:\n${a}")
  endif()
endfunction()

expect("comments" YES "typedef struct mge_pool { // a pool\n int32_t size;\n /** the\n * name */ const char* name;\n} mge_pool;\n")
expect("white space" YES "typedef struct mge_pool\n{\n\tint32_t  size;\n  const char *name; }\nmge_pool;")
expect("a type" NO "typedef struct mge_pool {\n  int64_t size;\n  const char* name;\n} mge_pool;\n")
expect("a name" NO "typedef struct mge_pool {\n  int32_t size;\n  const char* title;\n} mge_pool;\n")
expect("a member" NO "typedef struct mge_pool {\n  int32_t size;\n  const char* name;\n  int32_t kind;\n} mge_pool;\n")

# The header itself is read whole: a comment that swallowed it would leave nothing to compare.
mge_declarations(${SOURCE}/sdk/include/mge/plugin.h all)
foreach(text IN ITEMS "typedef struct mge_plugin" "mge_candidate_sink")
  string(FIND "${all}" "${text}" at)
  if(at LESS 0)
    message(FATAL_ERROR "plugin.h: '${text}' is not among the declarations")
  endif()
endforeach()
