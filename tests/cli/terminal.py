#!/usr/bin/env python3
"""Drives an interactive shell on a pseudo-terminal, as a person would: Ctrl-C, Ctrl-Z, fg, a pager.

terminal.py CASE: exits with 0 if the case went as it should; else says what was on the screen."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

SIMBA = os.environ["SIMBA"]
PATIENCE = 40


class Terminal:
    def __init__(self):
        env = dict(os.environ, PS1="ready> ", TERM="dumb", HISTFILE="")
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)
        self.seen = ""
        self.wait("ready> ")

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                pass

    def wait(self, pattern):
        """Until it is on the screen, after what was waited for before."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end():]
                return found
            if time.monotonic() > end:
                os.system("ps -o pid,ppid,pgid,tpgid,stat,wchan:24,args --ppid %d --pid %d >&2; ps -o "
                          "pid,ppid,pgid,tpgid,stat,wchan:24,args -C simba,simba-guard,less >&2" % (self.pid, self.pid))
                self.close()
                sys.exit("in vain: %r; on the screen: %r" % (pattern, self.seen))
            self.read(0.1)

    def type(self, text):
        os.write(self.fd, text.encode())

    def run(self, line):
        self.type(line + "\n")

    def close(self):
        try:
            os.kill(self.pid, signal.SIGHUP)
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except OSError:
            pass


def ctrl_c(t):
    """The terminal sends INT to both; CMD gets it once, and decides."""
    t.run(SIMBA + """ lock $M bash -c 'trap "echo hit; n=x\\$n" INT; echo up; until [ "$n" = xx ]; do sleep 0.1; done; exit 9'""")
    t.wait(r"[\nK]up")
    t.type("\x03")
    t.wait("hit")
    time.sleep(0.3)  # a second hit would end it here
    t.read(0.2)
    if "hit" in t.seen or "ready" in t.seen:
        sys.exit("one Ctrl-C came twice: %r" % t.seen)
    t.type("\x03")
    t.wait("ready> ")
    t.run("echo status $?")
    t.wait("status 9")


def ctrl_c_kills(t):
    # bash, since dash 0.5.12 loses an INT that comes while it starts a command
    t.run(SIMBA + " lock $M bash -c 'echo up; sleep 60; :'")
    t.wait(r"[\nK]up")
    t.type("\x03")
    t.wait("ready> ")
    t.run(SIMBA + " lock -n $M echo free again")
    t.wait(r"[\nK]free again")


def ctrl_z(t):
    """Stopped, in the foreground again, and CMD goes on under the lock."""
    t.run(SIMBA + " lock $M sh -c 'echo up; until [ -e go ]; do sleep 0.05; done; echo over'")
    t.wait(r"[\nK]up")
    t.type("\x1a")
    t.wait("Stopped")
    t.wait("ready> ")
    t.run(SIMBA + " lock -n $M true; echo status $?")
    t.wait("status 124")
    t.wait("ready> ")
    t.run("touch go; fg")
    t.wait(r"[\nK]over")
    t.wait("ready> ")
    t.run("echo status $?")
    t.wait("status 0")


def ctrl_z_too_long(t):
    """Stopped for longer than the lease: the guard, which nobody stopped, ends it."""
    t.run(SIMBA + " lock $SHORT_LEASE $M sh -c 'echo up; sleep 60'")
    t.wait(r"[\nK]up")
    t.type("\x1a")
    t.wait("Stopped")
    t.wait("no renewal for")
    t.run(SIMBA + " lock $M echo mine now")
    t.wait(r"[\nK]mine now")
    t.run("fg")
    t.wait("ready> ")
    t.run("echo status $?")
    t.wait("status 123")


def stop_job(t):
    """All of the foreground's group is stopped, by a signal that nobody can block."""
    t.run(SIMBA + " lock $SHORT_LEASE $M sh -c 'echo up; sleep 60'")
    t.wait(r"[\nK]up")
    os.killpg(os.tcgetpgrp(t.fd), signal.SIGSTOP)
    t.wait("Stopped")
    t.wait("no renewal for")
    t.run(SIMBA + " lock $M echo mine now")
    t.wait(r"[\nK]mine now")
    t.run("fg")
    t.wait("ready> ")
    t.run("echo status $?")
    t.wait("status 123")


def pager(t):
    """A pipeline in the foreground: the reader and CMD can both use the terminal."""
    t.run(SIMBA + " lock $M sh -c 'echo asks >/dev/tty; read -r word </dev/tty; echo got $word' | sed s/got/read/")
    t.wait(r"[\nK]asks")
    t.run("hello")
    t.wait(r"[\nK]read hello")
    t.wait("ready> ")


def less(t):
    t.run(SIMBA + " lock $M seq 1000 | TERM=vt100 less")
    t.wait("\n10\r")
    t.type("q")
    t.wait("ready> ")
    t.run(SIMBA + " lock -n $M echo free again")
    t.wait(r"[\nK]free again")


def background(t):
    t.run(SIMBA + " lock $M sh -c 'until [ -e go ]; do sleep 0.05; done; exit 3' &")
    t.wait("ready> ")
    t.run("touch go; wait %1; echo status $?")
    t.wait("status 3")


def waiting_line(t):
    """Who holds it, how long, and where; gone when it is ours."""
    t.run(SIMBA + " lock --id holder $M sh -c 'until [ -e go ]; do sleep 0.05; done' &")
    t.wait("ready> ")
    t.run("until " + SIMBA + " lock -qn $M true; test $? = 124; do :; done")
    t.wait("ready> ")
    t.run(SIMBA + " lock $M echo mine")
    line = t.wait(r"\x1b\[K(simba lock: waiting [0-9.]+s for '%s'( on %s)?: held by holder( for [0-9.]+s)?)\r" %
                  (os.environ["M"], os.environ["STORE"]))[1]
    if len(line) > 79:
        sys.exit("longer than the terminal is wide: %r" % line)
    t.type("\x03")
    t.wait("ready> ")
    t.run("echo status $?")
    t.wait("status 130")
    t.run("touch go")


def narrow(t):
    """Whatever is to be said, the line is never wider than the terminal."""
    columns = lambda n: fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, n, 0, 0))
    t.run(SIMBA + " lock --id " + "x" * 90 + " $M sleep 60 &")
    t.wait("ready> ")
    t.run("until " + SIMBA + " lock -qn $M true; test $? = 124; do :; done")
    t.wait("ready> ")
    t.run(SIMBA + " lock $M true")
    for width, pattern in ((80, "held by x+…"), (40, "…"), (400, "' on %s: held by x{90}" % os.environ["STORE"])):
        columns(width)
        t.wait(r"\x1b\[Ksimba lock: [^\r]*\r")  # it may be older
        line = t.wait(r"\x1b\[K(simba lock: waiting [^\r]*)\r")[1]
        if len(line) > width - 1 or not re.search(pattern, line):
            sys.exit("on %d columns: %r" % (width, line))
    t.type("\x03")


def hang_up(t):
    """The terminal goes away, and the job with it."""
    t.run(SIMBA + " lock $M sh -c 'echo $$ >cmd.pid; echo up; sleep 60'")
    t.wait(r"[\nK]up")
    os.close(t.fd)
    end = time.monotonic() + PATIENCE
    while os.path.exists("/proc/" + open("cmd.pid").read().strip()):
        if time.monotonic() > end:
            sys.exit("CMD lives on without its terminal")
        time.sleep(0.05)


terminal = Terminal()
globals()[sys.argv[1]](terminal)
terminal.close()
