#!/usr/bin/env python3
"""page_check.py KIND PAGE: is it a page of HTML that needs nothing else, allows nothing else, and has the run in it?

KIND is what tests/torture/page_sample.c was asked for: good, bad, empty or hostile."""
import base64
import collections
import hashlib
import json
import re
import sys
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br", "hr", "input"}
LOADING = {"src", "srcset", "href", "action", "data", "poster", "style", "background"}
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, which nobody asks the network for
BYTES_MAX = 3_000_000
HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> ]]> \"'&amp; \\u003c"
LISTS = ("tenures", "takeovers", "faults", "findings")


def check(is_so, what):
    if not is_so:
        sys.exit(f"page_check.py: {what}")


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.policy = [], [], None
        self.texts, self.kind = collections.defaultdict(list), None  # of scripts and styles, by kind
        self.feed(text)
        self.close()
        check(not self.open, f"not closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        check(not LOADING & set(attributes) and not any(name.startswith("on") for name in attributes),
              f"<{tag}> has {attributes}")
        check(tag not in ("img", "link", "iframe", "object", "embed", "base", "form"), f"there is a <{tag}>")
        if attributes.get("http-equiv") == "Content-Security-Policy":
            check(self.policy is None and "body" not in self.open, "a second policy, or too late")
            self.policy = attributes["content"]
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("script", "style"):
            check(self.policy is not None, f"<{tag}> before the policy")
            self.kind = attributes.get("type", tag)
            self.texts[self.kind].append("")

    def handle_endtag(self, tag):
        check(self.open and self.open.pop() == tag, f"</{tag}> closes something else, at {self.getpos()}")
        self.kind = None

    def handle_data(self, data):
        if self.kind:
            self.texts[self.kind][-1] += data


def check_policy(page):
    def source(kind):
        check(len(page.texts[kind]) == 1, f"{len(page.texts[kind])} of {kind}")
        digest = hashlib.sha256(page.texts[kind][0].encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    check(rules == {"default-src": "'none'", "script-src": source("script"), "style-src": source("style"),
                    "base-uri": "'none'", "form-action": "'none'"}, f"the policy is {page.policy}")


def read_run(page):
    check(len(page.texts["application/json"]) == 1, "the data are not there once")
    text = page.texts["application/json"][0]
    check(not re.search(r"[<>&]", text), "markup in the data")
    run = json.loads(text)
    for name in LISTS:
        columns, rows = run[name]["columns"], run[name]["rows"]
        check(all(len(row) == len(columns) for row in rows), f"{name} do not have all columns")
        run[name] = [dict(zip(columns, row)) for row in rows]
    for t in run["tenures"]:
        check(t["mutex"] < run["mutexes"] and t["worker"] < len(run["workers"]), f"who is that? {t}")
        check(0 <= t["from"] <= run["length"], f"outside the run: {t}")
    return run


def overlaps(run):
    """How many begin while another is sure to own the mutex. What was seen once was owned between `to` and `from`."""
    last, count = {}, 0
    for t in sorted(run["tenures"], key=lambda t: (t["mutex"], min(t["from"], t["to"]))):
        count += (t["from"] if t["from"] > t["to"] else t["from"] + 1) <= last.get(t["mutex"], 0)
        if t["from"] < t["to"]:
            last[t["mutex"]] = max(t["to"], last.get(t["mutex"], 0))
    return count


def main():
    kind, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page = Page(text)
    check_policy(page)
    run = read_run(page)
    check(len(text.encode()) < BYTES_MAX, f"{len(text)} letters are too many")
    check(not re.search(r"[a-z]+://", text.replace(NAMESPACE, "").replace(page.texts["application/json"][0], "")),
          "it names an address of somebody else's")
    check(len(set(page.ids)) == len(page.ids), "an id is there twice")
    used = set(re.findall(r'byId\("([^"]+)"\)', page.texts["script"][0]))
    check(used and used <= set(page.ids), f"the script looks for {used - set(page.ids)}")

    kinds = [finding["kind"] for finding in run["findings"]]
    is_bad = kind in ("bad", "hostile")
    check(kinds == (["wrong", "wrong", "late", "wrong", "limit"] if is_bad else []), f"findings: {kinds}")
    check(overlaps(run) == (2 if is_bad else 0), f"{overlaps(run)} overlaps")
    check((len(run["tenures"]) == 0) == (kind == "empty"), f"{len(run['tenures'])} tenures")
    if kind == "hostile":
        check(run["store"] == HOSTILE, f"the store is {run['store']}")
        check(run["command"].endswith(HOSTILE) and run["command"].startswith("????[31m??"), run["command"])
        check(run["findings"][0]["text"] == HOSTILE + " ??? \U0001f4a5", run["findings"][0]["text"])
        check(run["seed"] == "18446744073709551615" == run["findings"][1]["token"], "numbers are not exact")


main()
