# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
mig_add_plugin(rdma
  SOURCES counters.cc device_pool.cc plugin.cc probe.cc probe_caps.cc
    rails.cc session.cc session_blocks.cc session_caps.cc session_data.cc
    session_frames.cc session_progress.cc
  LIBS mig_rdma_control mig_rdma_data mig_soft_verbs mig_verbs
    mig_plugin_common Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(mig_plugin_rdma_objects PRIVATE
  MIG_PLUGIN_VERSION="${PROJECT_VERSION}")
