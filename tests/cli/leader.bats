#!/usr/bin/env bats
# leader.bats: what a leader advertises, and simba leader that prints it.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

lead() { # id [option...]
    begin "$SIMBA" elect --id "$@" "$M" >lines 2>said
    await has " acquired " lines
}

end_leader() {
    kill "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "leader: what it advertises" {
    lead web1 --advertise http://10.0.0.7:8080
    run simba leader "$M"
    expect 0 '^http://10.0.0.7:8080$'
    run simba leader --json "$M"
    expect 0 "^\{\"mutex\":\"$M\",\"holder\":\"web1\",\"note\":\"http://10.0.0.7:8080\",\"token\":[0-9]+,\"remaining_ms\":[0-9]+,\"held_ms\":([0-9]+|null),\"store\":\""
}

@test "leader: nobody, also if somebody has led" {
    simba lock "$M" true # a file of sqlite: is there
    run simba leader "$M"
    expect 1 "^simba leader: mutex '$M' on $STORE: nobody leads$"
    run simba leader -q "$M"
    expect 1 '^$'
    lead web1 --advertise here
    end_leader
    run simba leader "$M"
    expect 1 'nobody leads'
}

@test "leader: of a schedule its id is shown, and not its tick" {
    begin "$SIMBA" schedule --id web1 "$M" --every 1h true 2>said
    await has "run 1 ended" said
    run simba leader "$M"
    expect 0 '^web1$'
}

@test "leader: who advertises nothing is shown by its id, and not by what one before has said" {
    lead web1 --advertise here
    end_leader
    lead web2
    run simba leader "$M"
    expect 0 '^web2$'
    run simba leader --json "$M"
    expect 0 '"holder":"web2","note":null,'
}

@test "elect --advertise: it is there before --on-acquired begins, and follows the leader" {
    lead web1 --advertise one -a "'$SIMBA' leader $M >seen"
    await test -s seen
    [ "$(cat seen)" = one ]
    end_leader
    lead web2 --advertise two
    [ "$(simba leader "$M")" = two ]
}

@test "leader: what could do harm on a terminal is not printed as it is" {
    lead web1 --advertise $'a\e[2Jb\u202ec'
    run simba leader "$M"
    expect 0 '^a\?\[2Jb\?c$'
    run simba leader --json "$M"
    expect 0 '"note":"a.u001[bB]\[2Jb.u202ec"'
}

@test "elect --advertise: too long, or not UTF-8" {
    run simba elect --advertise "$(printf '%01025d' 0)" "$M"
    expect 64 1024
    run simba elect --advertise $'\xff' "$M"
    expect 64 UTF-8
    lead web1 --advertise "$(printf '%01024d' 7)"
    [ "$(simba leader "$M" | wc -c)" -eq 1025 ]
}

# bats test_tags=storeless
@test "leader: wrong usage, and no store" {
    run simba leader
    expect 64 'missing NAME'
    run simba leader a b
    expect 64 'one NAME at a time'
    run simba leader -u sqlite:/nosuch/x.db m
    expect 125 'there is no store at /nosuch/x.db'
}

# bats test_tags=sqlite
@test "elect --advertise: a note that cannot be published is said" {
    with_server '' redis -- 'port=$(grep -oE "[0-9]{5}" <<<"$1" | head -n 1)
        redis-cli -p "$port" acl setuser default resetkeys "~simba:{m}" "~simba:{m}:[^n]*" "~simba:[^{]*" "%R~*" >/dev/null
        timeout 3 "$SIMBA" elect -u "$1" --advertise http://h:1 m 2>&1 || true'
    expect 0 "^simba elect: mutex 'm' on redis:.*: the note was not published: "
}

@test "status: a note of an earlier tenure is marked so" {
    begin "$SIMBA" elect -q --advertise http://h:1 "$M" >out
    await has acquired out
    run simba status "$M"
    expect 0 ' http://h:1'
    ! grep earlier <<<"$output"
    kill "$PID"
    ends "$PID"
    hold "$M"
    run simba status "$M"
    expect 0 ' \(earlier\) http://h:1'
}

@test "elect: an --advertise that is too long names the option; a hook that fails says for how long others may lead" {
    run simba elect --advertise "$(printf '%01025d' 0)" "$M"
    expect 64 '^simba elect: --advertise is longer than 1024 bytes$'
    begin "$SIMBA" elect --ttl 3s "$M" -a 'exit 3' >out 2>said
    await has "mutex '$M' on $STORE: left to others for a ttl, 3.0s$" said
}
