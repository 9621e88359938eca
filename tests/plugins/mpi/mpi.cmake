# SPDX-License-Identifier: Apache-2.0
# Trainings on several processes that mpirun starts.
if(TARGET mge_backend_cpu)
  mge_test(plugins/mpi LINK mge_onnx nlohmann_json::nlohmann_json)
  add_dependencies(test_plugins_mpi mge_cli mge_backend_mpi mge_backend_cpu)
  # These wait for processes that are late or are ended.
  set(waiting Mpi.NamesAProcessThatIsLate:Mpi.EndsAllWithinSecondsIfAProcessDies:Mpi.EndsAllAtAnInterruptAndLeavesAWholeCheckpoint)
  set_tests_properties(plugins_mpi PROPERTIES ENVIRONMENT GTEST_FILTER=-${waiting})
  add_test(NAME plugins_mpi/waiting COMMAND test_plugins_mpi)
  set_tests_properties(plugins_mpi/waiting PROPERTIES LABELS long ENVIRONMENT GTEST_FILTER=${waiting})
  # Kills of processes at random times: a few by default, and many here.
  add_test(NAME plugins_mpi/kills COMMAND test_plugins_mpi)
  set(kills GTEST_FILTER=Mpi.ContinuesToTheSameBitsAfterKillsOfItsProcesses)
  set_tests_properties(plugins_mpi/kills PROPERTIES LABELS long TIMEOUT 3600 ENVIRONMENT "${kills};MGE_TEST_KILLS=200")
endif()
