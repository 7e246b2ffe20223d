#!/bin/sh
# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
#
# exports_test.sh NAME MODULE ARCHIVE: each has one symbol to show, the module
# is never unloaded and asks for nothing at run time that it does not name.
set -u
name=$1 module=$2 archive=$3
failed=0

expect() { # what, got, wanted
  if [ "$2" != "$3" ]; then
    printf 'FAILED: %s has\n%s\ninstead of\n%s\n' "$1" "$2" "$3" >&2
    failed=1
  fi
}

expect "$module" "$(nm -D --defined-only "$module" | cut -d' ' -f2-)" \
  "T mig_transport_query"
expect "$archive" \
  "$(nm -g --defined-only "$archive" | grep -v ':$' | cut -d' ' -f2- |
    grep .)" \
  "T mig_transport_query_$name"
readelf -d "$module" | grep -q NODELETE || {
  echo "FAILED: $module is not linked with -z nodelete" >&2
  failed=1
}
if readelf -d "$module" | grep -qE 'TEXTREL|RPATH|RUNPATH'; then
  echo "FAILED: $module has text relocations or a run path" >&2
  failed=1
fi
exit $failed
