# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
"""What is measured: perftest, and the two programs of this folder."""

import json
import subprocess
import time

from ratios import fail

PERFTEST_TRIES = 5
PERFTEST_PORT = 18515
RUN_LIMIT = 120  # seconds that one run may take


def listening(port):
    """Whether a TCP socket of this machine listens there."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if words[1].endswith(wanted) and words[3] == "0A":
                    return True
    return False


class Machine:
    """The two hosts that one machine plays, by its topology."""

    def __init__(self, topology):
        # Address of the destination, its device, and the source's.
        table = {"one": ("10.7.0.1", "rxe0", "rxe0"),
                 "two-hosts": ("10.7.2.1", "rxe1", "rxe0"),
                 "siw": ("10.7.0.1", "siw0", "siw0")}
        if topology not in table:
            fail(f"topology {topology}: use one, two-hosts or siw")
        self.topology = topology
        self.address, self.device, self.source_device = table[topology]

    def perftest(self, program, *options):
        """Runs both sides; answers the words of the line with the figures.
        Side information goes over TCP, since the waiting side of -R spins,
        which takes a processor from the other."""
        common = ["-F", *options]
        common += ["-R"] if self.topology == "siw" else ["-x", "1"]
        server = subprocess.Popen([program, "-d", self.device, *common],
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        try:
            limit = time.monotonic() + 20
            while not (self.topology == "siw" or listening(PERFTEST_PORT)):
                if server.poll() is not None or time.monotonic() > limit:
                    server.kill()
                    fail(f"{program} does not listen: {server.stdout.read()}")
                time.sleep(0.02)
            if self.topology == "siw":
                time.sleep(2)
            client = subprocess.run(
                [program, "-d", self.source_device, *common, self.address],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                timeout=RUN_LIMIT, check=False)
            server.wait(timeout=RUN_LIMIT)
        finally:
            server.kill()
        lines = client.stdout.splitlines()
        for number, line in enumerate(lines[:-1]):
            if line.lstrip().startswith("#bytes"):
                return lines[number + 1].split()
        return fail(f"{program} {' '.join(common)} says: {client.stdout}")

    def write_bandwidth(self, *options):
        """The average, in MiB a second as perftest counts them. It measures the
        processor's clock first, and says 0 where it could not on a busy one."""
        for _ in range(PERFTEST_TRIES):
            speed = float(self.perftest("ib_write_bw", *options)[3])
            if speed > 0:
                return speed
        return fail(f"ib_write_bw {' '.join(options)} says 0 MB/s, "
                    f"{PERFTEST_TRIES} times: it can't measure the clock here")

    def round_trip(self, *options):
        """Twice ib_send_lat's half of one, in microseconds."""
        words = self.perftest("ib_send_lat", *options)
        return {"p50_us": 2 * float(words[4]), "min_us": 2 * float(words[2])}


class Program:
    """raw_writes or plugin_rounds, which stay for many runs."""

    def __init__(self, *command):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.answer()
        self.seed = 0
        self.last = {}

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            fail(f"{' '.join(self.command)} ended: see above")
        return json.loads(line)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        self.last = self.answer()
        return self.last

    def speed(self, kind, count):
        """Of one run over other pages than the last, in MiB a second."""
        self.seed += 1
        answer = self.ask(kind, count, self.seed)
        if not answer["equal"]:
            fail(f"{' '.join(self.command)}: the destination's memory differs")
        return answer["bytes"] / answer["seconds"] / 2**20

    def close(self):
        self.process.stdin.close()
        # A destination that is told of the end has nothing more to say here.
        self.process.wait(timeout=30)
