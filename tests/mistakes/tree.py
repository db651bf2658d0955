"""A mistake is planted by changes of the sources: (file, its text, the text in its place). They are made in a copy, so
that what is shipped has nothing of them."""
import contextlib
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Stale(ValueError):
    """The text of a change is not in its file, or not once: the source has changed, and the mistake must follow."""


def copy_tree(to):
    """What git knows, as it is on disk."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        copy_file(name, to)


def copy_file(name, to):
    source, target = os.path.join(ROOT, name), os.path.join(to, name)
    if os.path.lexists(source):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def change(tree, changes):
    """(file: its text before, file: its text after). Nothing is written."""
    before, after = {}, {}
    for file, old, new in changes:
        if file not in before:
            try:
                with open(os.path.join(tree, file)) as f:
                    before[file] = after[file] = f.read()
            except FileNotFoundError:
                raise Stale(f"{file} is missing") from None
        found = after[file].count(old)
        if found != 1 or old == new:
            what = "it changes nothing" if old == new else f"its text is {found} times in {file}, not once"
            raise Stale(f"{what}: {old.strip().splitlines()[0]}")
        after[file] = after[file].replace(old, new)
    return before, after


@contextlib.contextmanager
def planted(tree, mistake):
    """While it lasts, the mistake is in that copy; its value is the files."""
    before, after = change(tree, mistake.changes)
    try:
        write(tree, after)
        yield list(after)
    finally:
        write(tree, before)


def write(tree, texts):
    for file, text in texts.items():
        with open(os.path.join(tree, file), "w") as f:
            f.write(text)


def check(mistakes):
    """Would each be planted? Prints those that would not, and a sum; returns the status for a shell."""
    failed = 0
    for mistake in mistakes:
        try:
            change(ROOT, mistake.changes)
        except Stale as error:
            failed += 1
            print(f"FAILED  {mistake.name}: {error}")
    print(f"{len(mistakes) - failed} passed, {failed} failed")
    return 1 if failed or not mistakes else 0
