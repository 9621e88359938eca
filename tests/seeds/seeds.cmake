# SPDX-License-Identifier: Apache-2.0
# The table of the names of the seed pages, checked from outside.
if(MGE_PYTHON AND NOT MGE_SANITIZE)  # a library with a sanitizer cannot be loaded into Python
  add_test(NAME seeds COMMAND ${MGE_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/seeds/run.py --prefix ${PROJECT_BINARY_DIR})
  set_tests_properties(seeds PROPERTIES TIMEOUT 1800)
endif()
