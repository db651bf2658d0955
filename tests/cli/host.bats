#!/usr/bin/env bats
# host.bats: what the library must not do to the program that it is part of, and what it must not take over from
# it. The program is tests/abi/frozen.c.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

setup_host() {
    BUILD=$(dirname "$SIMBA")/tests
    [ -x "$BUILD/frozen" ] || skip "not built: tests/abi/frozen.c is for 64 bit"
    case "$SIMBA_URL" in *\?*) JOINT='&' ;; *) JOINT='?' ;; esac
    URL="$SIMBA_URL${JOINT}ttl=7.5s&transition=1.5s"
}

@test "no write to a connection can raise SIGPIPE in the host" {
    setup_host
    ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$BUILD/sigpipe.so SIGPIPE_COUNT=$DIR/count \
        "$BUILD/frozen" "$URL" >out
    has '^ok$' out
    case "$KIND" in
    sqlite) ;;
    *) [ "$(cat "$DIR/count")" -gt 10 ] ;;
    esac
}

@test "the locale of the host changes nothing" {
    setup_host
    mkdir -p locales
    for name in de_DE tr_TR; do
        localedef -i $name -f UTF-8 "locales/$name.UTF-8" || skip "no locale sources (Debian: locales)"
        LOCPATH=$PWD/locales LC_ALL=$name.UTF-8 "$BUILD/frozen" "$URL" >out
        has '^, is the decimal point$' out
        [ "$(grep -c '^transition 1500 ms$' out)" = 2 ]
        has '^ok$' out
    done
}

# By the store's own tool: ESC, a newline, and a byte that is no UTF-8.
write_odd_id() {
    case "$KIND" in
    sqlite)
        python3 - <<'P'
import os, sqlite3
db = sqlite3.connect(os.environ["DIR"] + "/store/locks.db", timeout=5)
done = 0
for (table,) in db.execute("select name from sqlite_master where type='table'").fetchall():
    for column in [c[1] for c in db.execute(f"pragma table_info({table})")]:
        done += db.execute(f"update {table} set {column}=cast(x'6f64641b5b33316d0aff646f' as text) "
                           f"where {column}='placeholder'").rowcount
db.commit()
assert done == 1, done
P
        ;;
    redis)
        redis-cli -u "${SIMBA_URL%%\?*}" eval \
            "return redis.call('set', KEYS[1], 'odd\\27[31m\\10\\255do', 'KEEPTTL')" 1 "simba:{$M}" | grep -q OK
        ;;
    *) skip "its ids are checked on sqlite: and redis:" ;;
    esac
}

@test "an id of another writes no control characters into messages and logs" {
    begin "$SIMBA" lock --ttl 60s --id placeholder "$M" sh -c 'touch held; exec sleep 60'
    await test -e held
    write_odd_id
    {
        simba status "$M" || true
        simba list "$PREFIX" || true
        simba lock -n "$M" true || true
        simba -vv lock -w 1s "$M" true || true
        simba release --yes "$M" || true
    } >out 2>&1
    python3 - <<'P'
text = open("out", "rb").read().decode()
assert not [c for c in text if ord(c) < 32 and c != "\n"], text
assert "[31m" in text, text
assert not [line for line in text.split("\n") if line.startswith("do")], text
P
    ! has placeholder out
}
