#!/usr/bin/env bats
# stopped.bats: processes of simba that are stopped and go on: what is still right is left alone.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

LEASE=(--ttl 2s --transition 4s -k 500ms) # is not lost on a busy machine
OUTLIVES=7                                # while somebody else renews it, only time shows that it is over

# A process that was stopped goes on, does what it then finds to do, and waits again, or ends.
go_on() { # pid
    local before
    before=$(count_waits "$1")
    kill -CONT "$1"
    await waits_again "$1" "$before"
}

count_waits() { # pid: how often it has waited for something
    awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$1/status"
}

waits_again() { # pid count
    is_dead "$1" || { [ "$(count_waits "$1")" -gt "$2" ] && grep -q '^State:.S' "/proc/$1/status"; }
}

is_free() {
    local code=0
    simba status "$M" || code=$?
    [ "$code" -eq 1 ]
}

@test "lock: the guard is stopped beyond the lease and goes on: CMD does, too" {
    "$SIMBA" lock "${LEASE[@]}" "$M" sh -c 'touch up; until [ -e go ]; do sleep 0.02; done; exit 6' 2>said 3>&- &
    PID=$!
    STARTED+=("$PID")
    await test -e up
    guard=$(child_of "$PID")
    kill -STOP "$guard"
    sleep $OUTLIVES
    go_on "$guard"
    touch go
    ends "$PID"
    [ "$CODE" -eq 6 ] || { cat said; return 1; }
    [ ! -s said ]
}

@test "elect: the guard is stopped beyond the lease and goes on: the hook does, too" {
    begin "$SIMBA" elect "${LEASE[@]}" "$M" -a 'echo up >>log; exec sleep 60' -r 'echo down >>log' 2>said >out
    await has up log
    guard=$(child_of "$PID")
    kill -STOP "$guard"
    sleep $OUTLIVES
    go_on "$guard"
    [ "$(xargs <log)" = up ] || { cat said; return 1; }
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ "$(xargs <log)" = "up down" ]
}

@test "lock: keeper and guard are stopped, CMD ends by itself: nobody says that it was told to" {
    "$SIMBA" lock "${LEASE[@]}" "$M" sh -c 'touch up; until [ -e go ]; do sleep 0.02; done' 2>said 3>&- &
    PID=$!
    STARTED+=("$PID")
    await test -e up
    guard=$(child_of "$PID")
    kill -STOP "$PID" "$guard"
    touch go
    await is_free
    go_on "$guard"
    kill -CONT "$PID"
    ends "$PID"
    [ "$CODE" -eq 123 ] # the lease had ended before it could be released
    ! has 'sending|did not end CMD|killed' said || { cat said; return 1; }
}

# bats test_tags=sqlite
@test "lock: the process that renews was stopped: the log does not blame the store" {
    begin "$SIMBA" -vv lock --ttl 1s --transition 500ms "$M" >token 2>said
    await test -s token
    kill -STOP "$PID"
    sleep 4
    kill -CONT "$PID"
    ends "$PID"
    [ "$CODE" -eq 123 ]
    has 'warning: .*lost by .*\(this process, or its loop, did not run in the last ([2-9]|[1-9][0-9])[0-9.]*s: was it stopped\?\)' said
    ! has 'store does not answer' said
}
