#!/usr/bin/env bats
# readme.bats: the transcript in README.md is true. Numbers that differ each time (tokens, times) may.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

@test "README: the transcript" {
    cd store
    printf '#!/bin/sh\n' >backup.sh
    chmod 700 backup.sh
    SIMBA_URL=sqlite:locks.db PATH=$(dirname "$SIMBA"):$PATH run python3 - "$BATS_TEST_DIRNAME/../../README.md" <<'P'
import re, subprocess, sys

text = re.search(r"```console\n(.*?)```", open(sys.argv[1]).read(), re.S).group(1)
steps = []
for line in text.splitlines():
    if line.startswith("$ "):
        steps.append((line[2:], []))
    else:
        steps[-1][1].append(line)

def pattern(line):
    line = re.escape(re.sub(r" +", " ", line))
    line = re.sub(r"\\d{12,}|\d{12,}", r"\\d+", line)
    line = re.sub(r"\d+\\\.\d+", r"[0-9.]+", line)        # 0.1s, 3.3 ms
    return re.sub(r"\b1[0-9]s\b", r"1[0-9]s", line)       # what is left of a lease

background = []
for command, expected in steps:
    if command.endswith("&"):
        background.append(subprocess.Popen(["bash", "-c", "exec " + command[:-1]], stdout=subprocess.DEVNULL))
        while subprocess.run(["bash", "-c", "simba list --json | grep -q ."]).returncode != 0:
            pass
        continue
    got = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    got = [re.sub(r" +", " ", line) for line in got.splitlines()]
    if len(got) != len(expected) or not all(re.fullmatch(pattern(e), g) for e, g in zip(expected, got)):
        sys.exit("%s\nREADME says: %r\nit prints:   %r" % (command, expected, got))
    if command.startswith("simba release"):
        for process in background:
            process.wait(timeout=20)
print(len(steps), "steps")
P
    expect 0 '^[0-9]+ steps$'
}

@test "README and man: every command is mentioned" {
    for command in $(simba help | sed -nE 's/^  simba ([a-z]+) .*/\1/p' | sort -u); do
        grep -qE "\`(simba )?$command\b" "$BATS_TEST_DIRNAME/../../README.md" || [ "$command" = version ]
        grep -q "simba $command" "$BATS_TEST_DIRNAME/../../man/simba.1.scd"
    done
}
