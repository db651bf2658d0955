#!/usr/bin/env bats
# log.bats: lines on stderr: plain, for the journal, and as JSON.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

all_json() { # file: every line is an object with these
    python3 - "$1" <<'P'
import json, re, sys
lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
assert lines, "nothing was said"
for line in lines:
    one = json.loads(line)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one["time"]), line
    assert one["level"] in ("error", "warning", "info", "debug") and one["text"], line
    assert len(line) <= 4096, len(line)
P
}

@test "log json: every line is an object, whatever goes wrong" {
    run simba lock --log json
    for arguments in "lock --log json" "--log json nonsense" "lock --log json --ttl x m true" \
        "--log json status -u nonsense:" "lock --log json -u sqlite:/none/there/x m true" "--log json lock m /no/such/cmd"; do
        "$SIMBA" $arguments 2>err || true
        all_json err
    done
    SIMBA_LOG=json simba lock 2>err || true
    all_json err
    name=$(printf 'a"b\\c\tend')
    simba lock --log json -v "$name" true 2>err || true
    all_json err
}

@test "log json: mutex, token and store of a tenure; as an option, a variable or in a file" {
    simba lock --log json -v m true 2>err
    has '^\{"time":"[^"]*","level":"info","command":"lock","mutex":"m","token":[0-9]+,"store":"sqlite:[^"]*","text":"mutex .m. on sqlite:.*: acquired by ' err
    SIMBA_LOG=json simba lock -vv m true 2>err
    all_json err
    has '"level":"(debug|info)"' err
    mkdir -p home/.config/simba
    printf 'simba:\n  log: json\n' >home/.config/simba/simba.yaml
    chmod 600 home/.config/simba/simba.yaml
    simba lock -v m true 2>err
    all_json err
    simba lock -v --log plain m true 2>err
    has "^simba lock: mutex 'm' on " err
    printf 'simba:\n  log: xml\n' >home/.config/simba/simba.yaml
    run simba lock m true
    expect 125 "simba.yaml:2: the log format 'xml' is neither plain nor json"
    run simba lock --log xml m true
    expect 64 "--log 'xml' is neither plain nor json"
}

@test "log json: leader and release name the mutex" {
    simba lock m true
    simba leader --log json m 2>err || true
    simba release --log json --yes m 2>>err || true
    [ "$(grep -c '"mutex":"m"' err)" -eq 2 ]
}

@test "log json: a guard that is killed ends the tenure, with a reason" {
    begin "$SIMBA" lock --log json m sh -c 'echo >ready; exec sleep 60' 2>err
    await test -e ready
    kill -KILL "$(child_of "$PID")"
    ends "$PID"
    [ "$CODE" -eq 125 ]
    has '"level":"error","command":"lock","mutex":"m","token":[0-9]+,.*"reason":"released","text":".*simba-guard, [0-9]+, was killed; killing CMD"' err
}

@test "log json: a loss says why, also from the guard" {
    begin "$SIMBA" lock --log json "${SHORT[@]}" m sh -c 'echo >ready; exec sleep 60' 2>err
    await test -e ready
    kill -KILL "$PID"
    await has '"reason":"expired"' err
    all_json err
    has '"level":"error","command":"lock","mutex":"m","token":[0-9]+,"store":"sqlite:.*","reason":"expired","text":"lost .m. on .*which renews the lease, was killed; sending TERM to CMD"' err
    begin "$SIMBA" lock --log json "${LONG_LEASE[@]}" n sh -c 'echo >ready2; exec sleep 60' 2>err2
    await test -e ready2
    simba release -q --yes n
    await has '"reason":"evicted","text":"lost .n. on ' err2
    begin "$SIMBA" lock --log json --progress 200ms o sleep 60 2>err3
    await has '"reason":"stalled","text":"lost .o. on ' err3
    all_json err3
}

@test "log: priorities where stderr is the journal's, and only there" {
    touch err
    JOURNAL_STREAM=$(stat -c %d:%i err) simba lock -v m true 2>>err
    has "^<6>simba lock: mutex 'm' on .*: acquired by " err
    JOURNAL_STREAM=$(stat -c %d:%i err) simba lock 2>>err || true
    has '^<3>simba lock: missing NAME' err
    has '^<3>Try: simba lock --help$' err
    : >err
    JOURNAL_STREAM=$(stat -c %d:%i err) simba lock 2>other || true
    has '^simba lock: missing NAME' other
    JOURNAL_STREAM=$(stat -c %d:%i err) simba lock --log json 2>>err || true
    all_json err
}
