#!/usr/bin/env bats
# long_running.bats: proofs that take minutes; with LONG=1 only.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

proof() { # script, arguments
    [ -n "${LONG:-}" ] || skip "set LONG=1"
    python3 "$BATS_TEST_DIRNAME/$1" "${@:2}" 3>&- >&2
}

@test "elect: 5 processes, many hand-overs by release, stop and kill: hooks alternate, never overlap" {
    proof handover.py "$([ "$KIND" = sqlite ] && echo 200 || echo 40)" # elsewhere a death costs a lease
}

@test "schedule: 3 processes, 30 s, the leader killed twice: no second has two runs" {
    proof schedule_runs.py 30
}
