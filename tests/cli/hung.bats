#!/usr/bin/env bats
# hung.bats: a store that takes connections and answers nothing: what lock makes of it. That another owns the
# mutex is known only from the store, so without its answer nothing is a conflict.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

# The proxy to the store stands still: what is sent to it is taken, and stays there.
make_store_hang() {
    [ "$KIND" != sqlite ] || skip "a file does not hang"
    make_store_losable
    kill -STOP "$PROXY"
}

store_goes_on() { kill -CONT "$PROXY"; }

# Runs it, and how long that took is in $took, in ms.
timed() {
    local began
    began=$(date +%s%N)
    run "$@"
    took=$((($(date +%s%N) - began) / 1000000))
}

@test "lock -w on a store that hangs: 125, never the status of -E, and -w is kept" {
    make_store_hang
    timed simba lock -q -w 1s -E 0 "$M" touch never
    expect 125 "^simba lock: mutex '$M' on $STORE: "
    [ "$took" -lt 2500 ] || { echo "$took ms: $output"; return 1; }
    timed simba lock -q -w 3s -E 0 "$M" touch never
    expect 125 "^simba lock: mutex '$M' on $STORE: "
    [ "$took" -ge 2900 ] && [ "$took" -lt 4500 ] || { echo "$took ms: $output"; return 1; }
    timed simba lock -q -w 1100ms -E 0 "$M" touch never # the end is not late by a read of a second
    expect 125 "^simba lock: mutex '$M' on $STORE: "
    [ "$took" -ge 1100 ] && [ "$took" -lt 1900 ] || { echo "$took ms: $output"; return 1; }
    [ ! -e never ]
}

@test "lock -n on a store that hangs: 125 after command_timeout" {
    make_store_hang
    timed simba lock -q -n -E 0 "$M" touch never
    expect 125 "^simba lock: mutex '$M' on $STORE: "
    [ "$took" -lt 3500 ] || { echo "$took ms: $output"; return 1; }
    local and='?'
    [[ "$SIMBA_URL" != *\?* ]] || and='&'
    timed simba -u "$SIMBA_URL${and}command_timeout=100ms" lock -q -n -E 0 "$M" touch never
    expect 125
    [ "$took" -lt 950 ] || { echo "$took ms: $output"; return 1; }
    [ ! -e never ]
}

@test "lock -w: held while the store answered, and then it hangs: that is a conflict" {
    [ "$KIND" != sqlite ] || skip "a file does not hang"
    make_store_losable
    hold "$M"
    begin "$SIMBA" lock -q -w 4s -E 9 "$M" touch never
    sleep 2
    kill -STOP "$PROXY"
    ends "$PID"
    store_goes_on
    [ "$CODE" -eq 9 ]
}

@test "once --status on a store that hangs: 125, and how long it was asked" {
    make_store_hang
    run simba once -q --status "$M" --per 1h
    expect 125 "^simba once: mutex '$M' on $STORE: "
    ! grep -qE 'did not answer in [0-9]+ ms' <<<"$output" || { echo "$output"; return 1; } # the last attempt's
}

@test "release --wait=D: the store hangs before the end: 125, and the end is not late" {
    [ "$KIND" != sqlite ] || skip "a file does not hang"
    make_store_losable
    begin "$SIMBA" lock --ttl 30s -k 8s "$M" sh -c 'trap "" TERM; touch held; sleep 60 & while ! wait; do :; done'
    await test -e held
    owner=$PID
    begin "$SIMBA" release --yes --wait=3s "$M" 2>said
    sleep 1
    kill -STOP "$PROXY"
    local began
    began=$(date +%s%N)
    ends "$PID"
    took=$((($(date +%s%N) - began) / 1000000))
    store_goes_on
    kill -KILL "$owner" || true # its session may have ended it
    [ "$CODE" -eq 125 ] && [ "$took" -lt 4300 ] || { echo "$CODE, $took ms"; cat said; return 1; }
}

@test "lock on a store that hangs: it is asked on, says for how long, and runs CMD when there is an answer" {
    make_store_hang
    begin "$SIMBA" lock "$M" touch has-run 2>said
    sleep 9 # one that is not there is given up after five seconds
    is_alive "$PID" || { cat said; return 1; }
    grep -qE "^simba lock: waiting for '$M' on $STORE: .+; trying again for another 5[0-9.]+s$" said || { cat said; return 1; }
    store_goes_on
    ends "$PID"
    [ "$CODE" -eq 0 ] && [ -e has-run ] || { cat said; return 1; }
}

@test "lock and once on a store that hangs for a minute: 125, also with -q" {
    make_store_hang
    local began=$SECONDS
    begin "$SIMBA" once -q "$M" --per 1h touch never 2>once-said
    once=$PID
    begin "$SIMBA" lock -q "$M" touch never 2>lock-said
    ends "$PID"
    [ "$CODE" -eq 125 ]
    ends "$once"
    [ "$CODE" -eq 125 ]
    [ $((SECONDS - began)) -ge 58 ] && [ $((SECONDS - began)) -lt 70 ]
    grep -qE "^simba lock: mutex '$M' on $STORE: .+; given up after 1m0[0-9]" lock-said || { cat lock-said; return 1; }
    grep -qE "^simba once: mutex '$M' on $STORE: " once-said || { cat once-said; return 1; }
    [ ! -e never ]
}

@test "lock where nothing listens: 125 after five seconds" {
    [ "$KIND" != sqlite ] || skip "a file is there, or is made"
    make_store_losable
    lose_store
    timed simba lock -q "$M" touch never
    expect 125 "^simba lock: mutex '$M' on $STORE: "
    [ "$took" -ge 4000 ] && [ "$took" -lt 12000 ] || { echo "$took ms: $output"; return 1; }
    [ ! -e never ]
}

# bats test_tags=sqlite
@test "lock on a server that has no room for all: each waits for it, as for an owner" {
    local -x CROWD="$BATS_TEST_DIRNAME/../crowd/run"
    local -x SIMBA_TEST_SERVER=--max-connections=10
    with_server '' mariadb -- '"$CROWD" --processes 30 --hold 0.4 "$SIMBA" "$1"'
    expect 0 'each ran CMD alone'
    SIMBA_TEST_SERVER='-c max_connections=13'
    with_server '' postgres -- '"$CROWD" --processes 30 --hold 0.4 "$SIMBA" "$1"'
    expect 0 'each ran CMD alone'
    SIMBA_TEST_SERVER=maxClientCnxns=10
    with_server '' zookeeper -- '"$CROWD" --processes 30 --hold 0.4 "$SIMBA" "$1"'
    expect 0 'each ran CMD alone'
    with_server 'port=${1##*:} port=${port%%/*}
        redis-cli -p "$port" config set maxclients 8' redis -- '"$CROWD" --processes 30 --hold 0.4 "$SIMBA" "$1"'
    expect 0 'each ran CMD alone'
}

# bats test_tags=sqlite
@test "lock -w and -n where another process keeps the file to itself: 125" {
    simba lock "$M" true
    begin python3 -c 'import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("begin exclusive")
open("kept", "w")
time.sleep(60)' store/locks.db
    await test -e kept
    for words in "-w 3s" "-w 200ms" -n; do
        # shellcheck disable=SC2086
        timed simba lock -q $words -E 0 "$M" touch never
        expect 125 "^simba lock: mutex '$M' on $STORE: "
        [ "$took" -lt 4000 ] || { echo "$words: $took ms: $output"; return 1; } # the wait includes the first try
    done
    [ ! -e never ]
}

# ---- nobody owns it, and nobody may yet --------------------------------------------------------------

# bats test_tags=sqlite
@test "a Redis that has just started: lock -n says until when, and is never silent" {
    with_server '' redis --guard -- '
        set -- "${1%%\?*}"
        try() {
            code=0
            simba -u "$1?restart_guard=$2" lock "${@:3}" m touch never 2>&1 || code=$?
            echo "status $code"
        }
        try "$1" 50s -q -n -E 0
        try "$1" 50s -q -w 300ms -E 0
        ! test -e never
        try "$1" 4s -q -w 20s'
    local why="simba lock: mutex 'm' on redis:.*: nobody may own it for another [0-9.]+s: the server has just started"
    expect 0 "^$why.*; CMD is not run$"
    [ "$(grep -cE "^$why" <<<"$output")" -eq 2 ] || { echo "$output"; return 1; }
    [ "$(grep '^status' <<<"$output")" = $'status 125\nstatus 125\nstatus 0' ] || { echo "$output"; return 1; }
}

# bats test_tags=sqlite
@test "lock -n where the mutex is reserved for a moment: it waits for the end of that" {
    with_server '' redis -- '
        port=${1##*:} port=${port%%/*}
        simba lock -u "$1" m true
        for i in 1 2 3; do
            redis-cli -p "$port" set "simba:{m}:token" next:another PX 150 >/dev/null
            code=0
            simba lock -u "$1" -q -n -E 0 m echo has run || code=$?
            echo "status $code"
        done'
    [ "$(grep -c '^has run$' <<<"$output")" -eq 3 ] || { echo "$output"; return 1; }
    expect 0 '^status 0$'
}

# bats test_tags=sqlite
@test "a reservation that is over while the server is slow: nothing is said without a reason" {
    with_server '' redis -- '
        port=${1##*:} port=${port%%/*}
        simba lock -u "$1" m true
        redis-cli -p "$port" set "simba:{m}:token" next:another PX 500 >/dev/null
        simba lock -u "$1" m echo has run 2>said &
        sleep 0.2
        redis-cli -p "$port" client pause 2500 ALL >/dev/null
        wait $!
        echo "said: $(cat said)"'
    expect 0 '^has run$'
    ! grep -E ": ?$" <<<"${output//said: /}" || { echo "$output"; return 1; }
}

# bats test_tags=sqlite
@test "a database that was deleted under an owner: lock -n says until when" {
    hold "$M"
    rm store/locks.db store/locks.db-wal store/locks.db-shm
    run simba lock -q -n -E 0 other touch never
    expect 125 "^simba lock: mutex 'other' on $STORE: nobody may own it for another 1[0-9]s: the database was deleted, replaced or restored.*; CMD is not run$"
    [ ! -e never ]
}

# bats test_tags=sqlite
@test "a URL of another kind of store: lock says what was seen at that port" {
    with_server '' redis -- '
        port=${1##*:} port=${port%%/*}
        for url in "rediss://127.0.0.1:$port/0" "postgresql://127.0.0.1:$port/x" "mysql://127.0.0.1:$port/x"; do
            "$SIMBA" -u "$url" lock -q -w 7s m touch never 2>&1 || echo "status $?"
        done'
    expect_all 0 "^simba lock: mutex 'm' on rediss:.*: it has not answered the TLS handshake; if it speaks no TLS" \
        "^simba lock: mutex 'm' on postgresql:.*: it does not greet; does it hang, is it no PostgreSQL server" \
        "^simba lock: mutex 'm' on mysql:.* has not greeted .*: is it a MariaDB or MySQL server"
    [ "$(grep -c '^status 125$' <<<"$output")" -eq 3 ] || { echo "$output"; return 1; }
}
