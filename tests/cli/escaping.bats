#!/usr/bin/env bats
# escaping.bats: names and ids of others reach neither a terminal nor a log with characters in them that move
# the cursor, begin a line, or turn the direction of text; programs get them as \u escapes.
bats_require_minimum_version 1.8.0
# bats file_tags=store,sqlite
load helper

# DEL, C1, mark and override of direction, separators, isolates
BAD=$'\x7f|\u009b|\u061c|\u200e|\u200f|\u2028|\u2029|\u202a|\u202e|\u2066|\u2069'
GOOD='ä…€😀'

setup_id() { # an id that the library would not take
    ID="x|$BAD|$GOOD"
    begin "$SIMBA" lock --ttl 60s --id placeholder "$M" sh -c 'touch held; exec sleep 60' # it renews after the test
    await test -e held
    python3 - "$ID" <<'P'
import os, sqlite3, sys
db = sqlite3.connect(os.environ["DIR"] + "/store/locks.db", timeout=5)
tables = [r[0] for r in db.execute("select name from sqlite_master where type='table'")]
done = 0
for t in tables:
    for c in db.execute(f"pragma table_info({t})").fetchall():
        done += db.execute(f"update {t} set {c[1]}=? where {c[1]}='placeholder'", (sys.argv[1],)).rowcount
db.commit()
assert done == 1, tables
P
}

no_bad() { # of a file
    python3 - "$1" <<'P'
import sys
text = open(sys.argv[1], encoding="utf-8").read()
bad = [hex(ord(c)) for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u061c\u200e\u200f\u2028\u2029" or "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069")]
assert not bad, bad
P
}

@test "status, list, watch, release: for people" {
    setup_id
    begin "$SIMBA" watch "$M" >watched
    await has token watched
    simba status "$M" >out
    simba list "$PREFIX" >>out
    cat watched >>out
    simba lock -n "$M" true >>out 2>&1 || true
    simba release --yes "$M" >>out 2>&1 || true
    no_bad out
    grep -qF "x|?|?|?|?|?|?|?|?|?|?|?|$GOOD" out
    ! grep -qF placeholder out
}

@test "status, list, watch: as JSON, which decodes to what is stored" {
    setup_id
    begin "$SIMBA" watch --json "$M" >watched
    await has token watched
    simba status --json "$M" >out
    simba list --json "$PREFIX" >>out
    cat watched >>out
    no_bad out
    python3 - "$ID" <<'P'
import json, sys
lines = [json.loads(l) for l in open("out", encoding="utf-8")]
assert len(lines) == 3 and all(l["holder"] == sys.argv[1] for l in lines), lines
P
    grep -qF '\u202e' out
    grep -qF '😀' out
}

# What other programs have written: of a text that is not UTF-8, JSON has a ? for each wrong byte.
@test "leader, status, elect: as JSON, also where a text is not UTF-8" {
    begin "$SIMBA" elect --id placeholder --advertise note "$M" >lines 2>said
    await has " acquired " lines
    python3 - <<'P'
import os, sqlite3
db = sqlite3.connect(os.environ["DIR"] + "/store/locks.db", timeout=5)
assert db.execute("UPDATE note SET text = CAST(x'61ff62' AS TEXT) WHERE text = 'note'").rowcount == 1
assert db.execute("UPDATE mutex SET owner = CAST(x'63fe64' AS TEXT) WHERE owner = 'placeholder'").rowcount == 1
db.commit()
P
    run simba leader --json "$M"
    expect 0 '"holder":"c\?d","note":"a\?b"'
    run simba status --json "$M"
    expect 0 '"holder":"c\?d"'
    run env SIMBA_LISTEN=$'unix:/tmp/\xff' "$SIMBA" elect --dry-run --json "$M"
    grep -q '"value":"unix:/tmp/?"' <<<"$output"
    ! grep -q '^null' <<<"$output"
}

# Whoever reads must not take what is there for all.
# bats test_tags=storeless
@test "as JSON: where there is no memory for a line, none is printed in part, and that is an error" {
    local sample n once failures
    sample=$(dirname "$SIMBA")/tests/json_sample
    "$sample" 0 >all
    [ "$(sort -u all | grep -c '^{"text":"a","wrong":"b?","number":[0-2]}$')" -eq 3 ]
    for once in "" once; do
        failures=0
        for ((n = 1; n <= 60; n++)); do
            run "$sample" "$n" $once
            grep '^[{n]' <<<"$output" >some || true
            ! grep -vxFf all some || { echo "$n"; false; }
            [ "$status" -eq 0 ] && cmp all some && continue
            expect 125 'lines are missing on stdout: no memory to make JSON of them'
            failures=$((failures + 1))
        done
        ((failures == 3)) # a line is one piece of memory
    done
}
