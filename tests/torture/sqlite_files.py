#!/usr/bin/env python3
"""Several processes contend for one mutex on sqlite: while the store's files are removed, replaced,
overwritten, truncated, linked and restored, one or several at a time, and the processes killed and
stopped. judge.py then says whether two ever owned it at once, or tokens fell.

  tests/torture/sqlite_files.py [--seconds 30] [--workers 6] [--seed N] [--only TEXT] [--without TEXT]
                                [--contract build/tests/contract]

--only and --without choose faults by a part of their names. A process that is killed by SIGBUS is no
failure if PATH-shm was truncated during its life: docs/guides/sqlite.md says so of every SQLite
database. To see that there are no others: --without "-shm truncated"."""
import argparse
import collections
import contextlib
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

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import judge  # noqa: E402

ENDINGS = ("", "-wal", "-shm", "-live", "-tree", "-bell")
TTL_MS, TRANSITION_MS = 200, 100  # short, so that many tenures begin and end
NOBODY_S = 5  # without an owner, far longer than any lease
DAMAGED = ("malformed", "not a database", "another program")  # what the store says of a broken copy


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Peer:
    """One process with a contender (tests/contract/peer.h)."""

    def __init__(self, contract, url):
        self.began = now()
        self.process = subprocess.Popen(
            [contract, "--peer", url, "m", str(TTL_MS), str(TRANSITION_MS), "-1", "0", "sound"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.said = self.process.stdout.readline().strip()

    def ask_text(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if answer == "":
            raise EOFError
        return answer.strip()

    def ask(self, line):
        return int(self.ask_text(line).split()[0])


class Worker(threading.Thread):
    """Contends, holds for a while, gives it back; starts a new process when its own has died, and now
    and then although it has not."""

    def __init__(self, name, run, seed):
        super().__init__()
        self.name, self.run_of, self.random = name, run, random.Random(seed)
        self.lines, self.peer, self.generation, self.deaths = [], None, 0, []

    def run(self):
        while not self.run_of.over:
            peer = Peer(self.run_of.contract, self.run_of.url)
            if peer.said != "0":  # refused just now
                peer.process.wait()
                time.sleep(0.02)
                continue
            self.generation += 1
            self.peer = peer
            try:
                for _ in range(self.random.randrange(1, 30)):
                    if not self.run_of.over:
                        self.hold_once(peer)
            except (EOFError, BrokenPipeError):
                pass
            self.peer = None
            peer.process.stdin.close()
            code = peer.process.wait()
            if code not in (0, -signal.SIGKILL):
                self.deaths.append((code, peer.began))

    def hold_once(self, peer):
        peer.ask("start")
        token, until = 0, now() + 10**9
        while token == 0 and not self.run_of.over and now() < until:
            token = peer.ask("token")
            if token == 0:
                time.sleep(0.001)
        until = now() + self.random.choice((0, 10**7, 10**8, 6 * 10**8))
        while token != 0 and not self.run_of.over:
            before = now()
            if peer.ask(f"owns {token}") == 0:
                break
            self.lines.append(f"{self.name}.{self.generation} m {token} {before} {now()}")
            self.run_of.owned_at = before
            if before > until:
                break
            time.sleep(0.0005)
        peer.ask("stop")


class Run:
    def __init__(self, options, folder):
        self.contract, self.over, self.owned_at = options.contract, False, now()
        self.store, self.old, self.away = (os.path.join(folder, n) for n in ("store", "old", "away"))
        os.mkdir(self.store, 0o700)
        os.mkdir(self.old, 0o700)
        self.db, self.spare = os.path.join(self.store, "l.db"), os.path.join(self.old, "l.db")
        self.url = "sqlite:" + self.db
        self.random = random.Random(options.seed)
        self.shm_truncated, self.stuck, self.done = [], [], collections.Counter()
        self.workers = [Worker(f"w{i}", self, options.seed * 100 + i) for i in range(options.workers)]

    # ---- what happens to files: one that is not there just now is left out ----------------------

    def remove(self, *endings):
        for e in endings:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.db + e)

    def keep(self):
        for e in ENDINGS:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(self.db + e, self.spare + e)

    def overwrite(self, *endings):
        for e in endings:
            if os.path.exists(self.db + e) and os.path.exists(self.spare + e):
                shutil.copyfile(self.spare + e, self.db + e)

    def replace(self, *endings):
        for e in endings:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(self.spare + e, self.db + ".new")
                os.rename(self.db + ".new", self.db + e)

    def truncate(self, ending, is_halved=False):
        if ending == "-shm":
            self.shm_truncated.append(now())
        pages = os.path.getsize(self.db + ending) // 4096
        os.truncate(self.db + ending, pages // 2 * 4096 if is_halved else 0)

    def link(self, ending):
        os.link(self.db + ending, self.db + ".second")
        time.sleep(self.random.uniform(0, 0.5))
        os.unlink(self.db + ".second")

    def replace_folder(self):
        copy = self.store + ".new"
        shutil.copytree(self.old, copy)
        os.rename(self.store, self.away)
        os.rename(copy, self.store)
        shutil.rmtree(self.away)

    def restore(self):
        old = sqlite3.connect(f"file:{self.spare}?mode=ro&immutable=1", uri=True)
        store = sqlite3.connect(self.db, timeout=1)
        try:
            old.backup(store)
        finally:
            old.close()
            store.close()

    def write_back(self):
        store = sqlite3.connect(self.db, timeout=1)
        try:
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            store.close()

    # ---- what happens to processes --------------------------------------------------------------

    def signal(self, how):
        peer = self.random.choice(self.workers).peer
        if peer is None:
            return
        peer.process.send_signal(how)
        if how == signal.SIGSTOP:
            time.sleep(self.random.uniform(0.05, 0.8))
            peer.process.send_signal(signal.SIGCONT)

    def faults(self):
        each = {}
        for e in ENDINGS:
            name = e or "database"
            each.update({
                f"{name} removed": lambda e=e: self.remove(e),
                f"{name} replaced": lambda e=e: self.replace(e),
                f"{name} overwritten": lambda e=e: self.overwrite(e),
                f"{name} truncated": lambda e=e: self.truncate(e),
                f"{name} linked": lambda e=e: self.link(e),
            })
            if e != "":  # half a database is none
                each[f"{name} truncated by half"] = lambda e=e: self.truncate(e, True)
        each.update({
            "-wal and -shm removed": lambda: self.remove("-wal", "-shm"),
            "all beside removed": lambda: self.remove("-wal", "-shm", "-live", "-tree", "-bell"),
            "all but -live removed": lambda: self.remove("", "-wal", "-shm", "-tree", "-bell"),
            "all overwritten": lambda: self.overwrite(*ENDINGS),
            "all replaced": lambda: self.replace(*ENDINGS),
            "folder replaced": self.replace_folder,
            "older copies kept": self.keep,
            "restored": self.restore,
            "written back": self.write_back,
            "one killed": lambda: self.signal(signal.SIGKILL),
            "one stopped": lambda: self.signal(signal.SIGSTOP),
        })
        return each

    def strike(self, what, fault):
        print(f"{now()} {what}", flush=True)
        try:
            fault()
            self.done[what] += 1
        except (OSError, sqlite3.Error) as e:
            print(f"  {what}: {e}")

    def mend(self):
        """A copy that was made while the log was written back is no good database: then an operator
        begins with an empty one. Only the store's own word excuses that nobody owns, though nothing
        happens for so long."""
        since, end = self.owned_at, time.monotonic() + NOBODY_S
        if now() - since < NOBODY_S * 10**9:
            return
        while self.owned_at == since and time.monotonic() < end:
            time.sleep(0.01)
        if self.owned_at != since:
            return
        peer = Peer(self.contract, self.url)
        answer = peer.said if peer.said != "0" else peer.ask_text("read")
        peer.process.stdin.close()
        peer.process.wait()
        if not any(word in answer for word in DAMAGED):
            self.stuck.append(answer)
        print(f"  nobody owns: {answer}")
        self.strike("mended", lambda: self.remove("", "-wal", "-shm"))
        self.owned_at = now()

    def torture(self, seconds, faults):
        for w in self.workers:
            w.start()
        time.sleep(1)
        self.keep()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            what = self.random.choice(sorted(faults))
            self.strike(what, faults[what])
            time.sleep(self.random.choice((0, 0.01, 0.1, 0.3, 0.5)))
            self.mend()
        self.over = True
        for w in self.workers:
            w.join()

    def deaths(self):
        """Those that must not be, and how many others."""
        unlucky, bad = 0, []
        for code, began in (d for w in self.workers for d in w.deaths):
            if code == -signal.SIGBUS and any(t > began for t in self.shm_truncated):
                unlucky += 1
            else:
                bad.append(code)
        return bad, unlucky


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="")
    parser.add_argument("--without")
    parser.add_argument("--contract", default="build/tests/contract")
    options = parser.parse_args()
    judge.self_test()
    folder = tempfile.mkdtemp(prefix="torture.")
    print(f"seed {options.seed}, in {folder}")
    run = Run(options, folder)
    faults = {name: fault for name, fault in run.faults().items()
              if options.only in name and (options.without is None or options.without not in name)}
    run.torture(options.seconds, faults)
    lines = [line for w in run.workers for line in w.lines]
    with open(os.path.join(folder, "answers"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    found, count = judge.faults_of(lines)
    deaths, unlucky = run.deaths()
    for fault in found:
        print(fault)
    print(f"seed {options.seed}: {sum(run.done.values())} times something happened, {run.done['mended']} times "
          f"nobody owned until it was mended; {len(lines)} answers, {count} tenures, {len(found)} faults, "
          f"{len(deaths)} deaths {deaths}, {unlucky} by SIGBUS after -shm was truncated")
    for answer in run.stuck:
        print(f"nobody owned for {NOBODY_S} s without any fault, and the store only said: {answer}")
    if found or deaths or run.stuck:
        print(f"left to look at: {folder}")
        return 1
    if count < options.seconds:
        print("hardly anybody took turns: this shows nothing")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
