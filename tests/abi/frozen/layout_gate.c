/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate of the ABI (rule 1.2): compiles only while mig_transport.h keeps
 * every promise of version 1. Fields may be appended; nothing may move, change
 * its type or go away. Compiled as C and as C++.
 */
#include "mig_transport.h"

#ifdef __cplusplus
#include <type_traits>
#define HAS_TYPE(struct_name, field, ...) \
  std::is_same<decltype(struct_name::field), __VA_ARGS__>::value
#else
#include <assert.h>
#define HAS_TYPE(struct_name, field, ...)                                    \
  __builtin_types_compatible_p(__typeof__(((struct struct_name *)0)->field), \
                               __VA_ARGS__)
#endif

#define STRUCT(struct_name, bytes)                     \
  static_assert(sizeof(struct struct_name) >= (bytes), \
                "struct " #struct_name " lost a field or shrank");
#define FIELD(struct_name, field, offset, ...)                   \
  static_assert(offsetof(struct struct_name, field) == (offset), \
                "field " #struct_name "." #field " moved");      \
  static_assert(HAS_TYPE(struct_name, field, __VA_ARGS__),       \
                "field " #struct_name "." #field " changed its type");
#define VALUE(name, value) \
  static_assert((long long)name == (value), #name " changed its value");

#include "layout_v1.inc"

/* The two that hosts lay out themselves, for ever (rule 1.6). */
static_assert(sizeof(struct mig_range) == 32, "mig_range is frozen");
static_assert(sizeof(struct mig_iov) == 16, "mig_iov is struct iovec");

/* The entry point's type is part of the contract too. */
struct entry_point {
  mig_transport_query_fn query;
};
static_assert(HAS_TYPE(entry_point, query,
                       int32_t (*)(uint32_t, uint32_t,
                                   const struct mig_transport_ops **,
                                   struct mig_error *)),
              "mig_transport_query_fn changed its type");
