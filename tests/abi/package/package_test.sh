#!/bin/sh
# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
#
# package_test.sh SOURCE_DIR BUILD_DIR LIBDIR CC: installs, builds the example
# plugin and a host outside of the tree, by pkg-config and by CMake, and lets
# every host run with every plugin.
set -eu
source_dir=$1 build_dir=$2 libdir=$3 cc=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix=$dir/prefix
cmake --install "$build_dir" --prefix "$prefix" >"$dir/log" 2>&1 || {
  cat "$dir/log"
  exit 1
}
mkdir "$dir/out"
cp "$source_dir/plugin/example/example.c" "$source_dir/tests/abi/package/host.c" \
  "$source_dir/tests/abi/package/CMakeLists.txt" "$dir/out"
cd "$dir/out"
unset MIG_TRANSPORT_PLUGIN_PATH

echo "== by pkg-config"
export PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig"
pc() { pkg-config "$@" mig-transport; }
flags="-std=c11 -Wall -Wextra -Werror"
mkdir pc
# Unquoted below: flags are words.
$cc $flags $(pc --cflags) -fPIC -shared -fvisibility=hidden example.c \
  -o pc/example.so
$cc $flags $(pc --cflags) host.c $(pc --libs) \
  -Wl,-rpath,"$(pc --variable=libdir)" -o pc/host
$cc $flags $(pc --cflags) host.c -Wl,-Bstatic $(pc --static --libs) \
  -Wl,-Bdynamic -o pc/host_static
test "$(pc --variable=abi_version)" = 1
plugindir=$(pc --variable=plugindir)
test -f "$plugindir/example.so"

echo "== by CMake"
cmake -S . -B cmake -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
  -DCMAKE_BUILD_TYPE=Release >"$dir/log" 2>&1 &&
  cmake --build cmake >"$dir/log" 2>&1 || {
  cat "$dir/log"
  exit 1
}

echo "== every host with every plugin"
for host in pc/host pc/host_static cmake/host cmake/host_static; do
  for plugin in pc/example.so cmake/example.so "$plugindir/example.so"; do
    case $plugin in /*) ;; *) plugin=./$plugin ;; esac
    "$host" "$plugin" example:package
  done
  MIG_TRANSPORT_PLUGIN_PATH=$plugindir "$host" example example:package
done
if pc/host none example:package 2>"$dir/log"; then
  echo "FAILED: a host ran without a plugin"
  exit 1
fi
grep -q "none.so: No such file" "$dir/log"
if grep -q "$build_dir" "$dir/log"; then
  echo "FAILED: an installed loader looks into the build tree:"
  cat "$dir/log"
  exit 1
fi
test ! -f "$source_dir/abi/mig_transport.7" ||
  test -f "$prefix/share/man/man7/mig_transport.7"
