#!/bin/sh
# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
#
# privileged_test.sh SEARCH_DIRS PLUGINDIR: a setgid host ignores the plugin
# path of its user, and the build tree. 77 means skipped.
set -u
program=$1 plugindir=$2
if [ "$(id -u)" -ne 0 ]; then
  echo "skipped: only root can make a setgid program of another group"
  exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
cp "$program" "$dir/search_dirs"
export MIG_TRANSPORT_PLUGIN_PATH=/evil
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

plain=$(as_nobody "$dir/search_dirs") || exit 1
chgrp 1 "$dir/search_dirs" && chmod 2755 "$dir/search_dirs" || exit 1
privileged=$(as_nobody "$dir/search_dirs") || exit 1
if ! echo "$privileged" | grep -q '^privileged 1'; then
  echo "skipped: this file system or sandbox takes no setgid programs"
  exit 77
fi

fail() {
  echo "FAILED: $1" >&2
  echo "plain: $plain" >&2
  echo "privileged: $privileged" >&2
  exit 1
}
echo "$plain" | grep -q '^directory /evil$' ||
  fail "without privileges the variable counts"
echo "$privileged" | grep -q 'MIG_TRANSPORT_PLUGIN_PATH is ignored' ||
  fail "the error should say that the variable is ignored"
echo "$privileged" | grep -q '/evil' &&
  fail "with privileges the variable must not count"
[ "$(echo "$privileged" | grep '^directory')" = "directory $plugindir" ] ||
  fail "only the built-in directory may be searched"
exit 0
