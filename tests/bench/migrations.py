# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
"""Whole migrations: QEMU's own, and ours of as many bytes."""

import json
import os
import socket
import subprocess
import tempfile
import time

from ratios import fail

LIMIT = 240  # seconds that one migration may take


class Monitor:
    """QEMU's control socket (QMP)."""

    def __init__(self, path, process):
        self.socket = socket.socket(socket.AF_UNIX)
        limit = time.monotonic() + 60
        while True:
            try:
                self.socket.connect(path)
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > limit:
                    fail("qemu does not start")
                time.sleep(0.05)
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self("qmp_capabilities")

    def __call__(self, command, **arguments):
        request = {"execute": command}
        if arguments:
            request["arguments"] = arguments
        print(json.dumps(request), file=self.file, flush=True)
        while True:
            answer = json.loads(self.file.readline())
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                fail(f"qemu, {command}: {answer['error']['desc']}")


class Qemu:
    """A paused guest, its memory a file that both sides have populated."""

    def __init__(self, folder, name, mebibytes, incoming):
        self.ram = f"{folder}/{name}.ram"
        path = f"{folder}/{name}.qmp"
        if os.path.exists(path):
            os.unlink(path)
        memory = (f"memory-backend-file,id=ram,size={mebibytes}M,prealloc=on,"
                  f"share=on,mem-path={self.ram}")
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-M", "q35,memory-backend=ram", "-object",
             memory, "-m", f"{mebibytes}M", "-accel", "tcg", "-nodefaults",
             "-no-user-config", "-display", "none", "-S",
             "-qmp", f"unix:{path},server=on,wait=off"]
            + (["-incoming", "defer"] if incoming else []),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.monitor = Monitor(path, self.process)

    def quit(self):
        self.monitor("quit")
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def fill(path, mebibytes):
    with open(path, "wb") as file:
        for _ in range(mebibytes):
            file.write(os.urandom(1 << 20))


def await_line(path, text, process):
    """Until a program that writes to the file has said it."""
    limit = time.monotonic() + 60
    while True:
        with open(path, encoding="utf-8") as file:
            said = file.read()
        if text in said:
            return
        if process.poll() is not None or time.monotonic() > limit:
            fail(f"{' '.join(process.args)}: {said}")
        time.sleep(0.02)


def same(one, other):
    return subprocess.run(["cmp", "-s", one, other], check=False).returncode == 0


class Migrations:
    """Of one size, each in MiB a second over the time that it says it took."""

    def __init__(self, binaries, address, mebibytes):
        self.binaries = binaries
        self.address = address
        self.mebibytes = mebibytes
        # Shared memory: of the machine's file systems the fastest.
        self.folder = tempfile.mkdtemp(prefix="mig-bench-", dir="/dev/shm")
        self.port = 7500
        self.parts = []  # of our own migrations, what took how long
        fill(f"{self.folder}/source.ram", mebibytes)

    def qemu(self, scheme, *capabilities):
        self.port += 1
        target = f"{self.folder}/destination.ram"
        with open(target, "wb") as file:
            file.truncate(self.mebibytes << 20)
        source = Qemu(self.folder, "source", self.mebibytes, False)
        destination = Qemu(self.folder, "destination", self.mebibytes, True)
        for side in (source, destination):
            side.monitor("migrate-set-capabilities", capabilities=[
                {"capability": name, "state": True} for name in capabilities])
            side.monitor("migrate-set-parameters",
                         **{"max-bandwidth": 100 << 30, "downtime-limit": 300})
        uri = f"{scheme}:{self.address}:{self.port}"
        destination.monitor("migrate-incoming", uri=uri)
        source.monitor("migrate", uri=uri)
        limit = time.monotonic() + LIMIT
        while True:
            state = source.monitor("query-migrate")
            # It is completed a moment before it knows how long that took.
            if state.get("status") in ("failed", "cancelled") or (
                    state.get("status") == "completed"
                    and state.get("total-time", 0) > 0):
                break
            if time.monotonic() > limit:
                fail(f"qemu over {uri} takes longer than {LIMIT} s")
            time.sleep(0.05)
        if state["status"] != "completed":
            fail(f"qemu over {uri}: {state}")
        source.quit()
        destination.quit()
        if not same(source.ram, target):
            fail(f"qemu over {uri}: the destination's memory differs")
        os.unlink(target)
        return self.mebibytes / (state["total-time"] / 1000)

    def ours(self, plugin, *options):
        """With the destination's memory populated before, as QEMU's is."""
        self.port += 1
        uri = f"{plugin}://{self.address}:{self.port}"
        size = f"{self.mebibytes}M"
        common = [uri, "--plugin", plugin, "--memory", size, "--after", "1",
                  "--json"]
        for option in options:
            common += ["--plugin-option", option]
        program = f"{self.binaries}/mig-host-sim"
        with open(f"{self.folder}/destination.log", "w+", encoding="utf-8") as log:
            destination = subprocess.Popen(
                [program, "destination", *common, "--prefault"],
                stdout=subprocess.DEVNULL, stderr=log)
            await_line(log.name, "listening", destination)
            done = subprocess.run(
                [program, "source", *common, "--workload", "idle"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                text=True, timeout=LIMIT)
            destination.wait(timeout=LIMIT)
        report = json.loads(done.stdout) if done.stdout else {}
        if done.returncode != 0 or not report.get("verified"):
            fail(f"{program} over {uri}: {done.stderr}{done.stdout}")
        self.parts.append({
            "plugin": plugin, "options": list(options),
            "total_ms": report["total_ms"],
            "rounds_ms": sum(round["ms"] for round in report["rounds"])})
        return self.mebibytes / (report["total_ms"] / 1000)
