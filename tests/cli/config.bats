#!/usr/bin/env bats
# config.bats: where settings come from, what is wrong with them, the default store.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

source_of() { # setting
    awk -v s="$1" '$1 == s { sub(/.* from /, ""); print }' <<<"$output"
}
value_of() { # setting
    awk -v s="$1" '$1 == s { print $2 }' <<<"$output"
}

@test "flags before SIMBA_*, before the user's file, before defaults" {
    mkdir -p home/.config/simba
    printf 'simba:\n  ttl: 15s\n  sqlite:\n    transition: 3s\nsimba.id: from-file\n' \
        >home/.config/simba/simba.yaml
    run simba lock --dry-run m
    expect 0
    [ "$(value_of ttl)" = 15s ]
    [ "$(source_of ttl)" = "$HOME/.config/simba/simba.yaml:2" ]
    [ "$(value_of transition)" = 3s ]
    [ "$(source_of transition)" = "$HOME/.config/simba/simba.yaml:4" ]
    [ "$(source_of id)" = "$HOME/.config/simba/simba.yaml:5" ]
    [ "$(source_of url)" = SIMBA_URL ]
    SIMBA_TTL=20s run simba lock --dry-run m
    [ "$(value_of ttl)" = 20s ] && [ "$(source_of ttl)" = SIMBA_TTL ]
    SIMBA_TTL=20s run simba lock --ttl 25s --dry-run m
    [ "$(value_of ttl)" = 25s ] && [ "$(source_of ttl)" = --ttl ]
    SIMBA_URL="$SIMBA_URL?ttl=12s" run simba lock --dry-run m
    [ "$(value_of ttl)" = 12s ] && [ "$(source_of ttl)" = "the URL" ]
    run simba lock m sh -c 'echo $SIMBA_CONTENDER_ID'
    expect 0 '^from-file$'
}

@test "XDG_CONFIG_HOME; the keys of a kind of store count for that kind" {
    mkdir -p xdg/simba
    printf 'simba.ttl: 9s\nsimba.redis.ttl: 15s\nsimba.redis.enabled: true\n' >xdg/simba/simba.yaml
    XDG_CONFIG_HOME=$DIR/xdg run simba lock --dry-run m
    [ "$(value_of ttl)" = 9s ]
    printf 'simba: {ttl: 9s, sqlite: {ttl: 15s}}\n' >xdg/simba/simba.yaml
    XDG_CONFIG_HOME=$DIR/xdg run simba lock --dry-run m
    [ "$(value_of ttl)" = 15s ]
    [ ! -e store/locks.db ] # nothing was opened
}

@test "--dry-run --json: an object per line" {
    run simba lock --dry-run --json m
    expect 0 '^\{"setting":"ttl","value":"10s","from":"default"\}$'
}

@test "a wrong file is named with its line" {
    mkdir -p home/.config/simba
    file=home/.config/simba/simba.yaml
    printf 'simba:\n  redis:\n    tll: 15s\n' >$file
    run simba lock m true
    expect 125 'simba.yaml:3: unknown key simba.redis.tll; did you mean simba.redis.ttl\?'
    printf '# good\nsimba.ttl: soon\n' >$file
    run simba lock m true
    expect 125 "simba.yaml:2: 'soon' is not a duration"
    printf 'simba.ttl: 3s\nsimba: {ttl: 4s}\n' >$file
    run simba lock m true
    expect 125 'simba.yaml:2: simba.ttl is set a second time, after line 1'
    printf 'simba:\n  - ttl\n' >$file
    run simba lock m true
    expect 125 'simba.yaml:2: unexpected list'
    printf 'simba: [\n' >$file
    run simba lock m true
    expect 125 'simba.yaml:[0-9]+: '
    printf 'simba.ttl: &a 3s\nsimba.transition: *a\n' >$file
    run simba lock m true
    expect 125 'simba.yaml:2: unexpected alias'
    printf 'just words\n' >$file
    run simba lock m true
    expect 125 'not of the form KEY: VALUE'
    printf '' >$file
    run simba lock m true
    expect 0
    rm $file && mkdir $file
    run simba lock m true
    expect 125 'cannot read'
}

@test "a wrong file shows no secret" {
    mkdir -p home/.config/simba
    printf 'simba.url: redis://u:s3cret@h/\nsimba.url: redis://u:s3cret@h/\n' \
        >home/.config/simba/simba.yaml
    run env -u SIMBA_URL "$SIMBA" lock m true
    expect 125
    [[ "$output" != *s3cret* ]]
    printf 'simba.url: "redis://u:s3cret@h/%%zz"\n' >home/.config/simba/simba.yaml
    run env -u SIMBA_URL "$SIMBA" lock m true
    expect 125
    [[ "$output" != *s3cret* ]]
}

@test "wrong variables are named" {
    SIMBA_TTL=soon run simba lock m true
    expect 125 "SIMBA_TTL: 'soon'"
    SIMBA_TTL=100ms SIMBA_TRANSITION=0 run simba lock m true
    expect 125 "ttl .100ms, from SIMBA_TTL. .*shorter than 500ms"
}

# ---- the default store ------------------------------------------------------------------------

as_nobody() { # command...: without root's privileges, and with the environment that is given
    mkdir -p nobody
    chown 65534:65534 nobody
    as_user 65534 env -i "PATH=$PATH" "$@"
}

@test "root: /var/lib/simba" {
    [ "$(id -u)" -eq 0 ] || skip "not root"
    run env -u SIMBA_URL XDG_STATE_HOME=/x STATE_DIRECTORY=/y "$SIMBA" lock --dry-run m
    expect 0
    [ "$(value_of url)" = sqlite:/var/lib/simba/simba.db ]
    [ "$(source_of url)" = default ]
}

@test "others: STATE_DIRECTORY, XDG_STATE_HOME, HOME; the folder is made, for its owner only" {
    needs_other_users
    run as_nobody HOME="$DIR/nobody" "$SIMBA" lock m sh -c 'echo $SIMBA_STORE'
    expect 0 "^sqlite:$DIR/nobody/.local/state/simba/simba.db$"
    [ "$(stat -c %a nobody/.local/state/simba)" = 700 ]
    run as_nobody HOME="$DIR/nobody" XDG_STATE_HOME="$DIR/nobody/s t" "$SIMBA" lock m true
    expect 0
    [ -e "nobody/s t/simba/simba.db" ]
    run as_nobody HOME="$DIR/nobody" XDG_STATE_HOME=/x STATE_DIRECTORY="$DIR/nobody/sd:/other" \
        "$SIMBA" lock m true
    expect 0
    [ -e nobody/sd/simba.db ]
    run as_nobody HOME="$DIR/nobody" XDG_STATE_HOME=relative "$SIMBA" lock --dry-run m
    [ "$(value_of url)" = "sqlite:$DIR/nobody/.local/state/simba/simba.db" ]
}

@test "HOME unset: the home of passwd; where that cannot be written, SIMBA_URL is named" {
    needs_other_users
    home=$(getent passwd 65534 | cut -d: -f6)
    [ -n "$home" ] && [ ! -w "$home" ] || [ ! -d "$home" ] || skip "nobody has a home"
    run as_nobody "$SIMBA" lock m true
    expect 125 "$home/.local/state/simba.*SIMBA_URL"
    # somebody whom passwd does not know
    run as_user 54321 env -i "$SIMBA" lock m true
    expect 125 "no home.*SIMBA_URL"
}

# It is root's, who can reach the library, which no variable may name for it.
@test "setuid: the environment is not believed" {
    needs_other_users
    cp "$(command -v id)" roots-id
    cp public/real/simba roots-simba
    chmod 4755 roots-id roots-simba
    [ "$(as_user 54321 ./roots-id -u)" = 0 ] || skip "setuid has no effect here (nosuid, no_new_privs)"
    # a search for leaks would have to trace it, which not every root may do
    ASAN_OPTIONS=detect_leaks=0 run as_user 54321 ./roots-simba lock --dry-run m
    expect 0
    [ "$(source_of url)" = default ]
    [[ "$output" != *"$DIR/store"* ]]
}

# ---- help -------------------------------------------------------------------------------------

@test "help teaches; version says" {
    run simba --help
    expect 0 'simba lock backup rsync'
    run simba lock --help
    expect 0 '--conflict-exit-code N'
    run simba help lock
    expect 0 'Examples:'
    run simba help nosuch
    expect 64
    run simba version
    expect 0 '^simba [0-9]+\.[0-9]+\.[0-9]+$'
    run simba --version --json
    expect 0 '^\{"version":"[0-9.]+"\}$'
    run simba version more
    expect 64
    run simba lock --version -n
    expect 64 'unknown option -n'
}

@test "only libc, libuv and libsqlite3 are loaded beside libsimba" {
    run bash -c "ldd '$SIMBA' | awk '{ print \$1 }' | grep -vE 'linux-vdso|ld-linux|lib(simba|c|m|uv|sqlite3|asan|ubsan|tsan|gcc_s|stdc..|pthread|dl|rt)\.so'"
    expect 1 '^$'
}

# bats test_tags=storeless
@test "sqlite: a host is refused, and ~ is not expanded; no host and localhost are a file" {
    mkdir -m 700 tmp '~'
    for command in "lock -n m true" status; do
        # shellcheck disable=SC2086
        run simba -u sqlite://tmp/x.db $command
        expect 125 "sqlite://tmp/x.db: a file has no host: write sqlite:tmp/x.db or sqlite:/tmp/x.db$"
        # shellcheck disable=SC2086
        run simba -u 'sqlite:~/x.db' $command
        expect 125 'sqlite:~/x.db: ~ is not expanded: write the folder in full'
    done
    run simba init sqlite://tmp/x.db
    expect 64 'a file has no host'
    run simba init 'sqlite:~/x.db'
    expect 64 '~ is not expanded'
    [ ! -e /x.db ]
    [ -z "$(ls tmp '~' | grep db)" ]
    for url in "sqlite://$DIR/tmp/a.db" "sqlite://localhost$DIR/tmp/b.db" 'sqlite:./~/c.db'; do
        run simba -u "$url" lock -n m true
        expect 0
    done
    [ -e tmp/a.db ] && [ -e tmp/b.db ] && [ -e '~/c.db' ]
}

# bats test_tags=storeless
@test "a scheme that is nearly one of ours" {
    run simba -u rediz://h/0 lock -n m true
    expect 125 "no store for URLs with 'rediz:'; did you mean redis:\?$"
    run simba -u nosuch:x lock -n m true
    expect 125 "and no module simba-nosuch.so$"
}
