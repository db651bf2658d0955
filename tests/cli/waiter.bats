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

# bats test_tags=sqlite
@test "a store that can be read but not written ends lock at once, and elect and schedule say why" {
    needs_other_users
    mkdir -m 755 other
    simba -u "sqlite:$DIR/other/x.db" lock m true
    chmod 644 other/*
    denied="mutex 'm' on sqlite:$DIR/other/x.db: cannot open $DIR/other/x.db-live: Permission denied"
    export SIMBA_URL=sqlite:$DIR/other/x.db HOME=$DIR/other
    for words in "" "-n" "-w 2s"; do
        run as_user 65534 bash -c "exec timeout 20 $SIMBA lock $words m ./never"
        expect 125 "^simba lock: $denied"
        [ "${#lines[@]}" -eq 1 ]
    done
    for words in "elect m" "schedule m --once ./never"; do
        # shellcheck disable=SC2086
        begin as_user 65534 "$SIMBA" $words 2>said
        await grep -q "$denied.*; trying again until it works" said
        kill "$PID"
    done
    run as_user 65534 timeout 20 "$SIMBA" elect --fail-fast m
    expect 125 "$denied.*; giving up \\(--fail-fast\\)"
}

# bats test_tags=sqlite
@test "a store that refuses every attempt, but can be read: it is said, and lock gives up" {
    with_server '' redis -- 'port=${1##*:} port=${port%%/*}
        simba lock -u "$1" m true
        redis-cli -p "$port" config set min-replicas-to-write 1 >/dev/null
        code=0
        simba lock -u "$1" m ./never 2>&1 || code=$?
        timeout 3 "$SIMBA" -u "$1" elect m 2>&1 || true
        exit $code'
    expect_all 125 "^simba lock: waiting for 'm' on redis:.*: the server has too few replicas.*; trying again for another [0-9.]+s$" \
        "^simba lock: mutex 'm' on redis:.*: the server has too few replicas" \
        "^simba elect: mutex 'm' on redis:.*: the server has too few replicas.*; trying again until it works$"
}

# bats test_tags=sqlite
@test "a Redis that has just started: whoever waits says why nothing is granted" {
    needs_terminal
    with_server '' redis --guard -- '
        ends() { timeout 2 "$SIMBA" -u "$1?restart_guard=50s" "${@:2}" 2>&1 || true; }
        set -- "${1%%\?*}"
        ends "$1" lock m ./never
        ends "$1" elect m
        ends "$1" schedule m --once ./never
        ends "$1" -q lock q ./never | sed "s/^/quiet: /"
        ends "$1" lock -n m ./never | sed "s/^/once: /"
        python3 -c "import pty, sys; pty.spawn(sys.argv[1:])" timeout 2 "$SIMBA" -u "$1?restart_guard=50s" lock m ./never </dev/null | tr "\r" "\n"'
    local why="waiting for 'm' on redis:.*: nobody may own it for another [0-9.]+s: the server has just started"
    expect_all 0 "^simba lock: $why" "^simba elect: $why" "^simba schedule: $why" \
        "simba lock: waiting [0-9.]+s for 'm'.*: nobody may own it for another [0-9.]+s"
    [ "$(grep -cE "$why" <<<"$output")" -eq 3 ] # not on the terminal, not with -q or -n
    [ "$(grep -c '^once: ' <<<"$output")" -eq 1 ]
    ! grep '^quiet: \|about to take it' <<<"$output"
}
