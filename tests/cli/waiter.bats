#!/usr/bin/env bats
# waiter.bats: who waits for a lock, and what becomes of the store meanwhile.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

# Until the waiter has its first answer: a store with a queue shows it there, elsewhere its threads do.
await_waiter() { # pid
    await several_threads "$1"
    await in_queue
    sleep 0.3
}

several_threads() { # pid
    [ "$(ls "/proc/$1/task" | wc -l)" -ge 2 ]
}

in_queue() {
    simba status --json "$M" | grep -qE '"waiters":(null|[1-9])'
}

@test "lock: a store that has answered once, and is lost soon after, is waited for" {
    make_store_losable
    hold "$M"
    begin "$SIMBA" lock "$M" true 2>said
    waiter=$PID
    await_waiter "$waiter"
    lose_store
    sleep 8
    is_alive "$waiter" || { cat said; return 1; }
    kill -TERM "$waiter"
    ends "$waiter"
    [ "$CODE" -eq 143 ]
}

@test "lock -w: likewise, until the time is over" {
    make_store_losable
    hold "$M"
    begin "$SIMBA" lock -w 7s "$M" true 2>said
    await_waiter "$PID"
    lose_store
    SECONDS=0
    ends "$PID"
    [ "$SECONDS" -ge 5 ]
    [ "$CODE" -eq 124 ] || { cat said; return 1; }
}
