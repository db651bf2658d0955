#!/usr/bin/env bats
# readme.bats: what README.md shows can be run as it is written.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

ROOT=$BATS_TEST_DIRNAME/../..

blocks() { # language: every block of it, in order
    awk -v begin="\`\`\`$1" '$0 == "```" { inside = 0 } inside { print } $0 == begin { inside = 1 }' "$ROOT/README.md"
}

@test "README: the commands at its top" {
    cd store
    PATH=$(dirname "$SIMBA"):$PATH
    export PATH SIMBA_URL=sqlite:locks.db
    blocks console | sed -nE 's/^\$ //p' >commands
    [ "$(grep -c '^simba lock ' commands)" -eq 3 ]
    sed -E 's,redis://localhost,"$1",' commands >commands.sh
    run "$ROOT/tests/servers/redis" bash -ex commands.sh @URL@
    [ "$status" -ne 77 ] || skip "$output"
    [ "$status" -eq 0 ]
    [ -d copy/skel ] # each of them has copied
}

@test "README: the program in C" {
    cd store
    local build sanitizer
    build=$(dirname "$SIMBA")
    case "$(basename "$build")" in *asan) sanitizer=address ;; *tsan) sanitizer=thread ;; esac
    blocks c >program.c
    cc -std=c11 -Wall -Wextra -Werror ${sanitizer:+-fsanitize=$sanitizer} -I"$ROOT/include" program.c \
        -L"$build" -Wl,-rpath,"$build" -lsimba -o program
    run ./program
    expect 0 '^mine, token [0-9]+$'
}

@test "README and man: every command is mentioned" {
    for command in $(simba help | sed -nE 's/^  simba ([a-z]+) .*/\1/p' | sort -u); do
        grep -qE "\`(simba )?$command\b" "$ROOT/README.md" || [ "$command" = version ]
        grep -q "simba $command" "$ROOT/man/simba.1.scd"
    done
}

@test "CONTRIBUTING: one test of each kind" {
    cd "$ROOT"
    [ -x build/sim ] && [ -x build/tests/contract ] || skip "there is no build/ with tests here"
    local line count=0
    while read -r line; do
        run bash -c "$line"
        [ "$status" -ne 77 ] || continue # no such server
        count=$((count + 1))
        expect 0 'passed|PASSED'
    done < <(awk '/tests\/cli\/readme.bats does that/ { ours = 1 } /^```$/ { ours = inside = 0 }
        inside { print } ours && /^```sh$/ { inside = 1 }' CONTRIBUTING.md)
    [ "$count" -ge 5 ]
}
