// SPDX-License-Identifier: Apache-2.0
#include "core/cli/data_set.h"

#include <filesystem>

#include "fmt/format.h"

namespace mge::cli {

namespace fs = std::filesystem;

Status ReadDataSet(const Session& session, const std::string& folder, std::vector<Tensor>* inputs,
                   std::vector<Tensor>* outputs) {
  std::error_code ec;
  for (size_t i = 0; i < session.input_count(); ++i) {
    std::string path = fmt::format("{}/input_{}.pb", folder, i);
    if (!fs::exists(path, ec)) break;
    Tensor t;
    if (Status s = session.ReadInput(i, path).MoveTo(t); !s.ok()) return s;
    inputs->push_back(std::move(t));
  }
  for (size_t i = 0; i < session.output_count(); ++i) {
    std::string path = fmt::format("{}/output_{}.pb", folder, i);
    if (!fs::exists(path, ec)) break;
    Tensor t;
    if (Status s = session.ReadOutput(i, path).MoveTo(t); !s.ok()) return s;
    outputs->push_back(std::move(t));
  }
  return Status();
}

}  // namespace mge::cli
