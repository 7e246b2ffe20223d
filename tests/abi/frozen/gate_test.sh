#!/bin/sh
# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
#
# gate_test.sh CC CXX HEADER: the layout gate lets appended fields through, and
# nothing else (rule 1.2). Each case edits a copy of the header.
set -u
cc=$1 cxx=$2 header=$3
here=$(dirname "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

gate() { # compiler and flags
  "$@" -I"$dir" -I"$here" -c "$here/layout_gate.c" -o /dev/null 2>"$dir/log"
}

expect() { # passes|fails, what, sed script
  sed "$3" "$header" >"$dir/mig_transport.h"
  if [ -n "$3" ] && cmp -s "$header" "$dir/mig_transport.h"; then
    echo "FAILED: the edit '$2' changed nothing: adapt it to the header" >&2
    failed=1
  fi
  for compile in "$cc -std=c11" "$cxx -x c++ -std=c++17"; do
    # Unquoted: a compiler and its flags.
    if gate $compile; then result=passes; else result=fails; fi
    if [ $result != "$1" ]; then
      echo "FAILED: the gate $result with '$2' ($compile)" >&2
      cat "$dir/log" >&2
      failed=1
    fi
  done
}

expect passes "nothing" ''
expect passes "an op appended" \
  '/(\*session_error)/,/;/s/;$/; void (*appended)(void);/'
expect passes "a field appended" '/the host.s; -1 if none/s/$/ uint64_t appended;/'
expect passes "an event appended" \
  's/MIG_EVENT_PREPARING = 16/MIG_EVENT_APPENDED = 17, &/'
expect fails "an op put before others" \
  's/^  int32_t (\*round_begin)/  void (*inserted)(void);\n&/'
expect fails "two ops swapped" \
  's/(\*cancel)(/(*swap)(/; s/(\*wake)(/(*cancel)(/; s/(\*swap)(/(*wake)(/'
expect fails "an op removed" '/^  void (\*wake)/d'
expect fails "an op with another argument type" \
  's/(\*host_busy)(struct mig_session \*session, uint64_t/(*host_busy)(struct mig_session *session, uint32_t/'
expect fails "a field renamed" 's/^  int32_t system_errno;/  int32_t os_errno;/'
expect fails "a field of another sign" 's/^  int32_t code;  .*/  uint32_t code;/'
expect fails "a field resized" 's/char message\[496\]/char message[504]/'
expect fails "a wider range" 's/^  uint64_t reserved; .*/&\n uint64_t more;/'
expect fails "an error renumbered" 's/MIG_E_FAILED = -401/MIG_E_FAILED = -402/'
expect fails "a flag moved" \
  's/MIG_BLOCK_FD (1u << 2)/MIG_BLOCK_FD (1u << 4)/'
expect fails "another entry point" \
  's/(\*mig_transport_query_fn)(uint32_t host_abi_min,/(*mig_transport_query_fn)(uint64_t host_abi_min,/'
exit $failed
