# SPDX-License-Identifier: Apache-2.0
# mge_declarations(FILE OUTPUT): reads a C header without comments and without the white space that means nothing. Two headers with
# equal results declare the same, so that a comment or a line break does not make backends of the other header unusable.
function(mge_declarations file output)
  file(READ ${file} text)
  string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" " " text "${text}")
  string(REGEX REPLACE "//[^\n]*" " " text "${text}")
  string(REGEX REPLACE "\\\\\n" " " text "${text}")
  string(REGEX REPLACE "[ \t\r\n]+" " " text "${text}")
  string(REGEX REPLACE " ?([^A-Za-z0-9_ ]) ?" "\\1" text "${text}")
  string(STRIP "${text}" text)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()
