#!/usr/bin/env bats
# elect.bats: simba elect: lines, hooks, loss, what dies; simba schedule.
bats_require_minimum_version 1.5.0
load helper

SHORT=(--ttl 1s --transition 500ms)
HOOKS=(-a 'echo acquired $SIMBA_FENCING_TOKEN >>log' -r 'echo released $SIMBA_FENCING_TOKEN >>log')

has() { grep -qE -- "$1" "$2"; } # pattern file
order() { cut -d' ' -f1 log | xargs; }

# ---- elect ------------------------------------------------------------------------------------

@test "elect: acquired and released, for people and as JSON" {
    begin "$SIMBA" elect --id me m >out
    await has '^20..-..-..T..:..:......  acquired  m  me  token [0-9]+$' out
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    has '  released  m  me  token [0-9]+$' out
    [ "$(wc -l <out)" -eq 2 ]
    begin "$SIMBA" elect --json --id me m >out
    await has acquired out
    kill -HUP "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    python3 - <<'P'
import json
a, r = [json.loads(line) for line in open("out")]
assert a["event"] == "acquired" and r["event"] == "released", (a, r)
assert a["token"] == r["token"] > 0 and a["holder"] == "me" and a["mutex"] == "m"
assert 10000 < a["remaining_ms"] <= 16000 and r["remaining_ms"] is None
P
}

@test "elect: two candidates, the second follows; hooks in order across both" {
    begin "$SIMBA" elect m "${HOOKS[@]}" >one
    first=$PID
    await has acquired log
    begin "$SIMBA" elect m "${HOOKS[@]}" >two
    second=$PID
    kill -TERM "$first"
    ends "$first"
    [ "$CODE" -eq 0 ]
    await has acquired two
    kill -TERM "$second"
    ends "$second"
    [ "$(order)" = "acquired released acquired released" ]
    [ "$(cut -d' ' -f2 log | uniq | wc -l)" -eq 2 ]
}

@test "elect: hooks know the mutex, the store and the id; what they print goes to stderr" {
    begin "$SIMBA" elect --id me m -a 'echo $SIMBA_MUTEX $SIMBA_CONTENDER_ID $SIMBA_STORE; echo up >up' >out 2>err
    await test -s up
    kill -TERM "$PID"
    ends "$PID"
    has "^m me $SIMBA_URL$" err
    [ "$(wc -l <out)" -eq 2 ]
}

@test "elect: lost to an operator; the hook that runs is ended, on-released follows" {
    begin "$SIMBA" elect --ttl 60s --transition 30s m -a 'echo acquired >>log; echo $$ >hook.pid; exec sleep 60' -r 'echo released >>log' >out 2>err
    await test -s hook.pid
    run simba release --yes m
    expect 0
    await has lost out
    await has released log
    is_dead "$(cat hook.pid)"
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "elect: a hook that hangs and ignores TERM is killed before the lease is over" {
    begin "$SIMBA" elect "${SHORT[@]}" m -a 'trap "" TERM; echo $$ >hook.pid; while :; do sleep 0.05; done' >out 2>err
    await test -s hook.pid
    kill -STOP "$PID"
    simba lock m true
    is_dead "$(cat hook.pid)"
    kill -CONT "$PID"
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "elect: on-released that hangs is ended, too" {
    begin "$SIMBA" elect "${SHORT[@]}" m -r 'trap "" TERM; echo $$ >hook.pid; while :; do sleep 0.05; done' >out 2>err
    await has acquired out
    kill -TERM "$PID"
    simba lock m true
    is_dead "$(cat hook.pid)"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    has "does not end in time" err
}

@test "elect: killed with -9, on-released still comes before the next one" {
    begin "$SIMBA" elect "${SHORT[@]}" m "${HOOKS[@]}" >out 2>err
    await has acquired log
    kill -KILL "$PID"
    simba lock m sh -c 'echo next >>log'
    [ "$(order)" = "acquired released next" ]
}

@test "elect: killed with -9 while on-acquired runs: that is ended, and on-released follows" {
    begin "$SIMBA" elect "${SHORT[@]}" m -a 'echo acquired >>log; echo $$ >hook.pid; exec sleep 60' -r 'echo released >>log' >out 2>err
    await test -s hook.pid
    kill -KILL "$PID"
    simba lock m sh -c 'echo next >>log'
    is_dead "$(cat hook.pid)"
    [ "$(order)" = "acquired released next" ]
}

@test "elect: stopped for longer than the lease, on-released comes in time, once" {
    begin "$SIMBA" elect "${SHORT[@]}" m "${HOOKS[@]}" >out 2>err
    await has acquired log
    kill -STOP "$PID"
    simba lock m sh -c 'echo next >>log'
    kill -CONT "$PID"
    leads_again() { [ "$(order)" = "acquired released next acquired" ]; }
    await leads_again
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ "$(order)" = "acquired released next acquired released" ]
}

@test "elect: the guard is killed: what the hook has started is gone, and so is the candidate" {
    begin "$SIMBA" elect m -a 'echo $$ >hook.pid; while :; do sleep 0.05; done' >out 2>err
    await test -s hook.pid
    kill -KILL "$(child_of "$PID")"
    ends "$PID"
    [ "$CODE" -eq 125 ]
    is_dead "$(cat hook.pid)"
    has "the guard died" err
    run simba lock -w 5s m true
    expect 0
}

@test "elect: a hook that fails lets others lead" {
    begin "$SIMBA" elect "${SHORT[@]}" m -a 'exit 3' -r 'echo released >>log' >out 2>err
    await has released log
    has "ended with status 3" err
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "elect: a store that is down is tried again; --fail-fast gives up" {
    mkdir -m 700 later
    printf 'this is no database, and it is long enough to be looked at by SQLite' >later/x.db
    run timeout 20 "$SIMBA" -u sqlite:later/x.db elect --fail-fast m
    expect 125 "sqlite:later/x.db"
    begin "$SIMBA" -u sqlite:later/x.db elect m >out 2>err
    await has "tried again" err
    rm later/x.db
    await has acquired out
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "elect: nobody reads: steps down quietly" {
    begin sh -c '"$SIMBA" elect m "$@" | head -n 1; exec sleep 60' sh "${HOOKS[@]}"
    await has acquired log
    run simba lock -n m true # it cannot know before it writes again
    simba release --yes m
    await has released log
    run simba lock -w 5s m true
    expect 0
}

@test "elect: bad input" {
    run simba elect
    expect 64 "name of a mutex is missing"
    run simba elect m cmd
    expect 64 "no CMD here"
    run simba elect --on-aquired x m
    expect 64 "did you mean --on-acquired"
    run simba elect --signal nosuch m
    expect 64 "no signal nosuch"
    run simba elect --kill-after 1h m
    expect 64 "leaves no time"
    run simba elect ""
    expect 64 "empty"
    run simba elect --ttl 1ms --transition 1ms m
    expect 64 "500ms"
}

# ---- schedule ---------------------------------------------------------------------------------

@test "schedule: runs again and again, reports each, ends with 0" {
    begin "$SIMBA" schedule m --every 100ms sh -c 'echo run $SIMBA_MUTEX' >out 2>err
    await has 'run 3 ended with status 0 after' err
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ "$(grep -c '^run m$' out)" -ge 3 ]
    has "acquired, token" err
    has "released, token" err
}

@test "schedule: --json on stdout, and CMD's words on stderr" {
    begin "$SIMBA" schedule --json m --delay 50ms sh -c 'echo words; exit 4' >out 2>err
    await has '"run":2,' out
    kill -TERM "$PID"
    ends "$PID"
    has '^words$' err
    python3 - <<'P'
import json
lines = [json.loads(line) for line in open("out")]
runs = [l for l in lines if l["event"] == "run"]
assert lines[0]["event"] == "acquired" and lines[-1]["event"] == "released", lines
assert [r["run"] for r in runs] == list(range(1, len(runs) + 1)), runs
assert all(r["code"] == 4 and not r["lost"] and r["took_ms"] >= 0 for r in runs), runs
P
}

@test "schedule: --once ends with CMD's status" {
    run simba schedule -q m --once sh -c 'exit 7'
    expect 7 '^$'
    run simba schedule -q m --once true
    expect 0 '^$'
    run -127 simba schedule -q m --once no-such-command-anywhere
    expect 127 "cannot run no-such-command-anywhere"
    run simba schedule -q m --once -c 'exit 5'
    expect 5
}

@test "schedule: only the leader runs" {
    begin "$SIMBA" schedule -q m --every 50ms sh -c 'echo one >>log'
    first=$PID
    await test -s log
    begin "$SIMBA" schedule -q m --every 50ms sh -c 'echo two >>log'
    second=$PID
    before=$(wc -l <log)
    more() { [ "$(wc -l <log)" -ge $((before + 5)) ]; }
    await more
    run grep two log
    expect 1
    kill -KILL "$first"
    await has two log
    kill -TERM "$second"
    ends "$second"
}

@test "schedule: a run that hangs is ended when the lease is, and the next leader begins after it" {
    begin "$SIMBA" schedule -q "${SHORT[@]}" m --every 1s sh -c 'trap "" TERM; echo $$ >run.pid; while :; do sleep 0.05; done' 2>err
    await test -s run.pid
    kill -STOP "$PID"
    simba lock m true
    is_dead "$(cat run.pid)"
    kill -CONT "$PID"
    kill -TERM "$PID"
    ends "$PID"
}

@test "schedule: --at-least keeps the mutex when told to end; --initial-delay" {
    begin "$SIMBA" schedule -q m --every 1h --at-least 1s sh -c 'date +%s%N >>log'
    await test -s log
    kill -TERM "$PID"
    simba lock m sh -c 'date +%s%N >>log'
    ends "$PID"
    mapfile -t at <log
    [ $((at[1] - at[0])) -ge 900000000 ]
    begin "$SIMBA" schedule -q m2 --every 1h --initial-delay 400ms touch ran
    await simba status m2
    [ ! -e ran ]
    await test -e ran
    kill -TERM "$PID"
    ends "$PID"
}

@test "schedule: a signal reaches the run, and ends it in order" {
    begin "$SIMBA" schedule m --every 1s sh -c 'trap "echo told >>log; exit 9" TERM; echo up >up; while :; do sleep 0.05; done' 2>err
    await test -s up
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    has told log
    has 'run 1 ended with status 9' err
}

@test "schedule: bad input" {
    run simba schedule
    expect 64 "name of a mutex is missing"
    run simba schedule m
    expect 64 "CMD is missing"
    run simba schedule m true
    expect 64 "how often"
    run simba schedule m --every 1s --delay 1s true
    expect 64 "either --every or --delay"
    run simba schedule m --every 0 true
    expect 64 "longer than 0"
    run simba schedule m --every soon true
    expect 64 "every"
    run simba schedule m --every 1s -c x y
    expect 64 "not from both"
    run simba schedule m --every 500d true
    expect 64
}
