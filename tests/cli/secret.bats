#!/usr/bin/env bats
# secret.bats: the password of a store, in the command's own memory.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

# Do writable pages of the process, but for the stack, hold this text?
remembers() { # pid text
    python3 - "$1" "$2" <<'P'
import sys
pid, text = sys.argv[1], sys.argv[2].encode()
with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
    for line in maps:
        span, rights = line.split()[:2]
        if "w" not in rights or "[v" in line or "[stack" in line: # registers are saved there
            continue
        first, last = (int(x, 16) for x in span.split("-"))
        mem.seek(first)
        try:
            if text in mem.read(last - first):
                sys.exit(0)
        except OSError:
            pass
sys.exit(1)
P
}

@test "lock: the guard, which opens no store, does not keep the password" {
    begin "$SIMBA" -u 'redis://me:s3cretword@127.0.0.1:1/0' lock "$M" true 2>err
    has_guard() { [ "$(cat "/proc/$(child_of "$PID")/comm")" = simba-guard ] || is_dead "$PID"; }
    await has_guard
    is_alive "$PID" || skip "$(cat err)"
    guard=$(child_of "$PID")
    remembers "$guard" "--url" || skip "cannot read its memory"
    if remembers "$guard" s3cretword; then return 1; fi
}
