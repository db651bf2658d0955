"""shell.py: what a transcript runs in: a shell of its own, and private servers."""
import os
import pathlib
import re
import select
import signal
import subprocess

import documents
from compare import Failed, Skipped

STEP_SECONDS = 60
SERVER_OF = {"redis": "redis", "mysql": "mariadb", "postgres": "postgres", "zookeeper": "zookeeper"}
SCHEMES_OF = {"redis": "redis", "mysql": "mysql|mariadb", "postgres": "postgresql|postgres", "zookeeper": "zookeeper"}


class Server:
    """tests/servers/NAME runs a command with the URL; ours says it, and waits until we say that all is over."""

    def __init__(self, build, kind, folder):
        self.kind = kind
        said, over = folder / "url", folder / "over"
        os.mkfifo(said)
        os.mkfifo(over)
        env = dict(os.environ, SIMBA_MODULE_PATH=str(build / "modules"))
        self.process = subprocess.Popen(
            [documents.ROOT / "tests/servers" / SERVER_OF[kind], "sh", "-c", 'echo "$1" >"$2"; read -r x <"$3"', "-",
             "@URL@", said, over], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.over, self.url = over, None
        reader = os.open(said, os.O_RDONLY | os.O_NONBLOCK)
        try:
            self.url = self.hear(reader)
        finally:
            os.close(reader)

    def hear(self, reader):
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        ended = os.pidfd_open(self.process.pid)
        poll.register(ended, select.POLLIN)
        try:
            ready = dict(poll.poll(STEP_SECONDS * 1000))
        finally:
            os.close(ended)
        if reader in ready and ready[reader] & select.POLLIN:
            return os.read(reader, 4096).decode().strip()
        if self.process.poll() is None:
            self.process.terminate()
        why = self.process.communicate()[1].strip().split("\n")[-1]
        if self.process.returncode == 77:
            raise Skipped(why)
        raise Failed(f"the server for {self.kind} does not start: {why}")

    def close(self):
        if self.process.poll() is None:
            self.over.write_text("over\n")
        self.process.communicate()

    def pattern(self):
        return re.compile(rf"\b(?:{SCHEMES_OF[self.kind]})://[^\s'\"?,]*\b(?:localhost|db1)\b[^\s'\"?]*(\?[^\s'\"]*)?")

    def put(self, text):
        """The text with our server in place of the one at localhost or db1; and how to turn an output back."""
        said = None

        def ours(match):
            nonlocal said
            said = match.group(0)
            more = (match.group(1) or "")[1:]
            return self.url + (("&" if "?" in self.url else "?") + more if more else "")
        text = self.pattern().sub(ours, text)
        scheme, rest = self.url.split("?")[0].split("://")
        place = re.escape(rest.rpartition("@")[2])
        shown = re.compile(re.escape(scheme) + r"://(?:[^\s'\"/@]*@)?" + place + r"(\?[\w=&*./-]*)?")
        said = said and re.sub(r"(?<=:)[^:@/]+(?=@)", "***", said)  # as simba shows it
        return text, (lambda line: shown.sub(lambda _: said, line) if said else line)


SESSION = r"""
status=0
while IFS= read -r step <&ASK; do
    (exit "$status")
    . "$step" >"$step.out" 2>&1 </dev/null ASK<&- ANSWER>&-
    status=$?
    printf '%s %s\n' "$status" "$!" >&ANSWER
done
kill $(jobs -p) 2>/dev/null
wait
"""


class Session:
    """One shell for all transcripts of a document. A command is a file that it reads, and says when it is done."""

    def __init__(self, folder, env):
        self.folder, self.count = folder, 0
        ask, self.asks = os.pipe()
        self.answers, answer = os.pipe()
        # bash -c: no line of ours may be taken for input of a command.
        session = SESSION.replace("ASK", str(ask)).replace("ANSWER", str(answer))
        self.process = subprocess.Popen(["bash", "-c", session], cwd=env["PWD"],
                                        env=env, pass_fds=(ask, answer), stdin=subprocess.DEVNULL,
                                        start_new_session=True)
        os.close(ask)
        os.close(answer)

    def run(self, command):
        """What it prints, its status, and the number of the last process in the background."""
        self.count += 1
        step = self.folder / f"step.{self.count}"
        step.write_text(command + "\n")
        os.write(self.asks, f"{step}\n".encode())
        if not select.select([self.answers], [], [], STEP_SECONDS)[0]:
            raise Failed(f"$ {command}\n    did not end within {STEP_SECONDS} s; it printed:\n" + self.output(step))
        words = os.read(self.answers, 4096).decode().split()
        if not words:
            raise Failed(f"$ {command}\n    has ended the shell; it printed:\n" + self.output(step))
        return self.output(step), int(words[0]), int(words[1]) if len(words) > 1 else None

    def last_output(self):
        """What has come since from what the last command left running."""
        return self.output(self.folder / f"step.{self.count}")

    @staticmethod
    def output(step):
        return pathlib.Path(f"{step}.out").read_text(encoding="utf-8", errors="replace")

    def close(self):
        os.close(self.asks)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # a session of its own: nobody else is in it
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.answers)
