"""compare.py: what a document shows against what was printed. What differs each time may, and nothing else."""
import re


class Failed(Exception):
    """A block is not as it says; the text has all that is needed to see why."""


class Skipped(Exception):
    """It cannot be tried here."""


AGE = r"\d+(?:\.\d+)?(?:ms|s|m\d*s?|h\d*m?|d)"
MASKS = [
    (r"\b\d{12,}\b", "TOKEN"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", "TIME"),
    (r"\b\d+:\d+@[\w./:-]+-[0-9a-f]{8}\b", "ID"),
    (r'"(at|remaining|held|took|age|counts)_ms": ?-?\d+', r'"\1_ms":MS'),
    (r"\b\d+\.\d+ ?(ms|µs|s)\b", r"MEASURED \1"),  # not "16000 ms", which is a fact
    (r"\b(in|for|after|since|within) " + AGE + r"(?![\w.])", r"\1 AGE"),
    (r"\bpid \d+\b", "pid PID"),
]
TABLE = re.compile(r"^(NAME|MUTEX)\b.*\b(LEFT|HELD|AGE)\b")


def mask(lines):
    """The lines as they are compared: without what differs each time, and with one blank for many."""
    out, is_member = [], False
    for line in lines:
        line = re.sub(r"\s+", " ", line).strip()
        is_member = bool(TABLE.match(line)) or (is_member and line != "")
        if is_member:
            line = re.sub(r"(?<= )" + AGE + r"(?= |$)", "AGE", line)
        for pattern, shown in MASKS:
            line = re.sub(pattern, shown, line)
        out.append(line)
    return out


def agrees(expected, got):
    """Line by line; "…" alone is any number of lines."""
    if not expected:
        return not got
    if expected[0] in ("…", "..."):
        return any(agrees(expected[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and expected[0] == got[0] and agrees(expected[1:], got[1:])


def compare(place, command, expected, got):
    while got and not got[-1].strip():
        got.pop()
    while expected and not expected[-1].strip():
        expected.pop()
    if not agrees(mask(expected), mask(got)):
        show = lambda lines: "".join(f"\n        {line}" for line in lines) or "\n        (nothing)"  # noqa: E731
        raise Failed(f"{place}: $ {command}\n    expected:{show(expected)}\n    got:{show(got)}")
