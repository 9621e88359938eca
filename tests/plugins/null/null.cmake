# SPDX-License-Identifier: Apache-2.0
mge_test(plugins/null LINK mge_plugin)
add_dependencies(test_plugins_null mge_backend_null)
