#!/usr/bin/env bats
# long.bats: proofs that take minutes; with LONG=1 only.
bats_require_minimum_version 1.5.0
load helper

proof() { # script, arguments
    [ -n "${LONG:-}" ] || skip "set LONG=1"
    python3 "$BATS_TEST_DIRNAME/$1" "${@:2}" 3>&- >&2
}

@test "elect: 5 processes, 200 hand-overs by release, stop and kill: hooks alternate, never overlap" {
    proof handover.py 200
}

@test "schedule: 3 processes, 30 s, the leader killed twice: no second has two runs" {
    proof every.py 30
}
