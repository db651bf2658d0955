#!/usr/bin/env bats
# waiter.bats: who waits for a lock, and what becomes of the store meanwhile.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

# Starts a waiter, and returns when the store has answered it: sqlite: is asked before there are threads, a queue
# shows who waits, and elsewhere the proxy to the store sees the answer on a connection that was not there before.
begin_waiter() { # words of simba lock...
    local before
    before=$(count_answered)
    begin "$SIMBA" lock "$@" 2>said
    case "$KIND" in
    sqlite) await several_threads "$PID" ;;
    redis* | zookeeper) await in_queue ;;
    *) await more_answered "$before" ;;
    esac
}

several_threads() { # pid
    [ "$(ls "/proc/$1/task" | wc -l)" -ge 2 ]
}

in_queue() {
    simba status --json "$M" | grep -qE '"waiters":[1-9]'
}

count_answered() {
    cat proxy.port.answered 2>/dev/null | wc -l
}

more_answered() { # than so many connections
    [ "$(count_answered)" -gt "$1" ]
}

@test "lock: a store that has answered once, and is lost soon after, is waited for" {
    make_store_losable
    hold "$M"
    begin_waiter "$M" true
    waiter=$PID
    lose_store
    sleep 8 # a store that has never answered is given up after five seconds
    is_alive "$waiter" || { cat said; return 1; }
    kill -TERM "$waiter"
    ends "$waiter"
    [ "$CODE" -eq 143 ]
}

@test "lock -w: likewise, until the time is over" {
    make_store_losable
    hold "$M"
    before=$(date +%s%N)
    begin_waiter -w 7s "$M" true
    lose_store
    ends "$PID"
    [ $(($(date +%s%N) - before)) -ge 7000000000 ] || { cat said; return 1; }
    [ "$CODE" -eq 124 ] || { cat said; return 1; }
}
