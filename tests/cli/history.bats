#!/usr/bin/env bats
# history.bats: simba watch --record and simba history: who owned what, from when to when, and why it ended.
bats_require_minimum_version 1.8.0
load helper

setup_store() { "$SIMBA" init >/dev/null 2>&1; }

record() { # options...
    begin "$SIMBA" watch --record h.db "$@" >watch.out 2>watch.err
    WATCH=$PID
    await test -s h.db
    # A first line, when something is owned; else the recording is there when it can be read.
    await eval "python3 -c \"import sqlite3; assert sqlite3.connect('h.db').execute('select count(*) from recording').fetchone()[0]\""
}

rows() { "$SIMBA" history --from h.db --json "$@"; }

has_row() { # what python is to find true of one row, as r
    rows | python3 -c "import json, sys
sys.exit(not any($1 for r in map(json.loads, sys.stdin)))"
}

# A tenure that lasts until it is in the file: observers may miss a shorter one.
tenure() { # id name
    begin "$SIMBA" lock --id "$1" "$2" sh -c "until [ -e 'end-$1' ]; do sleep 0.02; done"
    await has_row "r['holder'] == '$1' and r['state'] == 'held'"
    touch "end-$1"
    await has_row "r['holder'] == '$1' and r['reason'] == 'released'"
    ends "$PID"
}

end_watch() { kill -TERM "$WATCH" && ends "$WATCH" && [ "$CODE" -eq 143 ]; }

sql() { python3 -c 'import sqlite3, sys
db = sqlite3.connect("h.db", timeout=10)
print(db.execute(sys.argv[1]).fetchall())
db.commit()' "$1"; }

@test "history: tenures with their ends, the newest last" {
    setup_store
    record
    tenure one@a backup
    tenure two@b report
    hold_slowly backup third@c
    await has_row 'r["holder"] == "third@c" and r["state"] == "held" and r["reason"] is None'
    simba release --yes backup
    await has_row 'r["holder"] == "third@c" and r["state"] == "ended" and r["reason"] == "evicted"'
    run simba history --from h.db
    expect_all 0 '^ BEGAN .* HELD  END       NAME +TOKEN  HOLDER$' ' released  backup +[0-9]+  one@a$' ' evicted +backup .*third@c$'
    [ "$(awk 'END { print $NF }' <<<"$output")" = third@c ]
    ! grep -q ' $' <<<"$output"
    run simba history --from h.db report
    [ "$(wc -l <<<"$output")" -eq 2 ]
    expect 0 'two@b$'
    grep -qE "[+-][0-9]{4}  " <<<"$output" # the zone
    SIMBA_HISTORY=h.db run simba history
    expect 0 'third@c'
    mkdir -p home/.config/simba
    printf 'simba:\n  history: %s\n' "$DIR/h.db" >home/.config/simba/simba.yaml
    run simba history nobody
    expect 0 "no tenure of that name in .*/h.db"
    run simba history --since 1h report
    expect 0 'two@b'
    end_watch
}

@test "history: what ended while nobody recorded is shown so, and nothing is made up" {
    setup_store
    hold "$M" seen@a
    HOLD=$PID
    hold other stays@b
    record
    await has_row 'r["holder"] == "seen@a"'
    await has_row 'r["holder"] == "stays@b"'
    end_watch
    has_row 'r["holder"] == "seen@a" and r["state"] == "unseen" and r["last_seen_ms"] and r["ended_ms"] is None'
    kill -TERM "$HOLD"
    ends "$HOLD"
    record
    await has_row 'r["holder"] == "seen@a" and r["state"] == "unseen" and r["over_by_ms"] > r["last_seen_ms"] and r["reason"] is None'
    await has_row 'r["holder"] == "stays@b" and r["state"] == "held"'
    [ "$(rows | grep -c stays@b)" -eq 1 ]
    sql "update recording set last_ms = last_ms - 60000 where id = 1" >/dev/null
    has_row 'r["state"] == "not recorded" and r["mutex"] is None and r["ended_ms"] > r["began_ms"]'
    rows | python3 -c 'import json, sys
assert len({tuple(sorted(json.loads(line))) for line in sys.stdin}) == 1, "each line has the same keys"'
    run simba history --from h.db
    expect_all 0 '≥.* unseen .* seen@a +ended between .* and ' ' nothing was recorded until '
    end_watch
}

@test "history: only the mutexes that were named are recorded" {
    setup_store
    record "$M"
    simba lock --id one@a other sleep 1
    tenure two@b "$M"
    [ "$(rows | grep -c one@a || true)" -eq 0 ]
    end_watch
}

@test "history: of other mutexes than those that were named, that is a gap" {
    setup_store
    record
    tenure one@a "$M"
    end_watch
    record "$M"
    tenure two@b "$M"
    sleep 1.2
    end_watch
    has_row 'r["state"] == "partly recorded" and r["ended_ms"] > r["began_ms"]'
    run simba history --from h.db
    expect 0 ' only some mutexes were recorded until '
    run simba history --from h.db "$M"
    ! grep 'recorded' <<<"$output"
    run simba history --from h.db "$M" other
    expect 0 ' only some mutexes were recorded until '
}

@test "history: a store that nobody records any more: nothing of it is held" {
    setup_store
    hold "$M" first@a
    record
    await has_row 'r["holder"] == "first@a"'
    end_watch
    simba lock -u sqlite:second.db other true
    record -u sqlite:second.db
    has_row 'r["holder"] == "first@a" and r["state"] == "unseen" and r["last_seen_ms"]'
    run simba history --from h.db
    expect 0 ' HOLDER +STORE$'
    end_watch
}

@test "history: a recorder that was stopped, or whose store does not answer: a gap" {
    setup_store
    record
    tenure one@a "$M"
    kill -STOP "$WATCH"
    sleep 11
    kill -CONT "$WATCH"
    await has_row 'r["state"] == "not recorded" and r["ended_ms"] - r["began_ms"] > 10000'
    run simba history --from h.db
    expect 0 ' nothing was recorded until '
    end_watch
}

@test "history: a file that was moved or deleted is noticed" {
    setup_store
    record
    tenure one@a "$M"
    mv h.db old.db
    ends "$WATCH"
    [ "$CODE" -eq 125 ]
    has "^simba watch: h.db was moved or deleted; nothing is recorded any more$" watch.err
    rm -f h.db*
    record
    rm h.db
    ends "$WATCH"
    [ "$CODE" -eq 125 ]
}

@test "history: who reads the file keeps nobody from recording" {
    setup_store
    record
    end_watch
    begin python3 -c 'import fcntl, time
f = open("h.db"); fcntl.flock(f, fcntl.LOCK_SH); print("locked", flush=True); time.sleep(0.1)' >locked
    await has locked locked
    record
    end_watch
}

@test "history: another user, who may only read the file" {
    needs_other_users
    setup_store
    record
    tenure one@a "$M"
    end_watch
    mkdir -m 755 'readable 100%?'
    cp h.db 'readable 100%?/h.db'
    chmod 644 'readable 100%?/h.db'
    run as_user 65534 env HOME=/nonexistent "$SIMBA" history --from "$DIR/readable 100%?/h.db"
    expect 0 'one@a$'
}

@test "history: one process records into a file, and it is for its owner only" {
    setup_store
    record
    run timeout 20 "$SIMBA" watch --record h.db
    expect 125 "h.db: process $WATCH records into it already"
    [ "$(stat -c %a h.db)" = 600 ]
    [ "$(stat -c %a h.db-wal)" = 600 ]
    kill -KILL "$WATCH"
    ends "$WATCH"
    simba lock "$M" true
    record
    end_watch
}

@test "history: a file that is something else is refused, and stays as it is" {
    setup_store
    hold "$M"
    echo "some notes of mine" >text
    cp store/locks.db before.db
    : >empty
    ln -s h.db link
    for try in "text:some other file" "store/locks.db:no history of simba" "store:directory|no regular file" "link:symbolic link"; do
        run simba watch --record "${try%%:*}"
        expect 125 "${try%%:*}: .*(${try#*:})"
    done
    [ "$(cat text)" = "some notes of mine" ]
    for try in "text:some other file" "store/locks.db:no history of simba" "empty:nothing was ever recorded" "none:no such file"; do
        run simba history --from "${try%%:*}"
        expect 125 "${try%%:*}: .*(${try#*:})"
    done
    simba status "$M" # the store is as it was
    record
    end_watch
    python3 -c "
f = open('h.db', 'r+b')
f.seek(60); f.write(b'\0\0\0\x63')"
    run simba history --from h.db
    expect 125 "written by another version of simba"
    rm -f h.db*
    record
    end_watch
    python3 -c "
f = open('h.db', 'r+b')
f.seek(100); f.write(b'\xff' * 6000)"
    run simba history --from h.db
    expect 125 "h.db: .*damaged: move it away"
    run timeout 20 "$SIMBA" watch --record h.db
    expect 125 "h.db: .*damaged: move it away"
}

# What was put into the file by somebody else must not run, and TERM ends a recorder at any time.
@test "history: what others have put into the file is refused, and never runs" {
    setup_store
    record
    end_watch
    cp h.db good.db
    local endless="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"
    for evil in "CREATE TRIGGER evil AFTER INSERT ON recording BEGIN $endless; END" \
        "CREATE VIEW evil AS $endless" "CREATE TABLE evil(x)" \
        "CREATE INDEX evil ON tenure(mutex) WHERE length(mutex) > 3"; do
        cp good.db h.db
        sql "$evil"
        begin "$SIMBA" watch --record h.db >said 2>&1
        pause 0.5
        kill -TERM "$PID" 2>/dev/null || true
        for ((i = 0; i < 100; i++)); do is_dead "$PID" && break || pause 0.05; done
        is_dead "$PID" || { kill -KILL "$PID"; echo "deaf: $evil"; false; }
        ends "$PID"
        [ "$CODE" -eq 125 ] || { cat said; false; }
        has "h.db: it has 'evil', which is not simba's" said
        run timeout 5 "$SIMBA" history --from h.db
        expect 125 "which is not simba's"
    done
}

@test "history: a folder that everybody can write to is refused" {
    setup_store
    mkdir -m 1777 open
    run timeout 5 "$SIMBA" watch --record open/h.db
    expect 125 'everybody can write to the folder .*/open.*mkdir -m 700'
    [ ! -e open/h.db ]
    run timeout 5 "$SIMBA" serve --listen :0 --history open/h.db
    expect 125 'everybody can write to the folder'
}

# Another recorder makes the tables between the first look at the file and the lock on it.
@test "history: two that begin at once with an empty file" {
    setup_store
    record
    end_watch
    python3 - <<'P' &
import fcntl, os, time
file = open("two.db", "w+b")
fcntl.flock(file, fcntl.LOCK_EX)
os.close(os.open("locked", os.O_CREAT))
while not os.path.exists("begun"):
    time.sleep(0.001)
time.sleep(0.1)
file.write(open("h.db", "rb").read())
file.flush()
fcntl.flock(file, fcntl.LOCK_UN)
P
    await test -e locked
    begin sh -c 'touch begun; exec "$@" >said 2>&1' - "$SIMBA" watch --record two.db
    pause 1
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 143 ] || { cat said; false; }
    run simba history --from two.db --json
    expect 0
}

@test "history: a reason that this version does not know" {
    setup_store
    record
    tenure one@a "$M"
    end_watch
    sql "UPDATE tenure SET reason = 'transferred'"
    run simba history --from h.db
    expect 0 ' ended +'"$M"
    [[ "$output" != *null* ]]
    run simba history --from h.db --json
    expect 0 '"state":"ended".*"reason":null'
}

# Sums of what others have put there must not overflow, and times can be shown.
@test "history: times that nobody can have recorded" {
    setup_store
    record
    tenure one@a "$M"
    end_watch
    local most=9223372036854775807
    for pair in "-$most, $most" "$most, -$most" "$most, $most" "'x', 'y'"; do
        sql "UPDATE tenure SET began_ms = ${pair%,*}, ended_ms = ${pair#*,}"
        sql "UPDATE recording SET began_ms = ${pair%,*}, last_ms = ${pair#*,}"
        run simba history --from h.db
        expect 0
        ! grep -vE '^($|[ -]?≤? *(BEGAN|(1969|1970|9999|10000)-|simba history: no tenure in))' <<<"$output" || false
        run simba history --from h.db --json
        expect 0
        ! sed -E 's/"token":[0-9]+//' <<<"$output" | grep -E '[0-9]{16}|_ms":-' || false
    done
    sql "UPDATE tenure SET began_ms = -$most, ended_ms = NULL"
    record
    end_watch
    run simba history --from h.db
    expect 0
}

@test "history: what is older than --keep goes" {
    setup_store
    record
    tenure old@a "$M"
    end_watch
    sql "update tenure set began_ms = began_ms - 7200000, ended_ms = ended_ms - 7200000" >/dev/null
    record --keep 3h
    tenure new@a "$M"
    has_row 'r["holder"] == "old@a"'
    end_watch
    record --keep 1h
    await eval '! rows | grep -q old@a'
    has_row 'r["holder"] == "new@a"'
    end_watch
    run simba watch --record h.db --keep 1s
    expect 64 "shorter than 1m"
    run simba watch --keep 1h
    expect 64 "needs --record"
}

@test "history: names and ids of others move no cursor and end no line" {
    setup_store
    record
    end_watch
    sql "insert into tenure(store, mutex, holder, token, began_ms, began_known, ended_ms, reason)
        values(1, 'a' || char(27) || '[2J', 'x' || char(10) || '\"<script>' || char(0x202e), 1, 1794981237000, 1, 1794981238000, 'expired')" >/dev/null
    run simba history --from h.db
    expect 0 'expired +a\?\[2J +1  x\?"<script>\?$'
    [ "$(wc -l <<<"$output")" -eq 2 ]
    rows >json
    [ "$(wc -l <json)" -eq 1 ]
    grep -qF 'a\u001b[2J' json
    grep -qF 'x\u000a\u0022\u003cscript\u003e\u202e' json
    python3 -c "import json; assert json.load(open('json'))['holder'] == 'x\n\"<script>\u202e'"
}

@test "history: which file is said, and what of it" {
    run simba history
    expect 64 "no history file is named"
    run simba history --from x --since 5x
    expect 64 "duration"
    setup_store
    record
    tenure one@a "$M"
    end_watch
    run simba history -f h.db -u sqlite:elsewhere.db
    expect 0 "no tenure in h.db"
    run simba history -f h.db -u "$SIMBA_URL"
    expect 0 "one@a"
}

# bats test_tags=store
@test "history: on every store, a beginning and an end" {
    simba lock "$M" true # makes the store, where it is a file
    begin "$SIMBA" watch --record h.db "$M" >watch.out 2>watch.err
    WATCH=$PID
    await has 'free|held' watch.out
    tenure one@a "$M"
    "$SIMBA" history -f h.db --json "$M" | python3 -c "
import json, sys
row, = map(json.loads, sys.stdin)
assert row['began_known'] and 0 < row['ended_ms'] - row['began_ms'] < 20000, row"
    end_watch
}
