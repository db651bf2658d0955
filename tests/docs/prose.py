"""prose.py: facts in running text, looked up where they are true. What is checked:

    options         every option named exists, in the command that it is named for; every option is in its manual page,
                    with its letter, its value and its default
    exit statuses   those of a manual page are those of the command's help; no other number is called a status
    names           every SIMBA_… and simba_… exists: in the headers, in the environment, as a metric
    names of once   no other command of an example has them
    functions       every public function has a page in section 3, as soon as one has
    URLs            schemes and options exist
    messages        those of the table in the guide for troubleshooting are in tests/messages/collection.txt
    places          files, links with their anchors, targets of make, tests and scenarios exist
    durations       where a mark says so: <!-- fact: ttl margin --> or "; fact: ttl margin" in or before a paragraph,
                    whose text then has to have these values; "7.5 s" is right for 7.588 s. Names: tools/facts --names

A line with the mark "fact: none, REASON" is not looked at."""
import fnmatch
import os
import re
import subprocess

import commands
import documents
import sources as facts
import tables

FOREIGN = set("""caching_sha2_password rpl_semi_sync_master_timeout synchronous_standby_names err_after_x noun_verb
    simba_noun_verb max_connections wait_timeout""".split())
FROM_LIBRARIES = {"database is locked"}  # SQLite
OTHER_SCHEMES = {"http", "https", "dir", "file", "jdbc", "ssh", "unix"}
NAMED = re.compile(r"\bsimba (once|lock|elect|schedule) "
                   r"(?:(?:-u|--url|--id|--per|-w|--wait|--every) \S+ |-[-\w]+ )*([a-z][\w.-]*)")
MARK = re.compile(r"(?:<!-- *|^\s*; )fact: *(.*?)(?: *-->| *$)")
DURATION = re.compile(r"(\d+(?:\.\d+)?)[ \u00a0]?(ms|min|s|h|day|d|m)?\b")
UNITS = {"ms": 1, "s": 1000, "min": 60000, "m": 60000, "h": 3600000, "d": 86400000, "day": 86400000}


class Text:
    """A document, line by line: (number, text, what it is in: a block's kind or None). scdoc's escapes are undone."""

    def __init__(self, name):
        self.name, self.is_man = name, name.endswith(".scd")
        self.lines, block, skip = [], None, False
        for number, line in enumerate(documents.read(name), 1):
            fence = re.match(r"^\s*```\s*([\w+-]*)", line)
            if fence:
                block = None if block is not None else fence.group(1) or "?"
                continue
            if self.is_man and block is None:
                line = re.sub(r"\\([_*\\])", r"\1", line)
            if skip or re.search(r"fact: *none\b", line):
                skip = self.is_man and line.lstrip().startswith(";")  # there the mark has a line of its own
                continue
            self.lines.append((number, line, block))

    def spans(self):
        """(number, text) of what is set as code or in bold."""
        for number, line, block in self.lines:
            if block is None and not line.lstrip().startswith(("; ", "<!--")):
                for span in re.findall(r"\*([^*\s][^*]*)\*" if self.is_man else r"`([^`]+)`", line):
                    yield number, span

    def commands(self):
        """(number, text) of what may be command lines of simba."""
        is_examples = False
        for number, line, block in self.lines:
            if line.startswith("# "):
                is_examples = line == "# EXAMPLES"
            if block is not None and re.match(r"\s*(\$ )?(sudo |exec )?simba\b", line):
                yield number, re.sub(r"^\s*\$ ", "", line)
            elif block is None and self.is_man and re.match(r"\t.*\bsimba " if is_examples else r"\*simba\b", line):
                yield number, re.sub(r"\*|(?<!\w)_|_(?!\w)|\+\+$", "", line).strip()
        for number, span in self.spans():
            if not self.is_man and re.match(r"(sudo |exec )?simba ", span):
                yield number, span

    def paragraphs(self):
        """(number, [lines]) between empty lines."""
        found, first = [], 0
        for number, line, block in self.lines + [(0, "", None)]:
            if line.strip() or block is not None:
                first = first if found else number
                found.append(line)
            elif found:
                yield first, found
                found = []

    def section(self, title):
        """The lines of a section of a manual page."""
        found, inside = [], False
        for _, line, _ in self.lines:
            if line.startswith("# "):
                inside = line[2:].strip() == title
            elif inside:
                found.append(line)
        return "\n".join(found)


class Checker:
    def __init__(self, s):
        self.s, self.wrong = s, []
        self.files = documents.tracked()
        self.texts = [Text(name) for name in documents.documents()]
        self.everything = "\n".join(s.text.values())
        self.words = set(re.findall(r"\w+", self.everything)) | set(self.files)
        listed = subprocess.run([s.build / "tests/contract", "--list"], stdout=subprocess.PIPE, text=True, check=False)
        self.words |= set(re.findall(r"\w+", listed.stdout))
        self.scenarios = {line[3:].strip() for name in self.files if re.match(r"tests/sim/scenarios/.*\.md", name)
                          for line in documents.read(name) if line.startswith("## ")}

    def say(self, text, number, what):
        self.wrong.append(f"{text.name}:{number}: {what}")

    # ---- the command line ----

    def own_options(self, command):
        return [o for o in self.s.commands.commands[command]["options"] if o["help"]]

    def check_command_lines(self, text):
        for number, line in text.commands():
            line = re.sub(r"…|\.\.\.", "", line)
            try:
                for words in commands.split(line):
                    rest = commands.simba_words(words)
                    if rest and re.match(r"-|[a-z]+$", rest[0]):
                        self.s.commands.parse([word.strip("[]|") or "x" for word in rest])
            except commands.Unknown as e:
                if "shell" not in str(e):
                    self.say(text, number, f"{e}: {line.strip()}")

    def check_options(self, text):
        page = re.fullmatch(r"man/simba-(\w+)\.1\.scd", text.name)
        others = "\n".join(body for name, body in self.s.text.items() if re.match(r"(tests|scripts|tools|model|bench)/", name))
        options = [o for c in self.s.commands.commands for o in self.s.commands.options(c)]
        every = {f"--{o['name']}" for o in options} | {f"-{o['letter']}" for o in options if o["letter"]}
        for number, span in text.spans():
            option = re.match(r"(--[a-z][a-z-]*|-[a-zA-Z])(?=[ =]|$)", span)
            if not option:
                continue
            option = option.group(1)
            if page and page.group(1) in self.s.commands.commands:
                if self.s.commands.find(page.group(1), option) is None and option not in every:
                    self.say(text, number, f"simba {page.group(1)} has no option {option}")
            elif option not in every and (text.is_man or not option.startswith("--") or f"{option}" not in others):
                self.say(text, number, f"no command has an option {option}")

    def check_manual(self, command):
        """Every option stands in the page of its command, with all that belongs to it."""
        name = "man/simba.1.scd" if command is None else f"man/simba-{command}.1.scd"
        text = next((t for t in self.texts if t.name == name), None)
        if text is None:
            self.wrong.append(f"{name}: there is no such page for simba {command}")
            return
        options = self.s.commands.common if command is None else self.own_options(command)
        for o in options:
            entry = self.entry(text, o["name"])
            if entry is None:
                self.wrong.append(f"{name}: option --{o['name']} is not in OPTIONS")
                continue
            number, head, body = entry
            if o["letter"] and f"*-{o['letter']}*" not in head:
                self.say(text, number, f"--{o['name']} has a short form, -{o['letter']}")
            if o["value"] and f"*--{o['name']}*{tables.man_value(o)}" not in head:
                self.say(text, number, f"--{o['name']} takes a value,{tables.man_value(o)}")
            default = re.search(r"\bdefault:? (\d[\w.]*|[A-Z]+\b)", o["help"])
            said = re.sub(r"(\d) (m?s)\b", r"\1\2", body)
            if default and "As for *simba-" not in body and default.group(1) not in said:
                self.say(text, number, f"--{o['name']} is {default.group(1)} by default")

    @staticmethod
    def entry(text, option):
        """(line, the term, what is said of it)"""
        for i, (number, line, _) in enumerate(text.lines):
            if line.startswith("*-") and f"*--{option}*" in line:
                body = []
                for _, more, _ in text.lines[i + 1:]:
                    if not more.startswith("\t"):
                        break
                    body.append(more.strip())
                return number, line, " ".join(body)
        return None

    def check_help(self):
        """What the help says of defaults and statuses is true, too: its words are written by hand."""
        d, text = self.s.durations(), self.s.text
        refresh = re.search(r"#define REFRESH_MS (\d+)", text["src/cli/commands/status.c"])
        bench = dict(re.findall(r"#define (FOR_MS|RATE) (\d+)", text["lab/bench/bench.c"]))
        jobs = re.search(r"\.jobs = (\d+)", text["tests/contract/main.c"])
        torture = dict(re.findall(r"#define (PROCESSES|MUTEXES|LENGTH_MS) (\d+)", text["lab/torture/command.c"]))
        keep = re.search(r"HISTORY_KEEP_MS \(INT64_C\((\d+)\) \* 24 \* 3600 \* 1000\)", text["src/serve/history.h"])
        defaults = {"keep": float(keep.group(1)) * 24 * 3600 * 1000, "ttl": d["ttl"], "transition": d["transition"], "kill-after": d["kill_after_limit"],
                    "processes": float(torture["PROCESSES"]), "mutexes": float(torture["MUTEXES"]),
                    "rate": float(bench["RATE"]), "jobs": jobs and float(jobs.group(1)),
                    "initial-delay": 0, "at-least": 0, "signal": None}
        statuses = set(self.s.commands.statuses)
        for command in [None, *self.s.commands.commands]:
            options = self.s.commands.common if command is None else self.own_options(command)
            where = f"simba {command or ''}".strip()
            for o in options:
                said = re.search(r"\bdefault:? (\d+(?:\.\d+)?)(ms|min|s|m|h)?\b", o["help"] or "")
                real = defaults.get(o["name"])
                if o["name"] == "every" and command != "schedule":
                    real = refresh and float(refresh.group(1))
                if o["name"] == "for":
                    real = float({"bench": bench["FOR_MS"], "torture": torture["LENGTH_MS"]}[command])
                if said and real is None:
                    self.wrong.append(f"{where} --help: --{o['name']}: {said.group(0)}: what is it really? see check_help()")
                elif said and not is_said(real, *said.groups("")):
                    self.wrong.append(f"{where} --help: --{o['name']}: {said.group(0)}, but it is {facts.show(real)}")
                for status in re.findall(r"exit with (\d+)|instead of (\d+)", o["help"] or ""):
                    if int("".join(status)) not in statuses:
                        self.wrong.append(f"{where} --help: --{o['name']}: simba never ends with {''.join(status)}")
            for status, _ in tables.statuses_of(self.s, command) if command else []:
                if status not in statuses | {0, 1, None}:
                    self.wrong.append(f"{where} --help: simba never ends with {status}")

    # ---- exit statuses ----

    def check_statuses(self, text):
        known = set(self.s.commands.statuses) | {0, 1, 128}
        pattern = (r"(?:\bexit(?:s|ed)?(?: status| code| with)?|\b[Ss]tatus|\bends? with(?: status)?)(?: of)? "
                   r"[*`]?(\d{1,3})\b(?![.\d]| ?(?:m?s|%)\b)")
        for number, line, block in text.lines:
            if block is None:
                for status in re.findall(pattern, line):
                    if int(status) not in known:
                        self.say(text, number, f"simba never ends with {status}")
        for number, lines in text.paragraphs():
            if not text.is_man and re.match(r"\|.*\bstatus\b", lines[0]):
                for i, line in enumerate(lines[2:], number + 2):
                    cell = re.match(r"\| *`?(\d+)`? *\|", line)
                    if cell and int(cell.group(1)) not in known:
                        self.say(text, i, f"simba never ends with {cell.group(1)}")
        page = re.fullmatch(r"man/simba-(\w+)\.1\.scd", text.name)
        said = {int(n) for n in re.findall(r"\*(\d+)\*", text.section("EXIT STATUS"))} - {128}
        if not said <= known:
            self.wrong.append(f"{text.name}: EXIT STATUS: simba never ends with {sorted(said - known)}")
        if page and page.group(1) in self.s.commands.commands:
            named = set(re.findall(r"\*simba (\w+)\*", text.section("SYNOPSIS"))) | {page.group(1)}
            named &= set(self.s.commands.commands)
            helped = {n for c in named for n, _ in tables.statuses_of(self.s, c) if n is not None} - {128}
            if helped and said != helped:
                self.wrong.append(f"{text.name}: EXIT STATUS has {sorted(said)}, "
                                  f"the help of {', '.join(sorted(named))} {sorted(helped)}")

    # ---- names ----

    def check_names(self, text):
        headers = "\n".join(self.s.headers.values())
        defined = set(re.findall(r"\bSIMBA_\w+", headers)) | set(facts.ENVIRONMENT) | {e for e, _, _ in self.s.errors()}
        building = "".join(body for name, body in self.s.text.items() if re.match(r"CMake|cmake|scripts|tests", name))
        defined |= set(re.findall(r"\bSIMBA_\w+", building))
        metrics = self.s.metric_names() | set(re.findall(r'"(simba_\w+)", "(?:gauge|counter)"', self.s.text["src/serve/rows.c"]))
        lower = set(re.findall(r"\bsimba_\w+", headers)) | metrics | set(re.findall(r"\bsimba_\w+", "".join(
            self.s.text[n] for n in self.s.text if n.endswith((".sql", ".cmake")) or n == "CMakeLists.txt")))
        for number, line, block in text.lines:
            if block not in (None, "?", "sh", "console", "c", "ini"):
                continue
            for name in re.findall(r"\bSIMBA_\w+", line):
                is_part = name.endswith("_") and any(d.startswith(name) for d in defined)
                if name not in defined and not is_part:
                    self.say(text, number, f"there is no {name}")
            for name in re.findall(r"(?<![\w/.-])simba_\w+", line):
                is_part = name.endswith("_") and any(d.startswith(name) for d in lower)
                if name not in lower and name not in FOREIGN and not is_part:
                    self.say(text, number, f"there is no {name}")

    def check_functions(self):
        """Every public function has a page, as soon as the first one has."""
        pages = [t for t in self.texts if re.fullmatch(r"man/\w+\.3\.scd", t.name)]
        named = "\n".join(line for t in pages for _, line, _ in t.lines)
        missing = [f for f in self.s.functions() if not re.search(rf"\b{f}\b", named)]
        if any(t.name != "man/libsimba.3.scd" for t in pages):
            self.wrong += [f"include/simba.h: {f} is in no page of section 3" for f in missing]
        elif missing:
            print(f"facts: note: without a page of section 3 yet: {', '.join(missing)}")

    def check_reasons_of_states(self):
        """Each stands in the page of struct simba_state."""
        enum = re.search(r"enum simba_reason \{(.*?)\};", self.s.headers["include/simba.h"], re.S).group(1)
        page = "\n".join(documents.read("man/simba_owner.3.scd"))
        self.wrong += [f"man/simba_owner.3.scd: *{name}* is a reason, too" for name in re.findall(r"\bSIMBA_\w+(?=[,\s])", enum)
                       if f"*{name}*" not in page]

    def check_environment(self):
        in_code, listed = self.s.environment_in_code(), set(facts.ENVIRONMENT)
        for name in sorted(in_code - listed):
            self.wrong.append(f"tests/docs/sources.py: the code knows the variable {name}, ENVIRONMENT does not")
        for name in sorted(listed - in_code):
            self.wrong.append(f"tests/docs/sources.py: nothing in src/ knows the variable {name} of ENVIRONMENT")
        manual = "\n".join(line for t in self.texts if t.is_man for _, line, _ in t.lines)
        for name in sorted(in_code):
            if name.startswith("SIMBA_") and name not in manual:
                self.wrong.append(f"man: the variable {name} is in no page")

    def check_reasons(self):
        """What SIMBA_REASON may be stands in a table here, and in the help of the command that sets it."""
        said = re.findall(r"released, expired[\w, ]*", facts.ENVIRONMENT["SIMBA_REASON"][1])
        if not said or f"SIMBA_REASON: {said[0]}." not in self.s.text["src/cli/commands/elect.c"].replace('"\n    "', ""):
            self.wrong.append(f"tests/docs/sources.py: SIMBA_REASON is not what simba elect --help says: {said}")

    def check_messages(self, text):
        """A table "it says" has parts of messages that there are; those of libraries are in FROM_LIBRARIES."""
        messages = "\n".join(documents.read("tests/messages/collection.txt")).lower()
        for number, lines in text.paragraphs():
            if not re.match(r"\| it says \|", lines[0]):
                continue
            for at, line in enumerate(lines[2:], number + 2):
                for said in re.findall(r"\*([^*]+)\*", line.split("|")[1]):
                    parts = ".*".join(re.escape(part.strip()) for part in said.lower().split("…"))
                    if said not in FROM_LIBRARIES and not re.search(parts, messages):
                        self.say(text, at, f"no message says {said!r}")

    def check_names_of_once(self, text):
        """simba once takes whoever owns NAME for one who runs CMD: in examples its NAME is no other command's."""
        seen = {}
        for number, line, block in text.lines:
            for command, name in NAMED.findall(line) if block else []:
                first = seen.setdefault(name, command)
                if first != command and "once" in (first, command):
                    self.say(text, number, f"simba {command} has the NAME {name!r} of simba {first}: give it its own")

    # ---- URLs ----

    def check_urls(self, text):
        schemes = self.s.schemes()
        common = set(facts.COMMON_OPTIONS)
        for number, line, _ in text.lines:
            line = re.sub(r"\*(?=[:?/@])|(?<=[:?/@\]])\*", "", line) if text.is_man else line
            pattern = r"(?<![\w+])([a-z][a-z0-9+]*)://[^\s`'\"?<>()*]*(?:\?([^\s`'\"<>()*]*))?"
            for scheme, query in re.findall(pattern, line):
                if scheme not in schemes:
                    if scheme not in OTHER_SCHEMES:
                        self.say(text, number, f"no store has the scheme {scheme}:")
                    continue
                if scheme in OTHER_SCHEMES:
                    continue
                known = set(self.s.lists.get(f"option.{schemes[scheme]}", [])) | common
                for option in re.findall(r"(?:^|&)([a-z_]+)=", query):
                    if option not in known:
                        self.say(text, number, f"{scheme}: has no option {option}")

    # ---- places ----

    def exists(self, path):
        path = re.sub(r"^\./", "", path.rstrip("/"))
        if any(part in path for part in "*["):
            return any(fnmatch.fnmatch(name, path) or fnmatch.fnmatch(name, "*/" + path) for name in self.files)
        return any(f"/{path}/" in f"/{name}/" for name in self.files)

    def check_places(self, text):
        for number, line, block in text.lines:
            if block is not None:
                continue
            for target in re.findall(r"\]\(([^)\s]+)\)", line) if not text.is_man else []:
                self.check_link(text, number, target)
            for title in re.finditer(r'"(?=(?:T\d\w*|C\d+): )', line):
                known = any(line.startswith(s + '"', title.end()) for s in self.scenarios)
                if text.name.startswith("docs/") and not known:
                    self.say(text, number, f"there is no scenario {line[title.end():].split(chr(34))[0]!r}")
        makefile = (documents.ROOT / "Makefile").read_text(encoding="utf-8")
        for number, span in text.spans():
            target = re.match(r"make ([a-z]+)\b", span)
            if target and not re.search(rf"^{target.group(1)}\b.*:", makefile, re.M):
                self.say(text, number, f"make has no target {target.group(1)}")
            is_path = re.fullmatch(r"(?:[\w*.-]+/)+[\w*.-]+\.(?:c|h|md|py|bats|lua|sql|sh)|"
                                   r"(?:src|tests|tools|scripts|examples|model|man|docs)/[\w*./-]+", span)
            is_example = re.search(r"[A-Z]{3,}", re.sub(r"README|CONTRIBUTING", "", span))  # tests/cli/FILE.bats
            if is_path and not is_example and not self.exists(span):
                self.say(text, number, f"there is no file {span}")

    def check_link(self, text, number, target):
        if re.match(r"\w+:", target):
            return
        path, _, anchor = target.partition("#")
        here = os.path.dirname(text.name)
        whole = os.path.normpath(os.path.join(here, path)) if path else text.name
        if not (documents.ROOT / whole).exists():
            self.say(text, number, f"the link {target} leads nowhere")
        elif anchor and whole.endswith(".md"):
            heads = [re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", line.lstrip("# "))).strip().lower().replace(" ", "-")
                     for line in documents.read(whole) if re.match(r"#+ ", line)]
            if anchor not in heads:
                self.say(text, number, f"{whole} has no heading for #{anchor}")

    def check_identifiers(self, text):
        """Names of functions, tests, fields … in code: something is called so, in the sources or in a block here."""
        if text.is_man:
            return
        own = set(re.findall(r"\w+", " ".join(line for _, line, block in text.lines if block is not None)))
        for number, span in text.spans():
            if re.search(r"://|^[-~/$]|\s", span.strip()) or not re.fullmatch(r"[\w().*>-]+", span):
                continue
            for name in re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]*)+", span):
                ends_open = name.endswith("_") or f"{name}*" in span
                if name in self.words or name in own or name in FOREIGN or name.startswith("simba_"):
                    continue
                if not (ends_open and any(word.startswith(name.rstrip("_")) for word in self.words)):
                    self.say(text, number, f"nothing is called {name}")

    # ---- figures ----

    def check_figures(self, text):
        values = self.s.durations()
        for number, lines in text.paragraphs():
            marks = [(number + i, m) for i, line in enumerate(lines) for m in MARK.findall(line)]
            whole = MARK.sub("", "\n".join(lines))
            for at, mark in marks:
                for name in re.split(r"[ ,]+", mark):
                    if name not in values:
                        self.say(text, at, f"there is no fact {name}; tools/facts --names shows them")
                    elif not any(is_said(values[name], *said) for said in re.findall(DURATION, whole)):
                        self.say(text, at, f"{name} is {facts.show(values[name])}, or {values[name]:g}: not so here")

    def check_defaults(self, text):
        """Where a paragraph speaks of defaults, "ttl 10 s" is one, without a mark."""
        values = self.s.durations()
        for number, lines in text.paragraphs():
            whole = "\n".join(lines)
            if re.search(r"\bdefaults?\b", whole):
                pattern = (r"(?<![\w?&-])(ttl|transition|connect_timeout|command_timeout|drain)[`*]*:? (?:is |of )?\(?"
                           r"(\d+(?:\.\d+)?) ?(ms|s)\b")
                for name, *said in re.findall(pattern, whole):
                    if not is_said(values[name], *said):
                        self.say(text, number, f"by default {name} is {facts.show(values[name])}, not {' '.join(said)}")

    def check_version(self, text):
        for number, line, _ in text.lines:
            for version in re.findall(r"\b[Vv]ersion (\d+\.\d+\.\d+)\b", line):
                if text.name == "README.md" and version != self.s.commands.all["version"]:
                    self.say(text, number, f"this is version {self.s.commands.all['version']}")

    def check_mentions(self):
        for name in ("README.md", "man/simba.1.scd"):
            text = next((t for t in self.texts if t.name == name), None)
            whole = "\n".join(line for _, line, _ in text.lines) if text else ""
            for command in self.s.commands.commands:
                if command != "version" and not re.search(rf"[`*](simba )?{command}\b|simba {command}\b", whole):
                    self.wrong.append(f"{name}: simba {command} is not mentioned")


def is_said(value, number, unit):
    """Exactly; or, where it has more digits than are said, cut or rounded up."""
    digits = len(number.partition(".")[2])
    have, step = value / UNITS.get(unit, 1), 10.0 ** -digits
    if unit == "" and value >= 1000 and value % 1 == 0 and float(number) == value:
        return True
    exact = abs(have / step - round(have / step)) < 1e-6
    return abs(have - float(number)) < (1e-6 if exact else step)


def check(s):
    c = Checker(s)
    c.check_environment()
    c.check_functions()
    c.check_help()
    c.check_reasons()
    c.check_reasons_of_states()
    c.check_mentions()
    for command in [None, *(name for name in s.commands.commands if name != "version")]:
        c.check_manual(command)
    for text in c.texts:
        for one in (c.check_command_lines, c.check_options, c.check_statuses, c.check_names, c.check_urls,
                    c.check_places, c.check_identifiers, c.check_messages, c.check_figures, c.check_defaults, c.check_version,
                    c.check_names_of_once):
            one(text)
    return c.wrong
