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

# Of $M there is nobody left but a process that CMD has started: LEFT. Neither of the two notices that the
# other is killed: the death of the keeper would wake a guard that is stopped.
begin_orphan() {
    rm -f left.pid
    begin "$SIMBA" lock "${LONG_LEASE[@]}" "$M" sh -c 'setsid sleep 60 & echo $! >left.pid; wait'
    await test -s left.pid
    LEFT=$(cat left.pid) GUARD=$(child_of "$PID")
    kill -STOP "$PID" "$GUARD"
    kill -KILL "$GUARD"
    kill -KILL "$PID"
    await is_dead "$GUARD"
    await is_dead "$PID"
    is_alive "$LEFT"
}

@test "keeper and guard are killed: what CMD has started keeps the mutex while it lives" {
    begin_orphan
    run "$SIMBA" lock -w 1.5s "$M" true
    expect 124 "held by"
    kill -KILL "$LEFT"
    run timeout 15 "$SIMBA" lock -w 10s "$M" true
    [ "$status" -eq 0 ]
}

@test "keeper and guard are killed, and the file is replaced that shows who lives: the lease is waited for" {
    for file in tree live; do
        begin_orphan
        rm "store/locks.db-$file"
        for _ in 1 2; do # the second one finds what the first one has made
            run "$SIMBA" lock -w 1s "$M" true
            expect 124 "held by"
        done
        kill -KILL "$LEFT"
        M=$M-next
    done
}

@test "keeper and guard are killed, and the database is deleted: nothing is granted while a lease may last" {
    begin_orphan
    rm store/locks.db store/locks.db-wal store/locks.db-shm
    run "$SIMBA" lock -w 1.5s "$M" true
    [ "$status" -ne 0 ]
    [[ "$output" == *"the database was deleted"* ]]
}

# Where few descriptors are allowed, CMD inherits the guard's own.
@test "guard and CMD have one file of the store, and only to read" {
    begin "$SIMBA" lock "$M" sleep 60
    runs_cmd() { guard=$(child_of "$PID") && readlink "/proc/$(child_of "$guard")/exe" | grep -q sleep; }
    await runs_cmd
    python3 - "$guard" "$(child_of "$guard")" <<'P'
import os, sys
for pid in sys.argv[1:]:
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        file = os.readlink(f"/proc/{pid}/fd/{fd}")
        if "/store/" in file:
            info = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/fdinfo/{fd}") if line.startswith("flags"))
            found.append((os.path.basename(file), int(info["flags"], 8) & os.O_ACCMODE))
    print(found)
    assert found == [("locks.db-tree", os.O_RDONLY)], found
P
}
