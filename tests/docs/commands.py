"""commands.py: what simba's command line takes, as the command itself says it (simba help --json), and the reading of
command lines in documents by it."""
import json
import re
import shlex
import subprocess

RUNS_CMD = ("lock", "once", "schedule")  # their options end at the first word of CMD


class Unknown(Exception):
    """A command line that simba would refuse; the text says why."""


class Line:
    """A command line: command (None: there is none), name (the first word), options as they stand there."""

    def __init__(self):
        self.command, self.name, self.options, self.url = None, None, [], None


class Commands:
    def __init__(self, simba):
        made = subprocess.run([simba, "help", "--json"], stdout=subprocess.PIPE, text=True, check=True)
        self.all = json.loads(made.stdout)
        self.statuses = {s["code"]: s["text"] for s in self.all["statuses"]}
        self.common = self.all["options"]
        self.commands = {c["name"]: c for c in self.all["commands"]}

    def options(self, command):
        """All that the command takes, its own first."""
        own = self.commands[command]["options"] if command in self.commands else []
        return own + self.common

    def find(self, command, text):
        """The option that is written so, -n or --no-wait or --wait=5s. None: there is none."""
        for o in self.options(command):
            if text.startswith("--") and o["name"] == text[2:].split("=")[0]:
                return o
            if not text.startswith("--") and o["letter"] == text[1:2]:
                return o
        return None

    def parse(self, words):
        """Reads the words after "simba", as simba does; raises Unknown where it would refuse an option."""
        line, i = Line(), 0
        while i < len(words):
            word, i = words[i], i + 1
            if word == "--" and line.command in RUNS_CMD:
                return line
            if len(word) > 1 and word[0] == "-":
                i = self.take_option(line, words, i, word)
            elif line.command is None:
                line.command = word
                if word == "help":
                    return line
                if word not in self.commands:
                    raise Unknown(f"there is no command '{word}'")
            elif line.name is None:
                line.name = word
            elif line.command in RUNS_CMD:
                return line
        return line

    def take_option(self, line, words, i, word):
        while True:
            o = self.find(line.command, word)
            if o is None:
                raise Unknown(f"simba {line.command or ''} has no option {word.split('=')[0]}")
            line.options.append(o["name"])
            value = None
            if o["value"] is not None:
                attached = word.partition("=")[2] if word.startswith("--") else word[2:]
                if attached or "=" in word:
                    value = attached
                elif o["value"].startswith("["):
                    value = None  # it may have one, by --name=value
                elif i < len(words):
                    value, i = words[i], i + 1
                else:
                    raise Unknown(f"option {word} needs a value")
            elif not word.startswith("--") and len(word) > 2:
                word = "-" + word[2:]  # -abc
                continue
            if o["name"] == "url":
                line.url = value
            return i


def split(text):
    """The words of each command in a piece of shell, as far as simple commands go."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.commenters = "#"
    lexer.whitespace_split = True
    commands, words = [], []
    try:
        for token in lexer:
            if re.fullmatch(r"[();<>|&]+", token):
                if token[0] not in "<>":
                    commands.append(words)
                    words = []
                continue
            words.append(token)
    except ValueError as e:
        raise Unknown(f"cannot be read as a shell would: {e}") from e
    return [c for c in commands + [words] if c]


def simba_words(words):
    """What follows the word simba in a simple command, also behind variables, sudo, exec …; None: it is another's."""
    for i, word in enumerate(words):
        if word in ("simba", "build/simba") or re.fullmatch(r"/\S*/bin/simba", word):
            return words[i + 1:]
        if not re.match(r"\w+=|[-@!+:]*/|sudo|exec|nohup|env|timeout|setsid|-|\d+\w?$", word):
            return None
    return None
