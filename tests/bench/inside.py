# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
"""Inside the machine: measures, and says it. Started by tests/bench/run."""

import argparse
import json
import time

import migrations
import ratios
from peers import Machine, Program

MIB = 1 << 20
PAGE = 4096
HEADER = 16  # of a control frame, plugin/rdma/WIRE.md
PAYLOAD = 32  # of a message: it fits inline with its header
PINGS = 1000


class Bench:
    def __init__(self, arguments):
        self.bin = arguments.binaries
        self.pairs = arguments.pairs
        self.run_mib = arguments.run_mib
        self.guest_mib = arguments.guest_mib
        with open("/run/vm/topology", encoding="ascii") as file:
            self.machine = Machine(file.read().strip())
        self.rows = []

    def take(self, row):
        self.rows.append(ratios.take(row, self.pairs))

    def plugin(self, *options):
        return Program(f"{self.bin}/plugin_rounds", "--uri",
                       f"rdma://{self.machine.address}:0", *options)

    def raw(self):
        return Program(f"{self.bin}/raw_writes", "--address",
                       self.machine.address)

    def writes(self):
        """Rounds of guest memory against perftest and against a bare loop."""
        machine, mib = self.machine, self.run_mib
        plugin, raw = self.plugin(), self.raw()
        pages = mib * MIB // PAGE
        for warm in (plugin, raw):
            warm.speed("bulk", mib * MIB)
        self.take(ratios.Row(
            "RDMA bulk first round", "`ib_write_bw -s 1048576`", "MiB/s",
            lambda: plugin.speed("bulk", mib * MIB),
            lambda: machine.write_bandwidth("-s", "1048576", "-n", str(mib)),
            0.97))
        self.take(ratios.Row(
            "RDMA bulk first round", "raw loop, the same memory", "MiB/s",
            lambda: plugin.speed("bulk", mib * MIB),
            lambda: raw.speed("bulk", mib * MIB)))
        self.take(ratios.Row(
            "RDMA scattered 4 KiB", "`ib_write_bw -s 4096 -l 64 -Q 64`",
            "MiB/s", lambda: plugin.speed("pages", pages),
            lambda: machine.write_bandwidth("-s", "4096", "-l", "64", "-Q",
                                            "64", "-n", str(pages)), 0.95))
        self.take(ratios.Row(
            "RDMA scattered 4 KiB", "raw loop, the same pages", "MiB/s",
            lambda: plugin.speed("pages", pages),
            lambda: raw.speed("pages", pages), 0.95))
        ratios.say(f"   the plugin's last run: {json.dumps(plugin.last)}")
        ratios.say(f"   the raw loop's: {json.dumps(raw.last)}")
        plugin.close()
        raw.close()

    def round_trip(self, wait, options):
        """In microseconds, the median. A program of its own each time: one
        that spins takes a processor from the other."""
        program = self.plugin("--memory", str(4 * MIB), "--wait", wait,
                              "--options", options)
        program.ask("rtt", PINGS // 10, PAYLOAD)
        answer = program.ask("rtt", PINGS, PAYLOAD)
        program.close()
        return answer["p50_us"]

    def messages(self):
        size = HEADER + PAYLOAD
        for wait, way, events in (("spin", "polling", []),
                                  ("sleep", "sleeping", ["-e"])):
            for inline, option in ((size, ""), (0, "control-inline=0")):
                name = "inline" if inline else "not inline"
                words = ["-s", str(size), "-I", str(inline),
                         "-n", str(PINGS), *events]
                self.take(ratios.Row(
                    f"control RTT, {name}, {way}",
                    f"2 × `ib_send_lat {' '.join(words[:4] + events)}`", "µs",
                    lambda option=option, wait=wait:
                        self.round_trip(wait, option),
                    lambda words=words:
                        2 * self.machine.send_latency(*words),
                    1.15, at_most=True))

    def guests(self):
        """Whole migrations. QEMU's two ways of RDMA run once a pair for all
        rows, and the better one counts."""
        guest = migrations.Migrations(self.bin, self.machine.address,
                                      self.guest_mib)
        taken = {"best": [], "qemu rdma": [], "qemu rdma pin-all": []}

        def best():
            plain = guest.qemu("rdma")
            pinned = guest.qemu("rdma", "rdma-pin-all")
            taken["qemu rdma"].append(plain)
            taken["qemu rdma pin-all"].append(pinned)
            return max(plain, pinned)

        what = f"whole migration, {self.guest_mib} MiB"
        for name, option in (("pinned", "registration=pinned"),
                             ("dynamic", "registration=dynamic")):
            self.take(ratios.Row(
                f"RDMA {what}, {name}", "QEMU `rdma:`, the better of both",
                "MiB/s", lambda option=option: guest.ours("rdma", option),
                best, 1.5))
        for name in ("qemu rdma", "qemu rdma pin-all"):
            values = sorted(taken[name])
            ratios.say(f"   {name}: {values[0]:.1f} .. {values[-1]:.1f}, "
                       f"median {values[len(values) // 2]:.1f} MiB/s")
        self.take(ratios.Row(
            f"TCP {what}", "QEMU `tcp:`", "MiB/s", lambda: guest.ours("tcp"),
            lambda: guest.qemu("tcp")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--run-mib", type=int, default=64)
    parser.add_argument("--guest-mib", type=int, default=128)
    parser.add_argument("parts", nargs="*", help="writes messages guests")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    parts = arguments.parts or ["writes", "messages", "guests"]
    start = time.monotonic()
    for part in parts:
        getattr(bench, part)()
    seconds = time.monotonic() - start
    ratios.say(f"== {seconds:.0f} s in the machine, topology "
               f"{bench.machine.topology}, runs of {bench.run_mib} MiB\n")
    ratios.say(ratios.markdown(bench.rows))
    print("JSON " + json.dumps({
        "topology": bench.machine.topology, "seconds": seconds,
        "run_mib": bench.run_mib, "guest_mib": bench.guest_mib,
        "rows": [row.json() for row in bench.rows]}), flush=True)


main()
