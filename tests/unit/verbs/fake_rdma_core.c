/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library with every symbol that the seam needs, under their versions, whose
 * functions only note who was called. -DWITHOUT_IOVA2 makes an older one, that
 * lacks all that the seam can do without.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *called = "";
static uint64_t third;

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *fake_called(void) { return called; }
EXPORT uint64_t fake_third_argument(void) { return third; }

/* Four integer registers serve for any of the real signatures. */
#define FAKE(name)                                                     \
  EXPORT intptr_t name(intptr_t a, intptr_t b, intptr_t c, intptr_t d, \
                       intptr_t e) {                                   \
    (void)a, (void)b, (void)c, (void)e;                                \
    called = #name;                                                    \
    third = (uint64_t)d;                                               \
    return 0;                                                          \
  }

FAKE(ibv_get_device_list)
FAKE(ibv_free_device_list)
FAKE(ibv_get_device_name)
FAKE(ibv_open_device)
FAKE(ibv_close_device)
FAKE(ibv_query_device)
FAKE(ibv_query_port)
FAKE(ibv_query_gid)
FAKE(ibv_get_async_event)
FAKE(ibv_ack_async_event)
FAKE(ibv_event_type_str)
FAKE(ibv_wc_status_str)
FAKE(ibv_alloc_pd)
FAKE(ibv_dealloc_pd)
FAKE(ibv_reg_mr)
#ifndef WITHOUT_IOVA2
FAKE(ibv_reg_mr_iova2)
FAKE(_ibv_query_gid_ex)
FAKE(rdma_init_qp_attr)
FAKE(rdma_establish)
#endif
FAKE(ibv_dereg_mr)
FAKE(ibv_create_comp_channel)
FAKE(ibv_destroy_comp_channel)
FAKE(ibv_create_cq)
FAKE(ibv_destroy_cq)
FAKE(ibv_get_cq_event)
FAKE(ibv_ack_cq_events)
FAKE(ibv_create_qp)
FAKE(ibv_modify_qp)
FAKE(ibv_query_qp)
FAKE(ibv_destroy_qp)
FAKE(rdma_create_event_channel)
FAKE(rdma_destroy_event_channel)
FAKE(rdma_get_cm_event)
FAKE(rdma_ack_cm_event)
FAKE(rdma_event_str)
FAKE(rdma_create_id)
FAKE(rdma_destroy_id)
FAKE(rdma_bind_addr)
FAKE(rdma_resolve_addr)
FAKE(rdma_resolve_route)
FAKE(rdma_listen)
FAKE(rdma_connect)
FAKE(rdma_accept)
FAKE(rdma_reject)
FAKE(rdma_disconnect)
FAKE(rdma_set_option)
FAKE(rdma_create_qp)
FAKE(rdma_create_qp_ex)
FAKE(rdma_destroy_qp)
