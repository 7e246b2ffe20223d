#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
"""Writes what an ABI header promises, as macro calls that the gate expands.

Run once for each major version, on its frozen header:
    ./make_layout.py mig_transport_v1.h >layout_v1.inc
"""
import re
import subprocess
import sys
import tempfile


def strip(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return text.replace("\\\n", " ")


def split_fields(body):
    """Yields (name, type) of each declaration in a struct's body."""
    for declaration in (" ".join(d.split()) for d in body.split(";")):
        function = re.match(r"(.*)\(\*(\w+)\)(\(.*\))$", declaration)
        array = re.match(r"(.*?)(\w+)(\[.*\])$", declaration)
        plain = re.match(r"(.*?)(\w+)$", declaration)
        if function:
            yield function[2], f"{function[1]}(*){function[3]}"
        elif array:
            yield array[2], f"{array[1].strip()}{array[3]}"
        elif plain:
            yield plain[2], plain[1].strip()


def constants(text):
    for body in re.findall(r"enum \w+ \{(.*?)\}", text, flags=re.S):
        yield from re.findall(r"(\w+)\s*=", body)
    yield from re.findall(r"#define (MIG_\w+)\s+\(?[-(0-9]", text)


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        text = strip(file.read())
    program = ['#include <stdio.h>', f'#include "{path}"', "int main(void) {"]
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text,
                                 flags=re.S | re.M):
        program.append(f'printf("\\nSTRUCT({name}, %zu)\\n", '
                       f"sizeof(struct {name}));")
        for field, kind in split_fields(body):
            program.append(
                f'printf("FIELD({name}, {field}, %zu, {kind})\\n", '
                f"offsetof(struct {name}, {field}));")
    program.append('puts("");')
    for name in constants(text):
        program.append(f'printf("VALUE({name}, %lldLL)\\n", (long long){name});')
    program += ["return 0;", "}"]
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["cc", "-x", "c", "-I.", "-o", directory + "/print", "-"],
                       input="\n".join(program).encode(), check=True)
        lines = subprocess.run([directory + "/print"], check=True,
                               capture_output=True).stdout.decode()
    print("/* SPDX-FileCopyrightText: 2026 the migtransport authors\n"
          " * SPDX-License-Identifier: BSD-2-Clause */\n"
          f"/* Made by make_layout.py from {path}; never changed. */\n"
          "/* clang-format off */")
    print(lines.strip("\n"))


main()
