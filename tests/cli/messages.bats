#!/usr/bin/env bats
# messages.bats: what the command says, as a whole: tests/messages/collection.txt. To read or to renew it, see
# tests/messages/collect.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

collect() { # section [url]
    "$BATS_TEST_DIRNAME/../messages/collect" "$SIMBA" "$@"
}

of_server() { # section server [option]
    local section=$1
    shift
    SIMBA_MODULE_PATH=$(dirname "$SIMBA")/modules run "$BATS_TEST_DIRNAME/../servers/$1" "${@:2}" \
        "$BATS_TEST_DIRNAME/../messages/collect" "$SIMBA" "$section" @URL@
    [ "$status" -ne 77 ] || skip "$1 is not installed"
    expect 0
}

has_modules() {
    for module in redis mysql postgres zookeeper; do
        [ -e "$(dirname "$SIMBA")/modules/simba-$module.so" ] || skip "the store for $module is not built"
    done
}

@test "messages: without a server, all as in the collection" {
    has_modules
    [ "$(id -u)" -eq 0 ] || skip "only root can fill a disk, and be another user"
    needs_namespaces -m
    SIMBA_MODULE_PATH=$(dirname "$SIMBA")/modules run collect none
    expect 0
}

@test "messages: redis" { of_server redis redis; }
@test "messages: redis, by TLS" { of_server redis-tls redis --tls; }
@test "messages: mariadb" {
    export SIMBA_TEST_SERVER=--skip-ssl # newer servers speak TLS by themselves
    of_server mariadb mariadb
}
@test "messages: postgres" { of_server postgres postgres; }
@test "messages: zookeeper" { of_server zookeeper zookeeper; }

@test "messages: each one in the source is provoked, or listed with a reason" {
    run collect source
    expect 0
}
