# SPDX-License-Identifier: Apache-2.0
# Trainings on several processes that mpirun starts.
if(TARGET mge_backend_cpu)
  mge_test(plugins/mpi LINK mge_onnx nlohmann_json::nlohmann_json)
  add_dependencies(test_plugins_mpi mge_cli mge_backend_mpi mge_backend_cpu mge_backend_virtual)
endif()
