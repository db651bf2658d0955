#!/usr/bin/env bats
# inherited.bats: what CMD can do with the descriptor that it inherits, also where it has given up its user: su,
# runuser, setpriv. To show that it lives, and nothing else (T110).
bats_require_minimum_version 1.8.0
# bats file_tags=sqlite
load helper

# Takes $M for a CMD that becomes nobody, and attacks. What it could do is in did.
begin_attacked() {
    needs_other_users
    [ -x /usr/bin/python3 ] || skip "no python3 that other users can reach"
    cp "$BATS_TEST_DIRNAME/inherited.py" public
    begin sh -c 'exec "$@" >did' - "$SIMBA" lock "${LONG_LEASE[@]}" -k 20s "$M" \
        setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 "$DIR/public/inherited.py"
    KEEPER=$PID
    await grep -q done did
    GUARD=$(child_of "$KEEPER")
}

@test "CMD that has become nobody can neither write to the store nor lock others out" {
    touch share
    begin_attacked
    run ! grep -E '^(wrote|opened|locked .* alone)' did
    run timeout 5 "$SIMBA" lock "${PREFIX}other" true
    expect 0
    timeout 5 "$SIMBA" lock --ttl 1s "${PREFIX}other" true
    is_alive "$KEEPER"
}

@test "CMD that has become nobody gives up what it inherited: the mutex is not another's" {
    begin_attacked
    run "$SIMBA" lock -w 1.5s "$M" true
    expect 124 "held by"
    is_alive "$KEEPER"
}

@test "CMD that has become nobody gives it up, and the keeper is killed: nobody before the guard has ended" {
    begin_attacked
    kill -KILL "$KEEPER" # CMD is deaf to the TERM that follows
    run "$SIMBA" lock -w 1.5s "$M" true
    expect 124 "held by"
    is_alive "$GUARD"
}

@test "keeper and guard are killed: what CMD has started keeps the mutex while it lives" {
    begin "$SIMBA" lock "${LONG_LEASE[@]}" "$M" sh -c 'setsid sleep 60 & echo $! >left.pid; wait'
    keeper=$PID
    await test -s left.pid
    guard=$(child_of "$keeper")
    kill -STOP "$guard"
    kill -KILL "$keeper" "$guard"
    await is_dead "$guard"
    is_alive "$(cat left.pid)"
    run "$SIMBA" lock -w 1.5s "$M" true
    expect 124 "held by"
    kill -KILL "$(cat left.pid)"
    run timeout 15 "$SIMBA" lock -w 10s "$M" true
    [ "$status" -eq 0 ]
}
