#!/usr/bin/env bats
# progress.bats: a CMD that hangs loses the mutex, although its process and simba are well (--progress, --check).
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

LEASE=(--ttl 2s --transition 4s -k 1s) # is not lost on a busy machine
LEASE_MS=6000

REPORTER=$BATS_TEST_DIRNAME/reporter.py

# A CMD under --progress, its words in said; and another, which waits for the mutex.
start() { # options of simba lock … -- CMD...
    local options=()
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    begin "$SIMBA" lock "${LEASE[@]}" "${options[@]}" "$M" "$@" 2>said
    KEEPER=$PID
}

start_next() {
    begin "$SIMBA" lock "$M" sh -c 'date +%s%N >next'
    NEXT=$PID
}

ms() { echo $(($(date +%s%N) / 1000000)); }
at() { echo $(($(cat "$1") / 1000000)); } # file with nanoseconds

was_lost() { # pattern
    ends "$KEEPER"
    [ "$CODE" -eq 123 ] || { echo "status $CODE"; cat said; return 1; }
    has "$1" said || { cat said; return 1; }
}

has_no_child() { [ -z "$(child_of "$1")" ]; } # pid
has_no_socket() { ! grep -q "@simba-$1-" /proc/net/unix; } # pid of the guard

@test "a CMD that reports is left alone, one that stops reporting is ended; the next follows" {
    start --progress 4s -- python3 "$REPORTER" 6
    await test -e silent || { cat said; return 1; }
    start_next
    began=$(ms)
    was_lost "^simba lock: lost '$M' on $STORE: CMD has reported no progress for [0-9.]+s \(WATCHDOG=1 on NOTIFY_SOCKET\); sending TERM to CMD$"
    await test -s next
    [ $(($(at next) - began)) -lt $((4000 + LEASE_MS)) ]
    ends "$NEXT"
}

@test "silent, and deaf to TERM: killed after --kill-after, and nothing of it is left" {
    start --progress 1s -- sh -c 'trap "" TERM; echo $$ >pid; setsid sh -c "trap \"\" TERM; echo \$\$ >pid2; while :; do sleep 0.1; done" & while :; do sleep 0.1; done'
    await test -s pid2
    begin "$SIMBA" lock "$M" sh -c 'date +%s%N >next; kill -0 "$(cat pid)" 2>/dev/null && touch overlap; kill -0 "$(cat pid2)" 2>/dev/null && touch overlap; true'
    was_lost 'has reported no progress since it began, [0-9.]+s ago'
    ends "$PID"
    [ -s next ]
    [ ! -e overlap ]
}

@test "a CMD that is stopped is silent" {
    start --progress 3s -- python3 "$REPORTER" 60
    await test -e reporter
    cmd=$(cat reporter)
    kill -STOP "$cmd"
    was_lost 'no progress'
    is_dead "$cmd"
}

@test "who is not of CMD's tree reports in vain" {
    start --progress 6s -- sh -c 'echo "$NOTIFY_SOCKET" >address; exec sleep 60'
    await test -s address
    begin env NOTIFY_SOCKET="$(cat address)" WATCHDOG_USEC=1 python3 "$REPORTER" 60
    was_lost 'since it began, 6.*; ignored: [0-9]+ messages of processes that are not CMD.s\)'
}

@test "whoever of the tree reports, it counts: also by systemd-notify, which waits for our answer" {
    command -v systemd-notify >/dev/null || skip "there is no systemd-notify"
    start --progress 3s -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do setsid systemd-notify WATCHDOG=1 || exit 1; sleep 0.5; done; exit 7'
    ends "$KEEPER"
    [ "$CODE" -eq 7 ] || { cat said; return 1; }
    [ ! -s said ]
}

@test "a flood of reports, long ones and such with descriptors do no harm" {
    start --progress 3s -- timeout 6 python3 "$REPORTER" 60 0 WATCHDOG=1 "X=$(printf '%05000d' 0)" fd:WATCHDOG=1 fd:BARRIER=1
    await test -e reporter
    guard=$(child_of "$KEEPER")
    sleep 3
    [ "$(find "/proc/$guard/fd" -type l | wc -l)" -lt 20 ]
    ends "$KEEPER"
    [ "$CODE" -eq 124 ] || { cat said; return 1; } # timeout's own
    [ ! -s said ]
}

@test "WATCHDOG=trigger: at once" {
    start --progress 1h -- python3 "$REPORTER" 60 0.2 "$(printf 'READY=1\nWATCHDOG=trigger')"
    was_lost 'CMD says that it has failed \(WATCHDOG=trigger\); sending TERM to CMD'
}

@test "WATCHDOG_USEC and EXTEND_TIMEOUT_USEC change what silence is" {
    start --progress 1h -- python3 "$REPORTER" 0.1 1 WATCHDOG_USEC=1000000
    was_lost 'has reported no progress for [0-9.]+s'
    start --progress 3s -- sh -c 'python3 - <<P
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"EXTEND_TIMEOUT_USEC=60000000", "\0" + os.environ["NOTIFY_SOCKET"][1:])
s.close()
import time
time.sleep(6)
P
exit 5'
    ends "$KEEPER"
    [ "$CODE" -eq 5 ] || { cat said; return 1; }
}

@test "without --progress CMD's environment is as it was; with it, systemd's is hidden" {
    export NOTIFY_SOCKET=@theirs WATCHDOG_USEC=5 WATCHDOG_PID=1
    run simba lock "$M" sh -c 'echo "$NOTIFY_SOCKET $WATCHDOG_USEC $WATCHDOG_PID"'
    expect 0 '^@theirs 5 1$'
    run simba lock --progress 30s "$M" sh -c 'echo "$NOTIFY_SOCKET $WATCHDOG_USEC ${WATCHDOG_PID-none}"'
    expect 0 '^@simba-[0-9]+-[0-9a-f]{16} 30000000 none$'
    run simba lock --check true "$M" sh -c 'echo "$NOTIFY_SOCKET $WATCHDOG_USEC $WATCHDOG_PID"'
    expect 0 '^@theirs 5 1$'
}

# ---- our own processes ------------------------------------------------------------------------

@test "--progress: the keeper is killed: CMD is ended, the socket is gone" {
    start --progress 10s -- python3 "$REPORTER" 60
    await test -e reporter
    guard=$(child_of "$KEEPER") cmd=$(cat reporter)
    ! has_no_socket "$guard"
    start_next
    kill -KILL "$KEEPER"
    await is_dead "$cmd"
    await is_dead "$guard"
    has_no_socket "$guard"
    ends "$NEXT"
    [ -s next ]
}

@test "--progress: the guard is killed: CMD is killed, the socket is gone" {
    start --progress 10s -- python3 "$REPORTER" 60
    await test -e reporter
    guard=$(child_of "$KEEPER") cmd=$(cat reporter)
    kill -KILL "$guard"
    ends "$KEEPER"
    [ "$CODE" -eq 125 ]
    is_dead "$cmd"
    has_no_socket "$guard"
}

@test "--progress: the guard is stopped, and CMD silent: the keeper ends it within a lease" {
    start --progress 1s -- sh -c 'echo $$ >pid; exec sleep 60'
    await test -s pid
    guard=$(child_of "$KEEPER")
    kill -STOP "$guard"
    start_next
    began=$(ms)
    was_lost "the process simba-guard, $guard, did not end CMD in time"
    is_dead "$(cat pid)"
    ends "$NEXT"
    [ $(($(at next) - began)) -lt $((1000 + LEASE_MS + 1000)) ]
}

@test "--progress: the guard is stopped for a while, CMD reports: nothing happens" {
    start --progress 3s -- sh -c 'timeout 9 python3 '"$REPORTER"' 60; exit 6'
    await test -e reporter
    guard=$(child_of "$KEEPER")
    sleep 1
    kill -STOP "$guard"
    sleep 4
    kill -CONT "$guard"
    ends "$KEEPER"
    [ "$CODE" -eq 6 ] || { cat said; return 1; }
    [ ! -s said ]
}

# ---- --check ----------------------------------------------------------------------------------

@test "--check that succeeds: CMD is left alone, and its status is ours" {
    start --check 'echo "$SIMBA_MUTEX $SIMBA_FENCING_TOKEN"; cat' --check-every 1s -- sh -c 'sleep 5; exit 8' >out
    ends "$KEEPER"
    [ "$CODE" -eq 8 ] || { cat said; return 1; }
    has "^$M [0-9]+$" said
    [ ! -s out ]
}

@test "--check that fails: CMD is ended after --progress" {
    start --progress 3s --check 'test ! -e bad || exit 3' --check-every 300ms -- sleep 60
    sleep 4
    is_alive "$KEEPER"
    start_next
    touch bad
    began=$(ms)
    was_lost "lost '$M' on $STORE: no success for 3.*s: --check 'test ! -e bad || exit 3' ended with status 3; sending TERM to CMD"
    has "mutex '$M' on $STORE: --check 'test ! -e bad || exit 3' ended with status 3; it has to succeed within" said
    ends "$NEXT"
    [ $(($(at next) - began)) -lt $((3000 + LEASE_MS)) ]
}

@test "--check that hangs is killed, with all of it; and CMD after --progress" {
    start --check 'echo $$ >>checks; sleep 60 & sleep 60' --check-every 1s -- sh -c 'echo $$ >pid; exec sleep 60'
    await test -s checks
    was_lost "no success for 3.*s: --check '.*' has not ended after 1.0s"
    for pid in $(cat checks pid); do is_dead "$pid"; done
    for pid in $(left_running); do [ "$(cat "/proc/$pid/comm")" != sleep ]; done
}

@test "--check: what a run leaves in its process group is killed" {
    start --check 'sleep 60 & echo $! >>left' --check-every 1s --progress 10s -- sh -c 'until [ -e go ]; do sleep 0.1; done'
    await test -s left
    await is_dead "$(head -n 1 left)"
    touch go
    ends "$KEEPER"
    [ "$CODE" -eq 0 ]
    [ ! -s said ] || { cat said; return 1; }
}

@test "--check that runs when CMD ends: nobody waits for it, nor blames it" {
    start --check 'touch checking; sleep 60' --check-every 5s -- sh -c 'until [ -e checking ]; do sleep 0.1; done; exit 4'
    ends "$KEEPER"
    [ "$CODE" -eq 4 ]
    [ ! -s said ] || { cat said; return 1; }
}

# ---- elect and schedule -----------------------------------------------------------------------

@test "elect --progress: the hook hangs: ended, --on-released hears stalled, another leads" {
    begin "$SIMBA" elect --id first "${LEASE[@]}" --listen unix:first --progress 1s "$M" \
        -a 'touch up; exec sleep 60' -r 'echo "$SIMBA_REASON" >>reasons' >out 2>said
    first=$PID
    await test -e up
    begin "$SIMBA" elect --id second "${LEASE[@]}" "$M" >out2 2>said2
    await has acquired out2
    has "  lost      $M  first  token [0-9]+  stalled$" out || { cat out said; return 1; }
    has "mutex '$M' on $STORE: left to others for a lease, 6.0s" said
    has 'on-acquired ended with status 143, because it made no progress' said
    [ "$(cat reasons)" = stalled ]
    run python3 "$BATS_TEST_DIRNAME/http.py" unix:first /metrics
    expect 0 'simba_losses_total\{.*reason="stalled".*\} 1$'
    kill -TERM "$first" "$PID"
    ends "$first"
    [ "$CODE" -eq 0 ]
}

@test "elect --check, without a hook: leads while it succeeds" {
    touch good
    begin "$SIMBA" elect --json "${LEASE[@]}" --progress 2s --check 'test -e good' "$M" >out 2>said
    await has '"event":"acquired"' out
    sleep 3
    ! has lost out
    rm good
    await has '"event":"lost".*"reason":"stalled"' out
    has 'no success for 2.*staying a candidate' said
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "elect --check goes on after the hook has ended; a signal ends both" {
    begin "$SIMBA" elect "${LEASE[@]}" --check 'echo $$ >>checks; sleep 60' --progress 60s --check-every 500ms \
        "$M" -a 'touch up' -r 'echo "$SIMBA_REASON" >>reasons' >out 2>said
    await test -s checks
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ "$(cat reasons)" = released ]
    for pid in $(cat checks); do is_dead "$pid"; done
}

@test "schedule --progress: a run that hangs is ended, and another runs" {
    begin "$SIMBA" schedule --id first --listen unix:first "${LEASE[@]}" --progress 1s "$M" --every 1s sh -c 'touch up; exec sleep 60' 2>said
    first=$PID
    await test -e up
    begin "$SIMBA" schedule --id second "${LEASE[@]}" "$M" --every 1s touch second 2>said2
    await test -e second
    has 'run 1 ended with status 143 after .*, because it made no progress' said || { cat said; return 1; }
    has "mutex '$M' on $STORE: lost \(stalled\), token" said
    run python3 "$BATS_TEST_DIRNAME/http.py" unix:first /metrics
    expect 0 'simba_losses_total\{.*reason="stalled".*\} 1$'
    kill -TERM "$first" "$PID"
}

@test "schedule --progress: between runs nobody has to report" {
    begin "$SIMBA" schedule "${LEASE[@]}" --progress 1s "$M" --every 1h touch up 2>said
    await has 'run 1 ended with status 0' said
    sleep 9 # the guard would have acted, or the keeper after a lease
    ! has 'lost|simba-guard' said || { cat said; return 1; }
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

# ---- lock --at-least --------------------------------------------------------------------------

@test "lock --at-least: the mutex is kept after CMD, and the status is CMD's" {
    began=$(ms)
    start --at-least 4s -- sh -c 'touch up; exit 9'
    await test -e up
    run simba lock -n "$M" true
    expect 124
    start_next
    ends "$KEEPER"
    [ "$CODE" -eq 9 ]
    ends "$NEXT"
    took=$(($(at next) - began))
    [ $took -ge 4000 ] || { echo "$took"; return 1; }
}

@test "lock --at-least is longer than the lease: it is renewed" {
    began=$(ms)
    start --at-least 9s -- touch up
    await test -e up
    start_next
    ends "$KEEPER"
    [ "$CODE" -eq 0 ] || { cat said; return 1; }
    ends "$NEXT"
    took=$(($(at next) - began))
    [ $took -ge 9000 ] || { echo "$took"; return 1; }
}

@test "lock --at-least: a signal ends the wait, the mutex is released, the status is CMD's" {
    start --at-least 60s -- sh -c 'touch up; exit 9'
    await test -e up
    await has_no_child "$KEEPER"
    kill -TERM "$KEEPER"
    ends "$KEEPER"
    [ "$CODE" -eq 9 ]
    run simba lock -n "$M" true
    expect 0
}

@test "lock --at-least: after a signal that CMD has got there is no wait" {
    start --at-least 60s -- sh -c 'trap "exit 3" TERM; touch up; while :; do sleep 0.1; done'
    await test -e up
    kill -TERM "$KEEPER"
    ends "$KEEPER"
    [ "$CODE" -eq 3 ]
}

@test "lock --at-least: a CMD that cannot be run keeps nothing" {
    run -127 timeout 20 "$SIMBA" lock --at-least 60s "$M" ./no-such-file
    expect 127
}

# ---- usage ------------------------------------------------------------------------------------

# bats test_tags=storeless
@test "--progress, --check, --at-least: what is wrong is said" {
    run simba lock --progress 1ms m true
    expect 64 "^simba lock: --progress '1ms' is not between 100ms and 24h"
    run simba lock --progress 5s m
    expect 64 "^simba lock: --progress needs a CMD"
    run simba elect --progress 5s m
    expect 64 "^simba elect: --progress needs a CMD"
    run simba lock --check-every 5s m true
    expect 64 "^simba lock: --check-every needs --check CHECK, what to run so often"
    run simba lock --progress 5s --check true --check-every 5s m true
    expect 64 "^simba lock: --check-every must be shorter than --progress, the limit of silence"
    run simba lock --at-least 5s m
    expect 64 "^simba lock: --at-least needs a CMD"
}

# There, whoever sends a report cannot be found below the guard.
@test "--progress: where /proc is of another process namespace, it is refused" {
    needs_namespaces --pid --fork
    run timeout 20 unshare --pid --fork "$SIMBA" lock --progress 1s "$M" touch ran
    expect 125 "--progress: .*/proc.*another process namespace.*--check"
    [ ! -e ran ]
    run timeout 20 unshare --pid --fork "$SIMBA" lock --progress 5s --check true "$M" touch ran
    expect 0
}
