"""tables.py: text that is generated into the documents, between

    <!-- generated: KIND ARGS -->      and  <!-- end generated -->      in Markdown,
    ; generated: KIND ARGS             and  ; end generated             in scdoc.

Kinds: options CMD, exit statuses [CMD], environment [CMD|simba], metrics, url options STORE, defaults,
figures [TTL TRANSITION], errors, schemes, contract tests. What an option of a URL means is said in the document, and
kept; all other words are the code's."""
import re

import documents
import sources as facts
from sources import show

BEGIN = re.compile(r"^\s*(?:<!-- *generated: *(.*?) *-->|; generated: *(.*?)) *$")
END = re.compile(r"^\s*(?:<!-- *end generated *-->|; end generated) *$")
TO_DESCRIBE = "(what it does)"


class Page:
    """Markdown or scdoc: how a table and a list of terms are written there."""

    def __init__(self, is_man):
        self.is_man = is_man

    def plain(self, text):
        """Words of the code, with nothing in them that would be markup."""
        if self.is_man:
            return re.sub(r"([*_\\])", r"\\\1", text)
        text = re.sub(r"([*_|<])", r"\\\1", text)
        return re.sub(r"(?<![`\w-])(--?[a-zA-Z][\w-]*|~/[\w./-]+|READY=1)", r"`\1`", text)

    def code(self, text):
        return f"*{self.plain(text)}*" if self.is_man else f"`{text}`"

    def value(self, text):
        return f"_{self.plain(text)}_" if self.is_man else text

    def table(self, head, rows):
        if not self.is_man:
            return [f"| {' | '.join(head)} |", "|" + "---|" * len(head)] + [f"| {' | '.join(row)} |" for row in rows]
        lines = []
        for n, row in enumerate([[cell and f"*{cell}*" for cell in head]] + rows):
            for m, cell in enumerate(row):
                lines.append(f"{('[' if n == 0 else '|') if m == 0 else ':'}{'[' if n == 0 else ' '} {cell or '–'}")
        return lines

    def terms(self, head, rows):
        """rows: (term, words)"""
        if not self.is_man:
            return self.table(head, [list(row) for row in rows])
        lines = []
        for term, words in rows:
            lines += [term, "\t" + sentence(words), ""]
        return lines[:-1]


def sentence(words):
    first = words[:1] if words.startswith("simba ") else words[:1].upper()
    return first + words[1:] + ("" if words.endswith((".", "…")) else ".")


def man_value(o):
    """What follows an option's name in a man page."""
    value = o["value"] or ""
    return f"[=_{value[1:-1]}_]" if value.startswith("[") else f" _{value}_" if value else ""


def option_head(page, o):
    names = ([page.code("-" + o["letter"])] if o["letter"] else []) + [page.code("--" + o["name"])]
    if o["value"] and not page.is_man:
        value = f"[={o['value'][1:]}" if o["value"].startswith("[") else f" {o['value']}"
        names[-1] = f"`--{o['name']}{value}`"
    return ", ".join(names) + (man_value(o) if page.is_man else "")


def options(s, page, args, _):
    own = s.commands.common if args == ["simba"] else s.commands.commands[args[0]]["options"]
    return page.terms(["option", "what it does"],
                      [(option_head(page, o), page.plain(o["help"])) for o in own if o["help"]])


def statuses_of(s, command):
    """[(status, words)] as the command's own help says it."""
    text = re.sub(r"\s+", " ", s.commands.commands[command]["help"].split("\n\nExamples")[0])
    match = re.search(r"Exit status: (.*)", text)
    if not match:
        return []
    found = []
    for part in re.split(r"[;.] ", match.group(1)):
        case = re.match(r"(?:With [-\w]+: )?(\d+),? (.*?)\.?$", part)
        if case:
            found.append((int(case.group(1)), case.group(2)))
        elif re.match(r"(?:With [-\w]+: )?CMD's own, ", part):
            found.append((None, part.partition("CMD's own, ")[2]))
        elif re.match(r"0\b", part):
            found.append((0, part[1:].strip(" ,.")))
    return found


def exit_statuses(s, page, args, _):
    rows = statuses_of(s, args[0]) if args else sorted(s.commands.statuses.items())
    if args and not rows:
        raise documents.Wrong(f"simba {args[0]} --help says nothing of its exit status")
    return page.terms(["status", "meaning"], [(page.code(str(n)) if n is not None else "CMD's own", page.plain(words))
                                              for n, words in rows])


def environment(_, page, args, __):
    wanted = {"CMD": [facts.SET], "simba": [facts.READ, facts.OTHERS]}[args[0]] if args else None
    rows = [(page.code(name), page.plain(words), who) for name, (who, words) in facts.ENVIRONMENT.items()
            if wanted is None or who in wanted]
    if wanted is not None:
        return page.terms(["variable", "meaning"], [row[:2] for row in rows])
    return page.table(["variable", "what for", "meaning"], [[name, who, words] for name, words, who in rows])


def metrics(s, page, _, __):
    return page.table(["metric", "type", "labels", "meaning"],
                      [[page.code(name), kind, ", ".join(page.code(label) for label in labels), page.plain(words)]
                       for name, kind, words, labels in s.metrics()])


def url_options(s, page, args, before):
    """Names and defaults are the code's; what an option does is said in the document, and kept, and so are the order of
    the rows, several options in one row, and words around a default."""
    store, rows, missing = args[0], [], list(s.url_options(args[0]))
    if f"scheme.{store}" not in s.lists:
        raise KeyError(store)
    for line in before:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        names = [name.replace("\\", "") for name in re.findall(r"[`*]([\w\\]+)[`*]", cells[0])]
        if len(cells) < 3 or not names or not set(names) <= set(missing):
            continue
        if cells[2] in ("", TO_DESCRIBE):
            raise documents.Wrong(f"option {names[0]} of {store}: say what it does")
        for name in names:
            missing.remove(name)
            default = s.url_default(store, name)
            if default is not None and not is_in(default, cells[1]):
                cells[1] = page.code(default.replace(" ", ""))
        rows.append(cells[:3])
    rows += [[page.code(name), page.code(s.url_default(store, name) or "none"), TO_DESCRIBE] for name in missing]
    rows.append([", ".join(page.code(name) for name in facts.COMMON_OPTIONS),
                 ", ".join(show(s.durations()[name]) for name in facts.COMMON_OPTIONS), "as for every store"])
    return page.table(["option", "default", "what it does"], rows)


def is_in(default, cell):
    """250 ms is in `250ms`, on in "on, off for this machine"; the lease is called ttl + transition, too."""
    plain = re.sub(r"[`*\\]", "", cell)
    if default == "lease":
        return "lease" in plain or "ttl + transition" in plain
    word = re.escape(default.replace(" ", ""))
    return re.search(rf"(?<![\w.]){word}(?![\w.])", plain) is not None or default in plain


def defaults(s, page, _, __):
    d = s.durations()
    lease = f"ttl + transition from {show(d['lease_min'])} to {show(d['lease_max'])}"
    rows = [
        ("ttl", show(d["ttl"]), lease),
        ("transition", show(d["transition"]), "0 or more"),
        ("renew", f"ttl/{d['renew_part']:g}, {show(d['renew'])}", "not longer than the ttl"),
        ("connect_timeout", show(d["connect_timeout"]), f"1 ms to {show(d['lease_max'])}"),
        ("command_timeout", show(d["command_timeout"]), f"1 ms to {show(d['command_timeout_max'])}"),
        ("drain", show(d["drain"]), ""),
        ("drift", f"{d['drift_ppm'] / 10000:g} %", f"0 to {d['drift_ppm_max'] / 10000:g} %"),
        ("jitter_early, jitter_late", f"{show(d['jitter_early'])}, {show(d['jitter_late'])}",
         f"0 to {show(d['jitter_max'])}"),
        ("kill-after", f"{show(d['kill_after_limit'])}, or lease/{d['kill_after_part']:g} if that is less",
         f"with the default lease up to {show(d['kill_after_max'])}"),
        ("name of a mutex", "", f"1 to {d['mutex']:g} bytes"),
        ("id", "made from host, process and chance", f"1 to {d['id']:g} bytes"),
        ("URL", "", f"up to {d['url']:g} bytes"),
        ("threads for callbacks", f"ended after {show(d['threads_idle'])} without work", f"1 to {d['threads']:g}"),
    ]
    return page.table(["what", "default", "limits"], [[page.plain(cell) for cell in row] for row in rows])


def figures(s, page, args, _):
    if args:
        ms = [float(a[:-2]) if a.endswith("ms") else float(a.rstrip("s")) * 1000 for a in args]
        f = s.figures(int(ms[0]), int(ms[1]))
    else:
        f = s.figures()
    d = s.durations()
    rows = [
        ("ttl, transition", "options, or the URL", f"{show(f['ttl'])}, {show(f['transition'])}"),
        ("lease, as the store counts it", "ttl + transition", show(f["lease"])),
        ("end of the lease, as the owner counts it",
         f"sent + lease · (1 − drift) − {show(f['slack'])}; drift is {d['drift_ppm'] / 10000:g} %", show(f["lease_end"])),
        ("margin", f"min({show(f['margin_max'])}, max(transition/4, lease/10))", show(f["margin"])),
        ("owner until", "end of the lease − margin", show(f["owner_until"])),
        ("next renewal", f"renew_ms, else ttl/{f['renew_part']:g}; earlier if the store answered with less than a lease; "
         "less a random tenth", f"{show(f['renew_first'])} to {show(f['renew'])} after sent"),
        ("one renewal may take", f"min(command timeout, ttl/{f['attempt_part']:g})", show(f["attempt"])),
        ("one attempt to acquire or release may take", "min(command timeout, lease/2)", show(f["patience"])),
        ("pause after a failed renewal",
         f"doubles up to min({show(f['pause_limit'])}, ttl/{f['attempt_part']:g}), upper half random",
         f"{show(f['pause_min'])} to {show(f['pause_max'])}"),
        ("pause after a failed attempt to acquire", "doubles up to the ttl, upper half random",
         f"{show(f['backoff_min'])} to {show(f['backoff_max'])}"),
        ("waiters try again", "around the end of the lease, random", f"− {show(f['early'])} to + {show(f['late'])}"),
        ("outage that costs no tenure", "owner until − next renewal − one pause − one attempt", show(f["outage"])),
        ("outage that CMD of simba lock, elect and schedule does not notice", "the same − kill-after",
         show(f["outage_cmd"])),
        ("CMD gets TERM", "owner until − kill-after", f"{show(f['term_at'])} after sent"),
        ("takeover after a crash", "lease · (1 + drift) + late jitter after the last renewal, and one exchange",
         f"at most {show(f['takeover'])}"),
        ("kill-after", f"min({show(f['kill_after_limit'])}, lease/{f['kill_after_part']:g})", show(f["kill_after"])),
        ("drain limit", "option drain_ms", show(d["drain"])),
    ]
    return page.table(["what", "formula", "default" if not args else " ".join(args)],
                      [[page.plain(cell) for cell in row] for row in rows])


def errors(s, page, _, __):
    return page.table(["error", "code", "text"],
                      [[page.code(name), code, page.plain(words)] for name, code, words in s.errors()])


def schemes(s, page, _, __):
    by_store = {}
    for scheme, store in s.schemes().items():
        by_store.setdefault(store, []).append(scheme)
    return page.table(["store", "schemes"], [[store, ", ".join(page.code(scheme + ":") for scheme in names)]
                                             for store, names in by_store.items()])


def contract_tests(s, page, _, __):
    found = facts.shows(s)
    order = sorted(found, key=lambda tag: (not re.fullmatch(r"C\d+", tag), int(re.sub(r"\D", "", tag) or 0), tag))
    shown = {"contract": page.code, "unit": page.code, "scenario": '"{}"'.format, "simulator": str, "model": str}
    return page.table(["promise", "kind", "test"], [[tag, kind, show(test)] for tag in order
                                                    for kind, show in shown.items()
                                                    for test in found[tag].get(kind, [])])


KINDS = {"options": options, "exit statuses": exit_statuses, "environment": environment, "metrics": metrics,
         "url options": url_options, "defaults": defaults, "figures": figures, "errors": errors, "schemes": schemes,
         "contract tests": contract_tests}


def generate(s, document, what, before):
    for kind, make in KINDS.items():
        if what == kind or what.startswith(kind + " "):
            try:
                return make(s, Page(document.endswith(".scd")), what[len(kind):].split(), before)
            except (KeyError, IndexError, ValueError) as e:
                raise documents.Wrong(f"'generated: {what}': there is nothing such: {e}") from e
    raise documents.Wrong(f"'generated: {what}' is unknown; there are: {', '.join(KINDS)}")


def renew(s, document):
    """(lines as they are, lines as they should be, [wrong])"""
    lines, out, wrong, i = documents.read(document), [], [], 0
    while i < len(lines):
        out.append(lines[i])
        begin = BEGIN.match(lines[i])
        i += 1
        if not begin:
            continue
        end = next((n for n in range(i, len(lines)) if END.match(lines[n])), None)
        if end is None:
            wrong.append(f"{document}:{i}: 'generated:' has no end")
            continue
        before = [line for line in lines[i:end] if line.strip()]
        try:
            made = generate(s, document, begin.group(1) or begin.group(2), before)
            out += ["", *made, ""]
        except documents.Wrong as e:
            wrong.append(f"{document}:{i}: {e}")
            out += lines[i:end]
        i = end
    return lines, out, wrong
