#!/usr/bin/env python3
"""Several processes contend for one mutex on sqlite: while the store's files are removed, replaced,
overwritten, truncated and restored, and the processes killed and stopped. judge.py then says whether
two ever owned it at once, or tokens fell.

  tests/torture/sqlite_files.py [--seconds 30] [--workers 4] [--seed N] [--contract build/tests/contract]"""
import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge  # noqa: E402

ENDINGS = ("", "-wal", "-shm", "-live", "-bell")


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Peer:
    """One process with a contender (tests/contract/peer.h)."""

    def __init__(self, contract, url):
        self.process = subprocess.Popen(
            [contract, "--peer", url, "m", "1000", "500", "-1", "0", "sound"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.said = self.process.stdout.readline().strip()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if answer == "":
            raise EOFError
        return int(answer.split()[0])


class Worker(threading.Thread):
    """Contends, holds for a while, gives it back; starts a new process when its own has died."""

    def __init__(self, name, run, seed):
        super().__init__()
        self.name, self.run_of, self.random = name, run, random.Random(seed)
        self.lines, self.peer, self.generation, self.deaths = [], None, 0, []

    def run(self):
        while not self.run_of.over:
            peer = Peer(self.run_of.contract, self.run_of.url)
            if peer.said != "0":  # refused just now
                peer.process.wait()
                time.sleep(0.1)
                continue
            self.generation += 1
            self.peer = peer
            try:
                while not self.run_of.over:
                    self.hold_once(peer)
            except (EOFError, BrokenPipeError):
                pass
            self.peer = None
            peer.process.stdin.close()
            code = peer.process.wait()
            if code not in (0, -signal.SIGKILL):
                self.deaths.append(code)

    def hold_once(self, peer):
        peer.ask("start")
        token, until = 0, now() + 10**9
        while token == 0 and not self.run_of.over and now() < until:
            token = peer.ask("token")
            time.sleep(0.001)
        until = now() + self.random.randrange(10**7, 2 * 10**9)
        while token != 0 and now() < until and not self.run_of.over:
            before = now()
            if peer.ask(f"owns {token}") == 0:
                break
            self.lines.append(f"{self.name}.{self.generation} m {token} {before} {now()}")
        peer.ask("stop")


class Run:
    def __init__(self, options, folder):
        self.contract, self.folder, self.over = options.contract, folder, False
        self.db = os.path.join(folder, "l.db")
        self.url = "sqlite:" + self.db
        self.random = random.Random(options.seed)
        self.workers = [Worker(f"w{i}", self, options.seed * 100 + i) for i in range(options.workers)]

    def remove(self, *endings):
        for e in endings:
            try:
                os.unlink(self.db + e)
            except FileNotFoundError:
                pass

    def keep(self):
        for e in ENDINGS:
            if os.path.exists(self.db + e):
                shutil.copyfile(self.db + e, self.db + ".old" + e)

    def overwrite(self, *endings):
        for e in endings:
            if os.path.exists(self.db + ".old" + e) and os.path.exists(self.db + e):
                shutil.copyfile(self.db + ".old" + e, self.db + e)

    def replace(self, *endings):
        for e in endings:
            if os.path.exists(self.db + ".old" + e):
                shutil.copyfile(self.db + ".old" + e, self.db + ".new")
                os.rename(self.db + ".new", self.db + e)

    def restore(self):
        shutil.copyfile(self.db + ".old", self.db + ".from")
        old = sqlite3.connect(self.db + ".from")
        store = sqlite3.connect(self.db, timeout=2)
        try:
            old.backup(store)
        except sqlite3.Error as e:
            print("  restore:", e)
        old.close()
        store.close()

    def truncate(self, ending, size):
        if os.path.exists(self.db + ending):
            os.truncate(self.db + ending, size)

    def kill(self, how):
        peer = self.random.choice(self.workers).peer
        if peer is None:
            return
        peer.process.send_signal(how)
        if how == signal.SIGSTOP:
            time.sleep(self.random.uniform(0.05, 2.5))
            peer.process.send_signal(signal.SIGCONT)

    def faults(self):
        return {
            "shm removed": lambda: self.remove("-shm"),
            "wal removed": lambda: self.remove("-wal"),
            "wal and shm removed": lambda: self.remove("-wal", "-shm"),
            "all beside removed": lambda: self.remove("-wal", "-shm", "-live", "-bell"),
            "database removed": lambda: self.remove("", "-wal", "-shm"),
            "only the database removed": lambda: self.remove(""),
            "live removed": lambda: self.remove("-live"),
            "older copies kept": self.keep,
            "database overwritten": lambda: self.overwrite(""),
            "wal overwritten": lambda: self.overwrite("-wal"),
            "all overwritten": lambda: self.overwrite(*ENDINGS),
            "database replaced": lambda: self.replace(""),
            "all replaced": lambda: self.replace(*ENDINGS),
            "restored": self.restore,
            "live truncated": lambda: self.truncate("-live", 0),
            "bell truncated": lambda: self.truncate("-bell", 0),
            "one killed": lambda: self.kill(signal.SIGKILL),
            "one stopped": lambda: self.kill(signal.SIGSTOP),
        }

    def torture(self, seconds):
        for w in self.workers:
            w.start()
        time.sleep(1)
        self.keep()
        faults, end = self.faults(), time.monotonic() + seconds
        while time.monotonic() < end:
            what = self.random.choice(sorted(faults))
            print(f"{now()} {what}", flush=True)
            faults[what]()
            time.sleep(self.random.choice((0, 0.01, 0.3, 1, 3)))
        self.over = True
        for w in self.workers:
            w.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--contract", default="build/tests/contract")
    options = parser.parse_args()
    judge.self_test()
    folder = tempfile.mkdtemp(prefix="torture.")
    print(f"seed {options.seed}, in {folder}")
    run = Run(options, folder)
    run.torture(options.seconds)
    lines = [line for w in run.workers for line in w.lines]
    with open(os.path.join(folder, "answers"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    faults, count = judge.judge(lines)
    deaths = [code for w in run.workers for code in w.deaths]
    for fault in faults:
        print(fault)
    print(f"seed {options.seed}: {len(lines)} answers, {count} tenures, {len(faults)} faults, "
          f"{len(deaths)} deaths {deaths}")
    if faults or deaths:
        print(f"left to look at: {folder}")
        return 1
    if count < 2:
        print("nobody took turns: this shows nothing")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
