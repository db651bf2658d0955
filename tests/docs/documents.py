"""documents.py: the documents of this project, and the code blocks in them, for tests/docs/run and tools/facts.

A block is what stands between two lines of ```, in Markdown and in scdoc alike. What is unusual about it is said in
a line before it, which readers do not see: in Markdown a comment, <!-- test: … -->, in scdoc "; test: …". It may say

    none, REASON          the block is not run, because of that
    file NAME             it is written to the file NAME, for the blocks after it
    redis                 (or mysql, postgres, zookeeper) it is run with a private server in place of that at localhost or db1
    clone                 it is run in the root of the clone, after make
    console               (or any other kind) what kind of block it is; scdoc has no other way to say so

Several of these are separated by commas: "console, redis". "none" takes the rest of the line.
"""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SERVERS = ("redis", "mysql", "postgres", "zookeeper")
KINDS = ("console", "sh", "c", "cpp", "python", "ini", "yaml", "json", "crontab", "text")
MARK = re.compile(r"^\s*(?:<!-- *test: *(.*?) *-->|; test: *(.*?)) *$")


class Wrong(Exception):
    """Something about a document is not as it should be; the text says where and what."""


class Block:
    """kind, lines (without the fences), line (number of the first one), server, file, in_clone, reason (None: it is
    run)."""

    def __init__(self, document, line, kind):
        self.document, self.line, self.kind = document, line, kind
        self.lines, self.server, self.file, self.reason, self.in_clone = [], None, None, None, False

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)

    @property
    def place(self):
        return f"{self.document}:{self.line}"

    def mark(self, text):
        while text:
            if text.startswith("none"):
                self.reason = text[4:].strip(" ,")
                if not self.reason:
                    raise Wrong(f"{self.place}: 'test: none' has to say why: <!-- test: none, REASON -->")
                return
            word, _, text = (part.strip() for part in text.partition(","))
            if word in SERVERS:
                self.server = word
            elif word in KINDS:
                self.kind = word
            elif word == "clone":
                self.in_clone = True
            elif word.startswith("file "):
                self.file = word[5:].strip()
            else:
                raise Wrong(f"{self.place}: unknown mark 'test: {word}'; there are: none, file NAME, clone, "
                            + ", ".join(SERVERS + KINDS))

    def guess(self):
        """What an unmarked block without a kind is: a transcript, or a program. Everything else has to say."""
        first = next((line for line in self.lines if line.strip()), "")
        if first.startswith("$ "):
            self.kind = "console"
        elif first.startswith("#include"):
            self.kind = "c"


def documents():
    """Paths, relative to the root, of all documents that have to be right."""
    names = ["README.md", "CONTRIBUTING.md", "bindings/*/README.md", "docs/*.md", "docs/**/*.md", "man/*.scd"]
    found = {path.relative_to(ROOT).as_posix() for name in names for path in ROOT.glob(name)}
    return sorted(found, key=lambda name: ("/" in name, name.startswith("man"), name))


def read(document):
    return (ROOT / document).read_text(encoding="utf-8").split("\n")


def blocks(document):
    """All blocks of a document, in order."""
    found, block, marks, fence = [], None, [], None
    scdoc = document.endswith(".scd")
    for number, line in enumerate(read(document), 1):
        start = re.match(r"^(\s*)```\s*([\w+-]*)", line)
        if block is None and start:
            fence = start.group(1)
            block = Block(document, number + 1, start.group(2))
            for mark in marks:
                block.mark(mark)
        elif block is not None and line.strip() == "```":
            if not block.kind and block.reason is None:
                block.guess()
            found.append(block)
            block, marks = None, []
        elif block is not None:
            line = line[len(fence):] if line.startswith(fence) else line
            if scdoc and "\\" in line.replace("\\\\", ""):
                raise Wrong(f"{document}:{number}: scdoc drops a single backslash, so that the page shows something "
                            f"else: write two: {line}")
            block.lines.append(line.replace("\\\\", "\\") if scdoc else line)
        else:
            if scdoc and line.endswith("C++"):
                raise Wrong(f"{document}:{number}: scdoc takes ++ at the end of a line for a line break")
            mark = MARK.match(line)
            if mark:
                marks.append(mark.group(1) or mark.group(2) or "")
            elif line.strip():
                if marks:
                    raise Wrong(f"{document}:{number}: a mark 'test:' stands before something that is no block")
    if block is not None or marks:
        raise Wrong(f"{document}: the last block does not end, or a mark 'test:' has none")
    return found


def tracked():
    """All files of the project: of the repository, or of a copy without one."""
    made = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    names = made.stdout.split("\n") if made.returncode == 0 else [
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")
        if not re.match(r"build|\.git/", path.relative_to(ROOT).as_posix())]
    return sorted(name for name in names if name and (ROOT / name).is_file())
