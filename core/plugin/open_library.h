// SPDX-License-Identifier: Apache-2.0
// Opens the file of a backend with the dynamic linker, and says why it cannot be opened.
#pragma once

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <string>

#include "core/plugin/verdict.h"

namespace mge {

// Opens the file. If it cannot be opened, returns an empty handle and sets the verdict in `file`. If its static objects
// threw, returns a handle and sets `thrown` to the text of the exception.
boost::dll::shared_library OpenLibraryFile(PluginFile& file, std::string& thrown);

// Refuses a library whose static objects threw. The exception leaves the dynamic linker's lock with this thread, so other
// threads that open a library wait forever.
void CheckThrown(PluginFile& file, const std::string& thrown);

// Skips a file that this machine cannot use at present: no driver, no device, or no memory.
void CheckLack(PluginFile& file, VerdictCode code, std::string reason);

}  // namespace mge
