#!/usr/bin/env bats
# standby.bats: what elect and schedule say of a store that is away while they wait.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

@test "elect, schedule: a standby says once that the store is away, and once that it is back" {
    make_store_losable
    begin "$SIMBA" lock --ttl 2s --transition 2s -k 500ms "$M" sh -c 'touch held; exec sleep 60'
    await test -e held
    begin "$SIMBA" elect --ttl 2s --transition 2s "$M" 2>elect-said
    begin "$SIMBA" schedule --ttl 2s --transition 2s --every 1h "$M" true 2>schedule-said
    pause 3 # the store has answered both
    ! has . elect-said || { cat elect-said; return 1; }
    lose_store
    await has "^simba elect: waiting for '$M' on $STORE: .+; trying again$" elect-said
    await has "^simba schedule: waiting for '$M' on $STORE: .+; trying again$" schedule-said
    find_store
    await has "^simba elect: mutex '$M' on $STORE: the store answers again after [0-9.]+s$" elect-said
    await has "^simba schedule: mutex '$M' on $STORE: the store answers again after [0-9.]+s$" schedule-said
    for said in elect-said schedule-said; do
        [ "$(grep -c 'trying again$' $said)" -eq 1 ] && [ "$(grep -c 'answers again' $said)" -eq 1 ] || { cat $said; return 1; }
    done
}
