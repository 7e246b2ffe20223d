// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/abi_glue.h"

#include <array>
#include <cstdio>

namespace mig {

absl::Status CheckStruct(const void* object, uint32_t size, size_t least,
                         size_t known, const char* name) {
  MIG_RETURN_IF_ERROR(CheckElementSize(size, least, name));
  const auto* const bytes = static_cast<const unsigned char*>(object);
  if (size > known &&
      std::any_of(bytes + known, bytes + size,
                  [](unsigned char byte) { return byte != 0; })) {
    return MakeError(MIG_E_STRUCT_SIZE,
                     absl::StrCat(name, " has size ", size,
                                  " and sets fields beyond the ", known,
                                  " bytes that this plugin knows: leave them "
                                  "zero, or use a newer plugin"));
  }
  return absl::OkStatus();
}

absl::Status CheckElementSize(size_t size, size_t least, const char* name) {
  if (size >= least) return absl::OkStatus();
  return MakeError(MIG_E_STRUCT_SIZE, absl::StrCat(name, " has size ", size,
                                                   ": give at least ", least));
}

absl::Status NullArgument(const char* name) {
  return MakeError(MIG_E_ARGUMENT,
                   absl::StrCat("a null pointer was passed for ", name));
}

void CopyText(const std::string& text, char* to, size_t size, size_t* needed) {
  if (size > 0) {
    const size_t length = std::min(text.size(), size - 1);
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
  }
  if (needed != nullptr) *needed = text.size() + 1;
}

int32_t AnswerQuery(uint32_t host_abi_min, uint32_t host_abi_max,
                    const struct mig_transport_ops* table,
                    const struct mig_transport_ops** ops,
                    struct mig_error* error) {
  if (ops == nullptr) {
    return FillPlainError(MIG_E_ARGUMENT, "a null pointer for ops", error);
  }
  if (host_abi_min > MIG_ABI_VERSION || host_abi_max < MIG_ABI_VERSION) {
    std::array<char, 128> text;  // a query allocates nothing
    std::snprintf(text.data(), text.size(),
                  "the %s plugin speaks ABI version 1 only: use a host or a "
                  "plugin of the same major version",
                  table->name);
    return FillPlainError(MIG_E_VERSION, text.data(), error);
  }
  *ops = table;
  return MIG_OK;
}

}  // namespace mig
