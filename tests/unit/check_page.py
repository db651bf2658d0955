#!/usr/bin/env python3
"""check_page.py PAGE CLIENTS NAME: is it a page that Prometheus takes, and does it follow its conventions?

Prometheus' own parser reads it; what the parser lets pass is checked here. There must be the series of so many
clients, and a mutex with this name. Ends with 77 where the parser is missing."""
import collections
import re
import sys

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    sys.exit(77)

NO_BASE_UNITS = ("ms", "us", "ns", "milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "percent",
                 "kilobytes", "megabytes")
PARTS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


def fail(what):
    print(f"check_page.py: {what}", file=sys.stderr)
    sys.exit(1)


def check_heads(text):
    """HELP and TYPE once for each metric, and below them its series and no others'."""
    heads, kinds, current = set(), {}, None
    for line in text.splitlines():
        head = re.match(r"# (HELP|TYPE) (\S+) (.+)", line)
        if head:
            what, name, rest = head.groups()
            if (what, name) in heads:
                fail(f"{what} of {name} comes twice")
            if what == "TYPE" and ("HELP", name) not in heads:
                fail(f"{name} has no HELP before its TYPE")
            heads.add((what, name))
            current = name
            if what == "TYPE":
                kinds[name] = rest
            continue
        name = re.match(r"[a-zA-Z_:][a-zA-Z0-9_:]*", line).group()
        if name not in {current + part for part in PARTS.get(kinds.get(current), ("",))}:
            fail(f"{name} is below the head of {current}")
    return kinds


def check_names(kinds):
    for name, kind in kinds.items():
        if (kind == "counter") != name.endswith("_total"):
            fail(f"{name} is a {kind}")
        if kind in PARTS and not name.endswith("_seconds"):
            fail(f"{name} has no base unit")
        if set(name.split("_")) & set(NO_BASE_UNITS):
            fail(f"{name} is not in a base unit")
        if not name.startswith("simba_"):
            fail(f"{name} does not begin with the name of the library")


def check_histogram(family):
    buckets, counts = collections.defaultdict(list), {}
    for sample in family.samples:
        key = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            buckets[key].append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_count"):
            counts[key] = sample.value
    if not buckets or set(buckets) != set(counts):
        fail(f"{family.name}: buckets and counts are not of the same series")
    for key, pairs in buckets.items():
        if pairs != sorted(pairs) or len({bound for bound, _ in pairs}) != len(pairs):
            fail(f"{family.name}: bounds do not rise")
        values = [value for _, value in pairs]
        if values != sorted(values):
            fail(f"{family.name}: not cumulative")
        if pairs[-1] != (float("inf"), counts[key]):
            fail(f"{family.name}: +Inf is not the count")


def main():
    page, clients, name = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    check_names(check_heads(text))
    families = list(text_string_to_metric_families(text))
    if len({family.name for family in families}) != len(families):
        fail("a metric is there twice")
    seen = set()
    for family in families:
        if family.type in ("untyped", "unknown") or not family.documentation:
            fail(f"{family.name} has no type or no help")
        for sample in family.samples:
            series = (sample.name, tuple(sorted(sample.labels.items())))
            if series in seen:
                fail(f"{series} is there twice")
            seen.add(series)
        if family.type == "histogram":
            check_histogram(family)
    by_name = {family.name: family.samples for family in families}
    if len(by_name["simba_owned"]) != int(clients) or len(by_name["simba_client_info"]) != int(clients):
        fail(f"there are not {clients} clients")
    owners = [s for s in by_name["simba_mutex_owned"] if s.labels["mutex"] == name and s.labels["id"] == name]
    if len(owners) != int(clients) or sum(s.value for s in owners) != 1:
        fail("the mutex with the odd name is not owned once")
    if any(s.labels["id"] == "" for s in by_name["simba_mutex_owned"]):
        fail("an observer, which cannot own, has series of its own")


main()
