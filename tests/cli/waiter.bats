#!/usr/bin/env bats
# waiter.bats: who waits for a lock, and what becomes of the store meanwhile.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

@test "lock: a store that has answered once, and is lost soon after, is waited for" {
    make_store_losable
    hold "$M"
    begin "$SIMBA" lock "$M" true 2>said
    waiter=$PID
    await test -d "/proc/$waiter/task/$waiter"
    sleep 0.3 # it has asked, and has not looked yet
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
    sleep 0.3
    lose_store
    SECONDS=0
    ends "$PID"
    [ "$SECONDS" -ge 5 ]
    [ "$CODE" -eq 124 ] || { cat said; return 1; }
}
