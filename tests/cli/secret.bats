#!/usr/bin/env bats
# secret.bats: the password of a store, in the command's own memory.
bats_require_minimum_version 1.8.0
# bats file_tags=store,sqlite
load helper

# Do writable pages of the process hold this text?
remembers() { # pid text
    python3 - "$1" "$2" <<'P'
import sys
pid, text = sys.argv[1], sys.argv[2].encode()
with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
    for line in maps:
        span, rights = line.split()[:2]
        if "w" not in rights or "[v" in line:
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

@test "lock: the guard, which opens no store, does not keep the URL" {
    url="sqlite:$DIR/store/locks.db?command_timeout=2345ms"
    begin "$SIMBA" -u "$url" lock "$M" sh -c 'touch up; exec sleep 60'
    await test -e up
    remembers "$PID" "$M" || skip "cannot read its memory"
    if remembers "$(child_of "$PID")" "=2345ms"; then return 1; fi
}
