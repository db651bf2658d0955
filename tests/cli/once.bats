#!/usr/bin/env bats
# once.bats: simba once: of all who call, one runs CMD.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

# CMD that leaves a line in a file, so that runs can be counted.
mark() { echo "echo run >>marks; $1"; }
runs() { cat marks 2>/dev/null | wc -l; }
ran() { [ "$(runs)" -eq "$1" ] || { echo "$(runs) runs, not $1"; return 1; }; }

once() { simba once "$M" --per 1h "$@"; }

# A run elsewhere, until the file `go` is there; then it ends with $1.
run_elsewhere() { # status [option...]
    local status_=$1
    shift
    begin "$SIMBA" once --id elsewhere "$@" "$M" --per 1h \
        -c "echo run >>marks; until [ -e go ]; do sleep 0.02; done; exit $status_"
    await test -s marks
}

# A note that somebody else has published.
publish() { # text
    begin "$SIMBA" elect -q --advertise "$1" "$M" >published
    await has acquired published
    kill "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "once: one runs CMD, the next does not" {
    run once -c "$(mark)"
    expect 0 '^$'
    run once -c "$(mark)"
    expect 0 '^$'
    ran 1
}

@test "once -v: says that it was run, that it has run, and when" {
    run once -v -c "$(mark)"
    expect_all 0 "'$M' on $STORE: acquired by " "CMD was run, and ended with status 0 after .*: that counts for another 53m"
    run once -v -c "$(mark)"
    expect 0 "^simba once: mutex '$M' on $STORE: has run: begun [0-9.]+s ago, took [0-9.]+s; that counts for another 53m[0-9]+s, not run here$"
    ran 1
}

@test "once -v: what is usual is no error" {
    once -v --log json -c "$(mark)" 2>said
    once -v --log json -c "$(mark)" 2>>said
    ! has '"level":"(error|warning)"' said || { cat said; return 1; }
    has '"level":"info".*CMD was run' said
    has '"level":"info".*has run: begun' said
    run simba once -v --log json "${M}2" --per 1h -c 'exit 3'
    expect 3 '"level":"warning".*ended with status 3'
    hold "${M}4"
    run simba once -v --log json "${M}4" --per 1h true
    expect 0 '"level":"info".*runs elsewhere'
    run simba once -v "${M}3" --per 1s sleep 1.2
    expect 0 'ended with status 0 after 1.*s: that does not count any more, because it took longer than --per less --early$'
}

@test "once --json: has run" {
    run once --json -c "$(mark)"
    expect 0 '^$'
    run once --json -c "$(mark)"
    expect 0 "^\{\"mutex\":\"$M\",\"outcome\":\"done\",\"age_ms\":[0-9]+,\"counts_ms\":32[0-9]{5},\"status\":0,\"holder\":null,\"token\":[0-9]+,\"store\":\""
    ran 1
}

@test "once: while it runs elsewhere, the others end with 0 at once" {
    run_elsewhere 0
    run once -c "$(mark)"
    expect 0 '^$'
    run once -v -c "$(mark)"
    expect 0 "runs elsewhere: owned by elsewhere( for [0-9.]+s)?; not run here$"
    run once --json -c "$(mark)"
    expect 0 '"outcome":"running","age_ms":[0-9a-z]+,"counts_ms":null,"status":null,"holder":"elsewhere","token":[0-9]+'
    touch go
    ends "$PID"
    [ "$CODE" -eq 0 ]
    ran 1
}

@test "once: a run that fails does not count, and its status is ours" {
    run once -v -c "$(mark 'exit 7')"
    expect 7 'ended with status 7 after .*: that does not count, the next caller runs it'
    run once -c "$(mark 'kill -TERM $$')"
    expect 143
    run -127 once ./nosuch
    expect 127 "cannot run ./nosuch: No such file or directory; '$M' on $STORE is released"
    run once -c "$(mark)"
    expect 0
    run once -c "$(mark)"
    ran 3
}

@test "once: the last success counts, whatever failed after it" {
    run simba once "$M" --per 2s -c "$(mark)"
    sleep 2
    run simba once "$M" --per 2s -c "$(mark 'exit 1')"
    expect 1
    run once -v -c "$(mark)" # who asks for an hour is told of the first
    expect 0 'has run: begun [0-9.]+s ago'
    ran 2
}

@test "once: when the period is over, it is run again" {
    simba once "$M" --per 1s -c "$(mark)"
    sleep 1
    simba once "$M" --per 1s -c "$(mark)"
    ran 2
}

@test "once: a tenth of the period earlier it is run again; --early" {
    publish 'once/1 ended 0 after 3120000 ms' # 52 of 60 minutes ago: a tenth is 6
    once -c "$(mark)"
    ran 0
    once --early 20m -c "$(mark)"
    ran 1
    publish 'once/1 ended 0 after 3300000 ms' # 55 minutes ago
    once -c "$(mark)"
    ran 2
}

@test "once --early 0: the period is exact" {
    publish 'once/1 ended 0 after 3420000 ms' # 57 of 60 minutes ago
    once --early 0 -c "$(mark)"
    ran 0
    once -c "$(mark)"
    ran 1
}

@test "once: the period counts from the beginning of a run" {
    simba once "$M" --per 3s --early 0 -c "$(mark 'sleep 3')"
    simba once "$M" --per 3s --early 0 -c "$(mark)"
    ran 2
}

@test "once -w: waits for the one that runs; it has succeeded, so that is all" {
    run_elsewhere 0
    first=$PID
    begin "$SIMBA" once -v -w 20s "$M" --per 1h -c "$(mark)" 2>said
    second=$PID
    sleep 0.5
    is_alive "$second"
    touch go
    ends "$second"
    [ "$CODE" -eq 0 ]
    has 'has run: begun' said
    ends "$first"
    ran 1
}

@test "once -w: if that one fails, this one runs it" {
    run_elsewhere 3
    begin "$SIMBA" once -w 20s "$M" --per 1h -c "$(mark 'exit 4')" 2>said
    sleep 0.5
    touch go
    ends "$PID"
    [ "$CODE" -eq 4 ]
    ran 2
}

@test "once -w: not over in time; -E" {
    run_elsewhere 0
    run once -w 0.3s -c "$(mark)"
    expect 124
    run once -w 0.3s -E 9 -q -c "$(mark)"
    expect 9 '^$'
    ran 1
}

# ---- --status ----------------------------------------------------------------------------------

state() { simba once --status "$M" --per 1h "$@"; }

@test "once --status: overdue, running, failed, fresh" {
    run state
    expect 2 "^mutex '$M' on $STORE: overdue: no run is recorded$"
    run_elsewhere 3
    run state
    expect 3 "^mutex '$M' on $STORE: running: owned by elsewhere"
    touch go
    ends "$PID"
    run once -c "$(mark 'exit 7')"
    expect 7
    run state
    expect 1 "^mutex '$M' on $STORE: failed: the last run ended with status 7 [0-9.]+s ago, after [0-9.]+s, by .*; 2 failures in a row; no success is recorded$"
    run state --json
    expect 1 "^\{\"mutex\":\"$M\",\"state\":\"failed\",\"age_ms\":null,\"failed_ms\":[0-9]+,\"failed_status\":7,\"failed_by\":\"[^\"]+\",\"failures\":2,\"holder\":null,\"token\":[0-9]+,\"store\":\""
    run once -c "$(mark)"
    expect 0
    run state
    expect 0 "^mutex '$M' on $STORE: fresh: the last success began [0-9.]+s ago, and took [0-9.]+s$"
    run state --json
    expect 0 '"state":"fresh","age_ms":[0-9]+,"failed_ms":null,"failed_status":null,"failed_by":null,"failures":0,'
    ran 3
}

@test "once --status: a failure after a success keeps both; too old is overdue" {
    publish 'once/1 ended 0 after 3300000 ms'
    run state
    expect 0
    publish 'once/1 ended 0 after 3980000 ms'
    run state
    expect 2 'overdue: the last success began 1h06m([0-9]+s)? ago'
    run simba once --status "$M" --per 1h --early 10m
    expect 0
    run once -c "$(mark 'kill -KILL $$')"
    expect 137
    run state
    expect 1 'failed: the last run ended with status 137 .*; the last success began 1h06m([0-9]+s)? ago'
    once -c "$(mark)"
    run state
    expect 0
    ran 2
}

@test "once --status: what could not be run has failed, and so has what died under --at-most-once" {
    run -127 once ./nosuch
    run state
    expect 1 'status 127'
    run -127 once --at-most-once ./nosuch
    run state
    expect 1 'status 127 .*; 2 failures in a row'
    run once --at-most-once -c "$(mark 'exit 5')"
    expect 5
    run state
    expect 1 'status 5 .*; 3 failures in a row'
    publish 'once/1 begun'
    run state
    expect 1 'failed: a run was begun [0-9.]+s ago with --at-most-once, and its end is not recorded'
}

@test "once --status: wrong usage, and a note of somebody else" {
    run simba once --status "$M" --per 1h true
    expect 64 '--status runs nothing: leave CMD out'
    run simba once --status "$M"
    expect 64 'missing --per D'
    publish 'http://10.0.0.7:8080'
    run state
    expect 125 'not of this simba once'
}

# ---- what dies --------------------------------------------------------------------------------

# Kills CMD and all of simba at once, so that nobody is left who could say anything.
kill_run() {
    local guard=
    guard=$(child_of "$PID")
    kill -STOP "$PID" "$guard"
    kill -KILL "$(child_of "$guard")" "$guard" "$PID"
    wait "$PID" || true
}

again() {
    once "$@" -c "$(mark)"
    [ "$(runs)" -eq 2 ]
}

@test "once: a run that was killed with simba does not count" {
    begin "$SIMBA" once $SHORT_LEASE "$M" --per 1h -c 'echo run >>marks; exec sleep 60'
    await test -s marks
    kill_run
    await again
    ran 2
}

@test "once --at-most-once: a run that was killed with simba counts" {
    begin "$SIMBA" once $SHORT_LEASE --at-most-once "$M" --per 1h -c 'echo run >>marks; exec sleep 60'
    await test -s marks
    kill_run
    await free
    run once -v -c "$(mark)"
    expect 0 'a run was begun [0-9.]+s ago with --at-most-once, and its end is not recorded; it counts for another 53m[0-9]+s, not run here$'
    run once --at-most-once --json -c "$(mark)"
    expect 0 '"outcome":"begun","age_ms":[0-9]+,"counts_ms":[0-9]+,"status":null'
    ran 1
}
free() { simba lock -n "$M" true; }

@test "once: the lease is lost: 123, and it does not count" {
    begin "$SIMBA" once "${LOSABLE[@]}" "$M" --per 1h -c 'echo run >>marks; exec sleep 60' 2>said
    await test -s marks
    simba release --yes "$M" 2>/dev/null
    ends "$PID"
    [ "$CODE" -eq 123 ]
    await again
    ran 2
}

@test "once --at-most-once: a run that fails counts; one that never began does not" {
    run -127 once --at-most-once ./nosuch
    expect 127
    run once --at-most-once -c "$(mark 'exit 5')"
    expect 5
    run once --at-most-once -v -c "$(mark)"
    expect 0 'a run was begun [0-9.]+s ago with --at-most-once, and ended with status 5; it counts'
    run once --json -c "$(mark)"
    expect 0 '"outcome":"failed",.*"status":5,'
    ran 1
}

@test "once: TERM ends CMD, and then it does not count" {
    begin "$SIMBA" once "$M" --per 1h -c 'echo run >>marks; exec sleep 60'
    await test -s marks
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 143 ]
    again
}

# ---- notes of others, stores ------------------------------------------------------------------

@test "once: a note of somebody else is kept, and nothing is run" {
    publish 'http://10.0.0.7:8080'
    run once -c "$(mark)"
    expect 125 "mutex '$M' on $STORE has a note that is not of this simba once, 'http://10.0.0.7:8080'; not run, to keep it. Choose a NAME that nobody else uses"
    ran 0
    for text in 'once/2 begun' 'once/1 ended 0' 'once/1 ended -1 after 5 ms' 'once/1 ended 0 after 5 ms ' 'once/1 ' \
        'once/1 ended 0 after 5 ms; failed 3 after 5 ms' 'once/1 not begun; failed 3 after 5 ms, 0 in a row, by a'; do
        publish "$text"
        run once -c "$(mark)"
        expect 125 'not of this simba once'
    done
    ran 0
}

@test "once: what it has recorded is read as it was written" {
    publish 'once/1 not begun'
    run simba once "$M" --per 0.001s -c "$(mark)"
    expect 0
    ran 1
    publish 'once/1 ended 0 after 3000000 ms'
    run once -v -c "$(mark)"
    expect 0 'begun 50m0[0-9]s ago, took 50m00s; that counts for another [34]m'
    run simba once "$M" --per 55m -c "$(mark)"
    expect 0
    ran 2
}

@test "once: the store is lost while CMD runs: nothing is recorded, and simba says so" {
    make_store_losable
    begin "$SIMBA" once "$M" --per 1h -c 'echo run >>marks; until [ -e go ]; do sleep 0.02; done' 2>said
    await test -s marks
    lose_store
    touch go
    ends "$PID"
    [ "$CODE" -eq 125 ] || { cat said; return 1; }
    has 'CMD has succeeded, but that is not recorded: the next caller may run it again' said
}

@test "once --at-most-once: likewise, but that it has begun is recorded" {
    make_store_losable
    begin "$SIMBA" once --at-most-once "$M" --per 1h -c 'echo run >>marks; until [ -e go ]; do sleep 0.02; done; exit 6' 2>said
    await test -s marks
    lose_store
    touch go
    ends "$PID"
    [ "$CODE" -eq 6 ] || { cat said; return 1; }
    has 'only that CMD has begun is recorded, and counts' said
}

@test "once: a store that is not there: 125, and nothing is run" {
    make_store_losable
    [ "$KIND" != sqlite ] || simba lock "$M" true
    lose_store
    run once -c "$(mark)"
    expect 125
    [ -n "$output" ]
    ran 0
}

# bats test_tags=sqlite
@test "once: signals end it while it asks the store" {
    [ -e "$(dirname "$SIMBA")/modules/simba-redis.so" ] || skip "the store for redis is not built"
    export SIMBA_MODULE_PATH=$(dirname "$SIMBA")/modules
    python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True)
c = s.accept()[0]; c.recv(1); print("asked", flush=True); time.sleep(60)' >port &
    STARTED+=($!)
    await test -s port
    # Nothing else ends it for an hour.
    begin "$SIMBA" once -u "redis://127.0.0.1:$(cat port)?connect_timeout=1h&command_timeout=1h" "$M" --per 1d true 2>said
    await has asked port
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 143 ]
}

# In a script of with_server: PROXIED is the URL of a proxy to $1 that swallows answers for so long after a word.
swallow='swallow() { # URL word seconds
    rm -f proxy.port
    python3 "$PROXY_PY" 127.0.0.1 "$(grep -oE "[0-9]{5}" <<<"$1" | head -n 1)" proxy.port "$2" "$3" >/dev/null 2>&1 3>&- &
    trap "kill $!" EXIT
    until [ -s proxy.port ]; do sleep 0.02; done
    PROXIED="redis://127.0.0.1:$(cat proxy.port)/0?restart_guard=off"
}'

# bats test_tags=sqlite
@test "once --at-most-once: a claim whose answer is lost is taken back, and the next caller runs CMD" {
    PROXY_PY=$BATS_TEST_DIRNAME/proxy.py with_server "$swallow" redis -- '
        simba once -u "$1" --at-most-once warm --per 1h true # so that the server knows the script
        swallow "$1" "once/1 begun" 7
        code=0
        "$SIMBA" once -u "$PROXIED" --at-most-once m --per 1h -c "echo TOO EARLY" 2>&1 || code=$?
        echo "ended with $code"
        simba once -u "$1" --at-most-once m --per 1h -c "echo RAN"'
    expect_all 0 "^simba once: mutex 'm' on redis:.*; CMD is not run \(--at-most-once\), and that is recorded: the next caller runs it$" \
        '^ended with 125$' '^RAN$'
    ! grep 'TOO EARLY' <<<"$output"
}

# bats test_tags=sqlite
@test "once --at-most-once: a claim that cannot be taken back: it says what that means" {
    PROXY_PY=$BATS_TEST_DIRNAME/proxy.py with_server "$swallow" redis -- '
        swallow "$1" "once/1 begun" 60
        code=0
        "$SIMBA" once -u "$PROXIED" --ttl 2s --transition 1s --at-most-once m --per 1h -c "echo TOO EARLY" 2>&1 || code=$?
        echo "ended with $code"'
    expect_all 0 "^simba once: mutex 'm' on redis:.*; CMD was not run, but the store may have recorded that it began \(--at-most-once\); then no caller runs it for another 5[34]m[0-9]*s?$" \
        '^ended with 125$'
    ! grep 'TOO EARLY' <<<"$output"
}

# bats test_tags=sqlite
@test "once: the lease is lost while the success is recorded: 125, and it says what is true" {
    PROXY_PY=$BATS_TEST_DIRNAME/proxy.py with_server "$swallow" redis -- '
        swallow "$1" "once/1 ended" 60
        code=0
        "$SIMBA" once -u "$PROXIED" --log json --ttl 2s --transition 1s m --per 1h -c "echo RAN" 2>&1 || code=$?
        echo "ended with $code"'
    expect_all 0 "\"reason\":\"expired\",\"text\":\"lost 'm' on redis:.*: no renewal for .*; CMD had ended with status 0, but that is not certainly recorded: the next caller may run it again\"" \
        '^RAN$' '^ended with 125$'
    [ "$(grep -c '"level":"error"' <<<"$output")" -eq 1 ]
}

# bats test_tags=sqlite
@test "once: a Redis that has just started grants nothing: it waits for that, and one runs CMD" {
    with_server '' redis --guard -- '
        pids=()
        for i in 1 2 3; do
            simba once -u "$1" --ttl 3s --transition 3s nightly --per 1d -c "echo RAN" 2>&1 &
            pids+=($!)
        done
        for pid in "${pids[@]}"; do wait "$pid" && echo "ended with 0"; done
        simba once -u "$1" --ttl 3s --transition 3s nightly --per 1d -c "echo RAN" && echo "ended with 0"'
    expect_all 0 "^simba once: mutex 'nightly' on redis:.*: nobody may own it for another [0-9.]+s: the server has just started.* \(restart_guard\); waiting for the end of that$"
    [ "$(grep -c '^RAN$' <<<"$output")" -eq 1 ]
    [ "$(grep -c '^ended with 0$' <<<"$output")" -eq 4 ]
}

# bats test_tags=sqlite
@test "once: a Redis that grants nothing for longer than a lease: 125, and it says why" {
    with_server '' redis --guard -- 'set -- "${1%%\?*}?restart_guard=50s"
        code=0
        timeout 10 "$SIMBA" once -u "$1" nightly --per 1d ./never 2>&1 || code=$?
        echo "ended with $code"'
    expect_all 0 "^simba once: mutex 'nightly' on redis:.*: nobody may own it for another [0-9.]+s: the server has just started.* \(restart_guard\); CMD is not run$" \
        '^ended with 125$'
}

# bats test_tags=storeless
@test "once: wrong usage" {
    run simba once
    expect 64 'missing NAME'
    run simba once --per 1h m
    expect 64 'missing CMD'
    run simba once m true
    expect 64 'missing --per D'
    run simba once --per 0 m true
    expect 64 'no run would ever count'
    run simba once --per 1h --early 1h m true
    expect 64 '--early must be shorter than --per'
    run simba once --per 1x m true
    expect 64 "--per: '1x' is not a duration"
    run simba once --per 1h -c a m b
    expect 64 'CMD is given twice'
}

# ---- many at once -----------------------------------------------------------------------------

@test "once: twenty at the same moment, one runs it" {
    run "$BATS_TEST_DIRNAME/../once/run" --rounds 3 --processes 20 "$SIMBA" "$SIMBA_URL"
    expect 0 '3 rounds of 20: each was run once'
}

# bats test_tags=storeless
@test "once --dry-run: shows the period" {
    run simba once --dry-run --at-most-once --per 1h m true
    expect 0 '^a run counts for 1h00m, less 6m00s \(--early\), once it has begun \(--at-most-once\)$'
}
