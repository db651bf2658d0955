#!/usr/bin/env bats
# reason.bats: why a tenure ended, as elect, schedule and watch say it, and as hooks are told.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

HOOK='echo "$SIMBA_REASON" >>reasons'

# elect, leading; its lines are in out
lead() { # options...
    begin "$SIMBA" elect --id me "$@" "$M" -r "$HOOK" >out 2>err
    await has acquired out
}

@test "elect: released by a signal" {
    lead -a 'echo ${SIMBA_REASON-none} >none'
    await test -s none
    kill -TERM "$PID"
    ends "$PID"
    [ "$(cat none)" = none ]
    [ "$(cat reasons)" = released ]
    has "  released  $M  me  token [0-9]+$" out
}

@test "elect: expired, because the store does not answer" {
    make_store_losable
    lead "${LOSABLE[@]}" -a 'exec sleep 60'
    lose_store
    await has . reasons
    await has "  lost      $M  me  token [0-9]+  expired$" out
    [ "$(head -n 1 reasons)" = expired ]
    ! has '  released  ' out
}

@test "elect --json: expired, without --on-acquired" {
    make_store_losable
    lead "${LOSABLE[@]}" --json
    lose_store
    await has '"event":"lost".*"reason":"expired"' out
    await has . reasons
    [ "$(head -n 1 reasons)" = expired ]
    has '"event":"acquired".*"reason":null' out
}

@test "elect: evicted by an operator: said at once, and the hook is told" {
    lead "${LONG_LEASE[@]}" -a 'trap "date +%s%N >told; exit 0" TERM; echo up >up; while :; do sleep 0.01; done'
    await test -s up
    simba release --yes "$M"
    await has "  lost      $M  me  token [0-9]+  evicted$" out
    await has . reasons
    [ "$(head -n 1 reasons)" = evicted ]
}

@test "elect: the keeper is killed: the hook is told that it expired" {
    lead "${SHORT[@]}"
    kill -KILL "$PID"
    await has . reasons
    [ "$(cat reasons)" = expired ]
}

@test "elect: the guard is killed: the keeper gives the mutex back" {
    lead -a 'echo up >up; exec sleep 60'
    await test -s up
    kill -KILL "$(child_of "$PID")"
    ends "$PID"
    [ "$CODE" -eq 125 ]
    [ "$(cat reasons)" = released ]
}

@test "schedule: evicted, in words and as JSON" {
    begin "$SIMBA" schedule "${LONG_LEASE[@]}" "$M" --every 1h sh -c 'echo up >up; exec sleep 60' 2>err
    await test -s up
    simba release --yes "$M"
    await has 'lost \(evicted\), token' err
    kill -TERM "$PID"
    ends "$PID"
    begin "$SIMBA" schedule --json "${LONG_LEASE[@]}" "${M}j" --every 1h sh -c 'echo up >up2; exec sleep 60' >out 2>err
    await test -s up2
    simba release --yes "${M}j"
    await has '"event":"lost".*"reason":"evicted"' out
    kill -TERM "$PID"
    ends "$PID"
}

@test "watch: reasons in words and as JSON" {
    simba init
    begin "$SIMBA" watch "$M" >text
    begin "$SIMBA" watch --json "$M" >json
    await has free text
    await has free json
    hold "$M"
    await has acquired text
    await has acquired json
    kill -TERM "$PID"
    await has released text
    await has '"event":"released".*"reason":"released"' json
    has '"event":"acquired".*"reason":"acquired"' json
}
