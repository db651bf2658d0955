#!/usr/bin/env bats
# init_shared.bats: init --shared changes no folder but the store's own.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

mode() { stat -c %a "$1"; }

share() { # folder
    run simba -u "sqlite:$DIR/$1/locks.db" init --shared --group "$(id -gn)"
}

@test "init --shared: a folder with anything else in it is refused, and stays as it was" {
    mkdir -m 755 lib
    mkdir lib/apt
    share lib
    expect_all 125 "$DIR/lib" "lib/apt|holds" "sqlite:$DIR/lib/simba/locks.db"
    [ "$(mode lib)" = 755 ]
    [ ! -e lib/locks.db ]
    mkdir -m 700 mine
    touch mine/.profile
    share mine
    expect 125 'holds .profile'
    [ "$(mode mine)" = 700 ]
}

@test "init --shared: an empty folder that others may use is refused, and so is a home" {
    mkdir -m 755 srv
    share srv
    expect_all 125 "$DIR/srv" 'chmod 2770'
    [ "$(mode srv)" = 755 ]
    share home
    expect 125 'home folder'
    [ "$(mode home)" = 700 ]
}

@test "init --shared: a folder of one's own that is empty, or the store's, or shared already" {
    mkdir -m 700 new
    for _ in once again; do
        share new
        expect 0
        [ "$(mode new)" = 2770 ]
    done
    simba -u "sqlite:$DIR/old/locks.db" init
    share old
    expect 0
    [ "$(mode old)" = 2770 ]
    mkdir ready
    touch ready/notes
    chmod 2770 ready
    share ready
    expect 0
    [ -e ready/locks.db ]
}

@test "init: a % without two hex digits is refused, wherever the URL comes from" {
    mkdir -p home/.config/simba
    for url in 'sqlite:%4' 'sqlite:%' 'sqlite:/x/%0' "sqlite:$DIR/%zz.db" "sqlite:$DIR/%00.db"; do
        printf 'simba:\n  url: "%s"\n' "$url" >home/.config/simba/simba.yaml
        run env -u SIMBA_URL "$SIMBA" init
        expect 125 'simba.yaml:2.*hex digits: write % as %25'
        run simba init "$url"
        expect 64 'hex digits'
    done
    run simba -u "sqlite:$DIR/a%20b/c%2fd.db" init
    expect 0
    [ -d "$DIR/a b" ]
}
