#!/usr/bin/env bats
# elect.bats: simba elect: lines, hooks, loss, what dies; simba schedule.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

HOOKS=(-a 'echo acquired $SIMBA_FENCING_TOKEN >>log' -r 'echo released $SIMBA_FENCING_TOKEN >>log')

order() { cut -d' ' -f1 log | xargs; }

# ---- elect ------------------------------------------------------------------------------------

@test "elect: acquired and released, for people and as JSON" {
    begin "$SIMBA" elect --id me "$M" >out
    await has "^20..-..-..T..:..:......  acquired  $M  me  token [0-9]+$" out
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    has "  released  $M  me  token [0-9]+$" out
    [ "$(wc -l <out)" -eq 2 ]
    begin "$SIMBA" elect --json --id me "$M" >out
    await has acquired out
    kill -HUP "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    python3 - <<'P'
import json, os
a, r = [json.loads(line) for line in open("out")]
assert a["event"] == "acquired" and r["event"] == "released", (a, r)
assert a["token"] == r["token"] > 0 and a["holder"] == "me" and a["mutex"] == os.environ["M"]
assert 10000 < a["remaining_ms"] <= 16000 and r["remaining_ms"] is None
P
}

@test "elect: two candidates, the second follows; hooks in order across both" {
    begin "$SIMBA" elect "$M" "${HOOKS[@]}" >one
    first=$PID
    await has acquired log
    begin "$SIMBA" elect "$M" "${HOOKS[@]}" >two
    second=$PID
    kill -TERM "$first"
    ends "$first"
    [ "$CODE" -eq 0 ]
    await has acquired two
    both_lead() { [ "$(grep -c acquired log)" -eq 2 ]; } # the hook of who is told to end is told, too
    await both_lead
    kill -TERM "$second"
    ends "$second"
    [ "$(order)" = "acquired released acquired released" ]
    [ "$(cut -d' ' -f2 log | uniq | wc -l)" -eq 2 ]
}

@test "elect: hooks know the mutex, the store and the id; what they print goes to stderr" {
    begin "$SIMBA" elect --id me "$M" -a 'echo $SIMBA_MUTEX $SIMBA_CONTENDER_ID $SIMBA_STORE; echo up >up' >out 2>err
    await test -s up
    kill -TERM "$PID"
    ends "$PID"
    has "^$M me $STORE$" err
    [ "$(wc -l <out)" -eq 2 ]
}

@test "elect: lost to an operator; the hook that runs is ended, on-released follows" {
    begin "$SIMBA" elect "${LONG_LEASE[@]}" "$M" -a 'echo acquired >>log; echo $$ >hook.pid; exec sleep 60' -r 'echo released >>log' >out 2>err
    await test -s hook.pid
    hook=$(cat hook.pid) # it leads again soon
    run simba release --yes "$M"
    expect 0
    await has lost out
    await has released log
    is_dead "$hook"
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "elect: a hook that hangs and ignores TERM is killed before the lease is over" {
    begin "$SIMBA" elect "${SHORT[@]}" "$M" -a 'trap "" TERM; echo $$ >hook.pid; while :; do sleep 0.05; done' >out 2>err
    await test -s hook.pid
    kill -STOP "$PID"
    simba lock "$M" true
    is_dead "$(cat hook.pid)"
    kill -TERM "$PID" # before it can lead again, with a hook that does not hear it
    kill -CONT "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "elect: on-released that hangs is ended, too" {
    begin "$SIMBA" elect "${SHORT[@]}" "$M" -r 'trap "" TERM; echo $$ >hook.pid; while :; do sleep 0.05; done' >out 2>err
    await has acquired out
    kill -TERM "$PID"
    simba lock "$M" true
    is_dead "$(cat hook.pid)"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    has "has not ended in time" err
}

@test "elect: killed with -9, on-released still comes before the next one" {
    begin "$SIMBA" elect "${SHORT[@]}" "$M" "${HOOKS[@]}" >out 2>err
    await has acquired log
    kill -KILL "$PID"
    simba lock "$M" sh -c 'echo next >>log'
    [ "$(order)" = "acquired released next" ]
}

@test "elect: killed with -9 while on-acquired runs: that is ended, and on-released follows" {
    begin "$SIMBA" elect "${SHORT[@]}" "$M" -a 'echo acquired >>log; echo $$ >hook.pid; exec sleep 60' -r 'echo released >>log' >out 2>err
    await test -s hook.pid
    kill -KILL "$PID"
    simba lock "$M" sh -c 'echo next >>log'
    is_dead "$(cat hook.pid)"
    [ "$(order)" = "acquired released next" ]
}

@test "elect: stopped for longer than the lease, on-released comes in time, once" {
    begin "$SIMBA" elect "${SHORT[@]}" "$M" "${HOOKS[@]}" >out 2>err
    await has acquired log
    kill -STOP "$PID"
    simba lock "$M" sh -c 'echo next >>log'
    kill -CONT "$PID"
    leads_again() { [ "$(order)" = "acquired released next acquired" ]; }
    await leads_again
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ "$(order)" = "acquired released next acquired released" ]
}

@test "elect: the guard is killed: what the hook has started is gone, and so is the candidate" {
    begin "$SIMBA" elect --id me "$M" -a 'echo $SIMBA_FENCING_TOKEN >token; echo $$ >hook.pid; while :; do sleep 0.05; done' \
        -r 'echo $SIMBA_MUTEX $SIMBA_CONTENDER_ID $SIMBA_FENCING_TOKEN >>log; echo said' >out 2>err
    await test -s hook.pid
    kill -KILL "$(child_of "$PID")"
    ends "$PID"
    [ "$CODE" -eq 125 ]
    is_dead "$(cat hook.pid)"
    has "simba-guard, [0-9]+, was killed; killing CMD" err
    [ "$(cat log)" = "$M me $(cat token)" ] # and once
    has '^said$' err
    has released out
    run simba lock -w 5s "$M" true
    expect 0
}

@test "elect: a hook that fails lets others lead" {
    begin "$SIMBA" elect "${SHORT[@]}" "$M" -a 'exit 3' -r 'echo released >>log' >out 2>err
    await has released log
    has "ended with status 3" err
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "elect: a store that is down is tried again; --fail-fast gives up" {
    make_store_losable
    lose_store
    begin timeout 20 "$SIMBA" elect --fail-fast "$M" 2>fast
    fast=$PID
    begin "$SIMBA" elect "$M" >out 2>err
    candidate=$PID
    await has "trying again until it works" err
    ends "$fast"
    [ "$CODE" -eq 125 ]
    has "$STORE" fast
    find_store
    await has acquired out
    kill -TERM "$candidate"
    ends "$candidate"
    [ "$CODE" -eq 0 ]
}

@test "elect: nobody reads: steps down quietly" {
    begin sh -c '"$SIMBA" elect "$M" "$@" | head -n 1; exec sleep 60' sh "${HOOKS[@]}"
    await has acquired log
    run simba lock -n "$M" true # it cannot know before it writes again
    simba release --yes "$M"
    await has released log
    run simba lock -w 5s "$M" true
    expect 0
}

@test "elect: nobody reads while the hook runs: that is told to end, and on-released follows" {
    begin "$SIMBA" elect "${LONG_LEASE[@]}" "$M" -a 'exec sleep 600' -r 'echo released >>log' >/dev/full 2>err
    ends "$PID"
    [ "$CODE" -eq 125 ]
    has 'cannot write to stdout' err
    run has 'no renewal for' err # it does not wait for the end of the lease
    expect 1
    [ "$(order)" = released ]
}

# bats test_tags=storeless
@test "elect: bad input" {
    run simba elect
    expect 64 "missing NAME"
    run simba elect "$M" cmd
    expect 64 "unexpected argument 'cmd'"
    run simba elect --on-aquired x "$M"
    expect 64 "did you mean --on-acquired"
    run simba elect --signal nosuch "$M"
    expect 64 "--signal .nosuch. is not a signal"
    run simba elect --kill-after 1h "$M"
    expect 64 "leaves no time"
    run simba elect ""
    expect 64 "empty"
    run simba elect --ttl 1ms --transition 1ms "$M"
    expect 64 "500ms"
}

# ---- schedule ---------------------------------------------------------------------------------

@test "schedule: runs again and again, reports each, ends with 0" {
    begin "$SIMBA" schedule "$M" --every 100ms sh -c 'echo run $SIMBA_MUTEX' >out 2>err
    await has 'run 3 ended with status 0 after' err
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ "$(grep -c "^run $M$" out)" -ge 3 ]
    has "acquired, token" err
    has "released, token" err
}

@test "schedule: --json on stdout, and CMD's words on stderr" {
    begin "$SIMBA" schedule --json "$M" --delay 50ms sh -c 'echo words; exit 4' >out 2>err
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
assert all(not r["lost"] and r["took_ms"] >= 0 and r["tick"] is None for r in runs), runs
assert all(r["code"] == 4 for r in runs[:-1]), runs
assert runs[-1]["code"] == 4 or (len(runs) > 2 and runs[-1]["code"] == 128 + 15), runs # it was told to end
P
}

@test "schedule: --once ends with CMD's status" {
    run simba schedule -q "$M" --once sh -c 'exit 7'
    expect 7 '^$'
    run simba schedule -q "$M" --once true
    expect 0 '^$'
    run -127 simba schedule -q "$M" --once no-such-command-anywhere
    expect 127 "cannot run no-such-command-anywhere"
    run simba schedule -q "$M" --once -c 'exit 5'
    expect 5
}

@test "schedule --json: who leads and each run, until nobody reads, exit 141" {
    run timeout 20 bash -c '"$SIMBA" schedule --json "$M" --every 50ms true | head -n 2; echo "${PIPESTATUS[0]}"'
    expect 0 '^\{"event":"acquired",.*"holder":'
    grep -qE '^\{"event":"run","at_ms":[0-9]+,"mutex":"[^"]+","token":[0-9]+,"run":1,"tick":"[-0-9T:.]+Z","took_ms":[0-9]+,"code":0,"lost":false,"store":"[^"]+"\}$' <<<"$output"
    grep -qx 141 <<<"$output"
    run simba lock -w 5s "$M" true
    expect 0
}

@test "schedule: only the leader runs" {
    begin "$SIMBA" schedule -q "${SHORT[@]}" "$M" --every 50ms sh -c 'echo one >>log'
    first=$PID
    await test -s log
    begin "$SIMBA" schedule -q "${SHORT[@]}" "$M" --every 50ms sh -c 'echo two >>log'
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
    begin "$SIMBA" schedule -q "${SHORT[@]}" "$M" --every 1s sh -c 'trap "" TERM; echo $$ >run.pid; while :; do sleep 0.05; done' 2>err
    await test -s run.pid
    kill -STOP "$PID"
    simba lock "$M" true
    is_dead "$(cat run.pid)"
    kill -TERM "$PID" # before it can lead again, with a run that does not hear it
    kill -CONT "$PID"
    ends "$PID"
}

@test "schedule: --at-least keeps the mutex when told to end; --initial-delay" {
    local before
    before=$(date +%s%N)
    begin "$SIMBA" schedule -q "$M" --every 1h --at-least 3s touch ran
    await test -e ran
    kill -TERM "$PID"
    simba lock "$M" sh -c 'date +%s%N >next'
    ends "$PID"
    [ $(($(cat next) - before)) -ge 3000000000 ] # it counts from before the run
    before=$(date +%s%N)
    begin "$SIMBA" schedule -q "${M}2" --every 1h --initial-delay 400ms sh -c 'date +%s%N >first'
    await test -s first
    [ $(($(cat first) - before)) -ge 400000000 ]
    kill -TERM "$PID"
    ends "$PID"
}

# Longer than a lease.
SLOW_END='trap "sleep 2.5; echo ended >>log; exit 0" TERM; touch up; while :; do sleep 0.05; done'

@test "schedule: a run that takes long to end after a signal is not killed, and the mutex is kept for it" {
    [ "$KIND" != zookeeper ] || skip "leases are longer there"
    begin "$SIMBA" schedule --ttl 500ms --transition 500ms "$M" --every 1h sh -c "$SLOW_END" 2>err
    await test -e up
    kill -TERM "$PID"
    run simba lock -w 20s "$M" cat log # not before the run has ended
    expect 0 '^ended$'
    ends "$PID"
    [ "$CODE" -eq 0 ]
    ! has lost err
    has 'run 1 ended with status 0' err
}

@test "elect: a hook that takes long to end after a signal is not killed, and the mutex is kept for it" {
    [ "$KIND" != zookeeper ] || skip "leases are longer there"
    begin "$SIMBA" elect --ttl 500ms --transition 500ms "$M" -a "$SLOW_END" -r 'echo "$SIMBA_REASON" >>log' >out 2>err
    await test -e up
    kill -TERM "$PID"
    run simba lock -w 20s "$M" cat log
    expect 0 '^ended$'
    expect 0 '^released$'
    ends "$PID"
    [ "$CODE" -eq 0 ]
    ! has lost err
}

@test "schedule: a signal reaches the run, and ends it in order" {
    begin "$SIMBA" schedule "$M" --every 1s sh -c 'trap "echo told >>log; exit 9" TERM; echo up >up; while :; do sleep 0.05; done' 2>err
    await test -s up
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    has told log
    has 'run 1 ended with status 9' err
}

# bats test_tags=storeless
@test "schedule: bad input" {
    run simba schedule
    expect 64 "missing NAME"
    run simba schedule "$M"
    expect 64 "missing CMD"
    run simba schedule "$M" true
    expect 64 "how often"
    run simba schedule "$M" --every 1s --delay 1s true
    expect 64 "--every, --cron and --delay exclude each other"
    run simba schedule "$M" --every 1s --once true
    expect 64 "--once excludes --every, --cron and --delay"
    run simba schedule "$M" --once --delay 1s true
    expect 64 "--once excludes --every, --cron and --delay"
    run simba schedule "$M" --every 0 true
    expect 64 "longer than 0"
    run simba schedule "$M" --every soon true
    expect 64 "every"
    run simba schedule "$M" --every 1s -c x y
    expect 64 "CMD is given twice"
    run simba schedule "$M" --every 500d true
    expect 64
}
