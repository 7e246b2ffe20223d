#!/bin/sh
# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
#
# header_test.sh HEADER: it compiles without a warning in every language that
# it promises, has no implicit padding, and includes nothing but two headers.
set -u
header=$1
failed=0

check() { # compiler language standard
  if ! echo "#include \"$header\"" | "$1" -x "$2" -std="$3" -Wall -Wextra \
      -Wpadded -pedantic -Werror -fsyntax-only -; then
    echo "FAILED: $1 -std=$3" >&2
    failed=1
  fi
}

for standard in c11 c17; do
  check gcc c $standard
  check clang c $standard
done
for standard in c++17 c++20; do
  check g++ c++ $standard
  check clang++ c++ $standard
done

others=$(grep '^ *# *include' "$header" |
  grep -v -e '<stddef.h>' -e '<stdint.h>' -e '"mig_transport.h"')
if [ -n "$others" ]; then
  echo "FAILED: $header includes more than stddef.h and stdint.h: $others" >&2
  failed=1
fi
exit $failed
