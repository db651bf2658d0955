"""sources.py: facts, from where they are true: the built command (simba help --json), a program that prints what the
code computes (tests/docs/facts.c), and the sources themselves."""
import re
import subprocess

import commands
import documents

# What the environment means. That these are all variables, and no others, is checked against the sources.
READ, SET, OTHERS = "read", "set for CMD", "of others"
ENVIRONMENT = {
    "SIMBA_URL": (READ, "the URL of the store"),
    "SIMBA_TTL": (READ, "as --ttl"),
    "SIMBA_TRANSITION": (READ, "as --transition"),
    "SIMBA_ID": (READ, "as --id"),
    "SIMBA_INITIAL_DELAY": (READ, "how long to wait before the first attempt"),
    "SIMBA_LISTEN": (READ, "as --listen; CMD does not get it"),
    "SIMBA_LOG": (READ, "as --log"),
    "SIMBA_HISTORY": (READ, "the history file of simba history and simba serve"),
    "SIMBA_SERVE_HOST": (READ, "as --host of simba serve"),
    "SIMBA_MODULE_PATH": (READ, "the folder of the stores' modules, an absolute path"),
    "SIMBA_MUTEX": (SET, "the name of the mutex"),
    "SIMBA_CONTENDER_ID": (SET, "the owner's id"),
    "SIMBA_STORE": (SET, "the URL of the store, without a password"),
    "SIMBA_FENCING_TOKEN": (SET, "the token of the tenure"),
    "SIMBA_TICK": (SET, "only for simba schedule --every and --cron: the nominal time of the run, in UTC"),
    "SIMBA_REASON": (SET, "only for --on-released: released, expired, evicted or stalled"),
    "XDG_CONFIG_HOME": (OTHERS, "where simba/simba.yaml is looked for; else ~/.config"),
    "STATE_DIRECTORY": (OTHERS, "the folder of the default store, set by systemd"),
    "XDG_STATE_HOME": (OTHERS, "where the folder of the default store is; else ~/.local/state"),
    "HOME": (OTHERS, "for both of these"),
    "TMPDIR": (OTHERS, "where simba torture keeps its records meanwhile; else /tmp"),
    "NO_COLOR": (OTHERS, "if it is set and not empty: no colours"),
    "TERM": (OTHERS, "if it is dumb: no colours"),
    "NOTIFY_SOCKET": (OTHERS, "where systemd is told READY=1 and, with `WatchdogSec=`, WATCHDOG=1"),
    "WATCHDOG_PID": (OTHERS, "whom systemd watches, by `WatchdogSec=`: simba, if it is its number or not set"),
    "WATCHDOG_USEC": (OTHERS, "how often systemd has to be told WATCHDOG=1"),
    "JOURNAL_STREAM": (OTHERS, "set by systemd: whether lines on stderr go to the journal, and have a priority"),
}
# Between simba and the programs that it starts; a planted mistake, for a test of simba torture.
INTERNAL = {"SIMBA_TCK_URL", "SIMBA_GIVEN_URL", "SIMBA_TORTURE_PLANT"}
# Figures of stores and commands that the guides name, by "fact:": file, and what is defined there.
DEFINED = {
    "redis.batch": ("backend/redis/requests.h", "GROUP_MAX"),
    "redis.later_min": ("backend/redis/messages.c", "LATER_MIN_MS"),
    "redis.later_max": ("backend/redis/messages.c", "LATER_MAX_MS"),
    "redis.reserved": ("backend/redis/lua/reserved.lua", "RESERVED, RESERVED_MS = 'next:',"),
    "redis.row": ("backend/redis/subscriber.c", "ROW_MAX_MS"),
    "redis.upkeep": ("backend/redis/subscriber.c", "UPKEEP_MS"),
    "reconnect_first": ("backend/kit/reconnect.c", "FIRST_MS"),
    "reconnect_longest": ("backend/kit/reconnect.c", "LONGEST_MS"),
    "sql.poll_first": ("backend/sql/poller.c", "EARLY_MS"),
    "sql.poll_second": ("backend/sql/poller.c", "SOON_MS"),
    "sql.poll_behind": ("backend/sql/poller.c", "BEHIND_MS"),
    "sql.poll_evictions": ("backend/sql/poller.c", "EVICTIONS_MS"),
    "sql.locked": ("backend/sql/sql.h", "SQL_LOCKED_MS"),
    "sql.observed": ("backend/sql/sql.h", "SQL_OBSERVED_MS"),
    "sql.queue_first": ("backend/sql/queue_owned.c", "FIRST_MS"),
    "sql.queue_hold_back": ("backend/sql/queue.h", "QUEUE_HOLD_BACK_MS"),
    "sql.queue_mutexes": ("backend/sql/queue.h", "QUEUE_MUTEXES_MAX"),
    "sql.queue_unused": ("backend/sql/queue_waiter.c", "CONNECTION_UNUSED_MS"),
    "sql.pass_contested": ("backend/sql/pass.c", "CONTESTED_MS"),
    "sql.pass_times": ("backend/sql/pass.c", "CONTESTED_MAX"),
    "sql.pass_others_first": ("backend/sql/pass.c", "OTHERS_FIRST_MS"),
    "sqlite.observed": ("backend/sqlite/sqlite.c", "OBSERVED_MS"),
    "sqlite.poll_idle": ("backend/sqlite/sqlite.c", "POLL_IDLE_MS"),
    "zookeeper.doctor": ("backend/zookeeper/inspect.c", "WHOLE_MS"),
    "zookeeper.watch_own": ("backend/zookeeper/latch_session.c", "WATCH_OWN_MS"),
    "lock.absent": ("cli/run/hindrance.c", "ABSENT_MS"),
    "lock.silent": ("cli/run/hindrance.c", "SILENT_MS"),
    "history.gap": ("serve/recorder.c", "GAP_MS"),
    "serve.readers": ("serve/serve.c", "STREAMS"),
    "serve.list": ("serve/model.h", "LIST_LEAST_MS"),
}
COMMON_OPTIONS = ("ttl", "transition", "connect_timeout", "command_timeout")


def show(ms):
    """A duration as the documents write it: 250 ms, 14.838 s, 1 h."""
    ms = round(float(ms), 3)
    for unit, size in (("d", 86400000), ("h", 3600000), ("min", 60000)):
        if ms >= size and ms % size == 0:
            return f"{ms / size:g} {unit}"
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"


class Sources:
    def __init__(self, build):
        self.build = build
        self.commands = commands.Commands(build / "simba")
        self.values, self.lists = {}, {}
        for line in self.program():
            key, _, value = line.partition("\t")
            self.values[key] = value
            self.lists.setdefault(key, []).append(value)
        self.text = {name: (documents.ROOT / name).read_text(encoding="utf-8", errors="replace")
                     for name in documents.tracked()
                     if re.search(r"\.(c|h|py|bats|lua|sql|bash|cmake|in|json|map|pml|cpp|java)$|^Makefile$|"
                                  r"^CMakeLists.txt$|^(scripts|tools|model|tests)/.*(?<!\.gz)$", name)}
        self.headers = {name: self.text[name] for name in ("include/simba.h", "include/simba/backend.h")}

    def program(self, *arguments):
        made = subprocess.run([self.build / "tests/facts", *arguments], stdout=subprocess.PIPE, text=True, check=True)
        return made.stdout.splitlines()

    def figures(self, ttl=None, transition=None):
        """ms by name, of the default lease or of this one."""
        lines = self.program(str(ttl), str(transition)) if ttl is not None else \
            [f"{key}\t{value}" for key, value in self.values.items()]
        return {line.split("\t")[0][7:]: float(line.split("\t")[1]) for line in lines if line.startswith("figure.")}

    def durations(self):
        """Every duration that a mark "fact:" may name, in ms; and every number."""
        found = dict(self.figures())
        for key, value in self.values.items():
            group, _, name = key.partition(".")
            if group in ("limit", "default", "url") and re.fullmatch(r"-?\d+(\.\d+)?", value):
                found.setdefault(name, float(value))
        for name, (file, what) in DEFINED.items():
            value = re.search(rf"(?:#define|local) {re.escape(what)} (\d+)\b", self.text[f"src/{file}"])
            assert value, f"tests/docs/sources.py: src/{file} defines no {what}"
            found[name] = float(value.group(1))
        return found

    def errors(self):
        return [(key[6:], *value.split(" ", 1)) for key, value in self.values.items() if key.startswith("error.")]

    def metrics(self):
        """(name, type, words, labels)"""
        lines, found = self.lists["metrics"], []
        for line in lines:
            head = re.match(r"# HELP (\S+) (.*)", line)
            if head:
                name, words = head.groups()
                kind = next(t.split()[3] for t in lines if t.startswith(f"# TYPE {name} "))
                sample = next((t for t in lines if re.match(re.escape(name) + r"(_bucket|_sum)?[{ ]", t)), "")
                labels = re.findall(r"[{,](\w+)=", sample)
                found.append((name, kind, words, [label for label in labels if label != "le"]))
        return found

    def metric_names(self):
        names = set()
        for name, kind, _, _ in self.metrics():
            ends = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}.get(kind, ())
            names |= {name} | {name + end for end in ends}
        return names

    def schemes(self):
        return {scheme: key[7:] for key, values in self.lists.items() if key.startswith("scheme.") for scheme in values}

    def url_options(self, store):
        """Those of the store itself; for postgres those that are not libpq's."""
        names = self.lists.get(f"option.{store}", [])
        return names[:4] if store == "postgres" else names

    def url_default(self, store, option):
        value = self.values.get(f"url.{store}.{option}")
        return show(value) if value and option == "poll" else value

    def environment_in_code(self):
        """Names of variables in the sources: in files that read the environment, and what CMD gets."""
        found = set()
        for name, text in self.text.items():
            if not name.startswith(("src/", "lab/")):
                continue
            if re.search(r"\b(secure_getenv|getenv|setenv)\(", text):
                found |= set(re.findall(r'\{?"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)"', text)) & \
                    (set(re.findall(r'getenv\("(\w+)"', text)) | set(re.findall(r'setenv\("(\w+)"', text))
                     | set(re.findall(r'\{"(SIMBA_\w+)"', text)) | set(re.findall(r'\w\("([A-Z_]{4,})"', text)))
            found |= set(re.findall(r'"(SIMBA_[A-Z_]+)="', text))
        return found - INTERNAL

    def functions(self):
        """Of the public header: all that a program calls."""
        text = re.sub(r"/\*.*?\*/", "", self.headers["include/simba.h"], flags=re.S)
        text = re.sub(r"^#.*(?:\\\n.*)*", "", text, flags=re.M)
        types = set(re.findall(r"typedef[^;]*?\b(simba_\w+)\(", text))
        return sorted(set(re.findall(r"\b(simba_\w+)\(", text)) - types)


def shows(sources):
    """{C1: {column: [what shows it]}}, from the tags in the tests: a comment "shows: C1 C5" right before a case of the
    contract suite or a unit test, or in a scenario; in the model with words, "shows: C1, what". What the simulator
    checks stands in the comments of its check.c: "C1: what"."""
    found = {}

    def add(tags, column, what):
        for tag in tags.split():
            found.setdefault(tag, {}).setdefault(column, []).append(what)
    for name, text in sorted(sources.text.items()):
        if re.match(r"tests/(contract|unit)/.*\.c$", name):
            column = "contract" if name.startswith("tests/contract") else "unit"
            for tags, rest in re.findall(r"/\* shows: ([\w ]+?) \*/\n(.*)", text):
                case = re.match(r"static void (\w+)\(", rest)
                if not case:
                    raise documents.Wrong(f"{name}: 'shows: {tags}' stands before what is no test: {rest}")
                add(tags, column, case.group(1))
        elif re.match(r"tests/sim/scenarios/.*\.md$", name):
            for section in re.split(r"^## ", text, flags=re.M)[1:]:
                for tags in re.findall(r"<!-- shows: ([\w ]+?) -->", section):
                    add(tags, "scenario", section.split("\n")[0].strip())
        elif name == "tests/sim/check.c":
            for comment in re.findall(r"^/\* (C\d+: .*?) \*/", text, flags=re.M | re.S):
                for tag, words in re.findall(r"(C\d+): (.*?)\.?(?= C\d+: |$)", re.sub(r"\s*\n \*\s*", " ", comment)):
                    add(tag, "simulator", words)
        elif re.match(r"model/.*\.pml$", name):
            for tags, words in re.findall(r"/\* shows: ([\w ]+?), (.*?) \*/", text):
                add(tags, "model", words)
    return found
