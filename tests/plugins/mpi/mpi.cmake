# SPDX-License-Identifier: Apache-2.0
# Trainings on several processes that mpirun starts.
if(TARGET mge_backend_cpu)
  mge_test(plugins/mpi LINK mge_onnx nlohmann_json::nlohmann_json)
  add_dependencies(test_plugins_mpi mge_cli mge_backend_mpi mge_backend_cpu)
  target_sources(test_plugins_mpi PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/core/kvstore/simulated/cluster.cc)
  target_link_libraries(test_plugins_mpi PRIVATE mge_kvstore)
  # These wait for processes that are late or are ended.
  set(waiting Mpi.NamesAProcessThatIsLate:Mpi.EndsAllWithinSecondsIfAProcessDies:Mpi.EndsAllAtAnInterruptAndLeavesAWholeCheckpoint)
  # The measured times of sums, and those of the simulated cluster.
  set(measured SimulatedCluster.*)
  set_tests_properties(plugins_mpi PROPERTIES ENVIRONMENT GTEST_FILTER=-${waiting}:${measured})
  add_test(NAME plugins_mpi/measured COMMAND test_plugins_mpi)
  set_tests_properties(plugins_mpi/measured PROPERTIES LABELS long RUN_SERIAL ON ENVIRONMENT GTEST_FILTER=${measured})
  add_test(NAME plugins_mpi/waiting COMMAND test_plugins_mpi)
  set_tests_properties(plugins_mpi/waiting PROPERTIES LABELS long ENVIRONMENT GTEST_FILTER=${waiting})
  # Kills of processes at random times: a few by default, and many here.
  add_test(NAME plugins_mpi/kills COMMAND test_plugins_mpi)
  set(kills GTEST_FILTER=Mpi.ContinuesToTheSameBitsAfterKillsOfItsProcesses)
  set_tests_properties(plugins_mpi/kills PROPERTIES LABELS long TIMEOUT 3600 ENVIRONMENT "${kills};MGE_TEST_KILLS=200")
endif()
