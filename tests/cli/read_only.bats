#!/usr/bin/env bats
# read_only.bats: status, list and watch make nothing and change nothing.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

@test "status, list, watch: a store that is not there is not made, and that is said" {
    for url in "sqlite:$DIR/store/locks.db" "sqlite:$DIR/nosuch/locks.db" "sqlite:store/a%20b.db?ttl=5s"; do
        for command in "status $M" status list "list x" watch "watch $M"; do
            # shellcheck disable=SC2086
            run timeout 10 "$SIMBA" -u "$url" $command
            expect 125 'there is no store.*simba init'
        done
    done
    [ -z "$(ls -A store)" ]
    [ ! -e nosuch ]
}

@test "status, list, watch: likewise the default store" {
    export XDG_STATE_HOME=$DIR/state
    case "$(env -u SIMBA_URL "$SIMBA" lock --dry-run m)" in
    *"$DIR/state/"*) ;;
    *) skip "root's is that of the machine" ;;
    esac
    run env -u SIMBA_URL "$SIMBA" list
    expect 125 'there is no store.*simba init'
    [ ! -e state ]
}
