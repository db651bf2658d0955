#!/usr/bin/env bats
# long_running.bats: proofs that take minutes; with LONG=1 only.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

proof() { # script, arguments
    [ -n "${LONG:-}" ] || skip "set LONG=1"
    python3 "$BATS_TEST_DIRNAME/$1" "${@:2}" 3>&- >&2
}

@test "elect: 5 processes, many hand-overs by release, stop and kill: hooks alternate, never overlap" {
    proof handover.py "$([ "$KIND" = sqlite ] && echo 200 || echo 40)" # elsewhere a death costs a lease
}

@test "schedule: 3 processes, 30 s, the leader killed twice: no second has two runs" {
    proof schedule_runs.py 30
}

# What systemd would hear, a line each; NOTIFY_SOCKET is exported.
listen_as_systemd() {
    python3 - >>heard 2>/dev/null 3>&- <<'P' &
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(os.environ["DIR"] + "/notify")
while True:
    print(s.recv(100).decode(), flush=True)
P
    STARTED+=("$!")
    await test -S notify
    export NOTIFY_SOCKET=$DIR/notify
}
is_stopped() { [ "$(sed 's/.*) //' "/proc/$1/stat" | cut -c1)" = T ]; } # pid
heard_alive() { [ "$(grep -c '^WATCHDOG=1$' heard)" -ge "$1" ]; }

@test "WatchdogSec=: lock, with CMD and while it waits, elect and schedule report; CMD is not told" {
    listen_as_systemd
    export WATCHDOG_USEC=400000
    begin "$SIMBA" lock "$M" sh -c 'echo "${WATCHDOG_USEC-none} ${WATCHDOG_PID-none}" >told; exec sleep 60'
    await heard_alive 4
    [ "$(cat told)" = "none none" ]
    has '^READY=1$' heard
    kill -STOP "$PID"
    await is_stopped "$PID"
    python3 -c 'import os, socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"BEHIND", os.environ["NOTIFY_SOCKET"])'
    await has '^BEHIND$' heard # all that it had said
    : >heard
    sleep 1
    [ ! -s heard ]
    kill -CONT "$PID"
    await heard_alive 2
    kill -TERM "$PID"
    ends "$PID"
    begin env -u WATCHDOG_USEC "$SIMBA" lock "$M" sh -c 'touch held; exec sleep 60'
    await test -e held
    for arguments in "lock $M true" "elect -q ${M}2" "schedule -q ${M}3 --every 1h true"; do
        : >heard
        begin "$SIMBA" $arguments >/dev/null 2>&1
        await heard_alive 3
        kill -KILL "$PID"
        ends "$PID"
    done
    : >heard
    begin env WATCHDOG_PID=1 "$SIMBA" elect -q "${M}4" >out # somebody else's
    await has acquired out
    sleep 0.6
    ! heard_alive 1
}
