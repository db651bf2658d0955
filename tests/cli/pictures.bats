#!/usr/bin/env bats
# pictures.bats: what the pictures of the README show is so. `make pictures` draws them again.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

ROOT=$BATS_TEST_DIRNAME/../..
IMAGES=$ROOT/docs/images

# Without numbers; and whoever of the last two candidates was first is called the second.
shape_of() { # recording
    awk '/ acquired / { order[$2] = ++n } { line[NR] = $0 }
        END { for (i = 1; i <= NR; i++) { $0 = line[i]; t = $2 in order ? order[$2] : $2; print t, $0 } }' "$1" |
        sed -E -e 's/ +[0-9.]+  [0-9]  / /' -e 's/[0-9]+(\.[0-9]+)?/N/2g' -e 's/ +/ /g' | sort
}

@test "pictures: they are what tools/draw makes of the recording" {
    "$ROOT/tools/draw" takeover "$IMAGES/takeover.txt" | cmp - "$IMAGES/takeover.svg"
    "$ROOT/tools/draw" idea | cmp - "$IMAGES/idea.svg"
    python3 -c 'import sys, xml.dom.minidom as x; [x.parse(f) for f in sys.argv[1:]]' "$IMAGES"/*.svg
}

@test "pictures: docs/performance.md and its charts are what scripts/report makes of the figures" {
    [ -e "$ROOT/build/performance.json" ] || skip "nothing was measured here: make bench OUT=build/performance.json"
    mkdir -p copy/build
    cp -r "$ROOT/docs" "$ROOT/scripts" "$ROOT/tools" copy
    cp "$ROOT/build/performance.json" copy/build
    copy/scripts/report >/dev/null # of what was measured here since
    copy/scripts/report --check
    # Another figure is noticed.
    sed -i '/"1 process: a cycle, p50, us"/ { n; s/"ours": [0-9.]*/"ours": 987654/ }' copy/build/performance.json
    run -1 copy/scripts/report --check
    expect 1 'performance.md is not what'
}

@test "pictures: they need nothing from elsewhere" {
    run -1 grep -nE '<image|<script|@import|@font-face|url\(|href=|https?://(www.w3.org/2000/svg)?[^"w]' "$IMAGES"/*.svg
}

@test "pictures: the recording shows what the command prints today" {
    needs_terminal
    "$ROOT/scripts/demo" --record recording "$SIMBA"
    diff <(shape_of "$IMAGES/takeover.txt") <(shape_of recording)
}

@test "pictures: the figures of the idea are those of the code" {
    cat >figures.c <<'C'
#include <stdio.h>
#include "cli/lease_policy.h"
#include "core/period.h"
int main(void)
{
    struct period_options defaults = {-1, -1, -1, -1, -1, -1, -1};
    struct period p;
    const char *why = NULL;
    if (period_init(&p, &defaults, &why) != 0)
        return 1;
    printf("ttl %lld\ntransition %lld\nrenew %lld\nlease %lld\nhold_until %lld\ntakeover %lld\n",
           (long long)p.ttl / 1000000, (long long)p.transition / 1000000, (long long)p.renew / 1000000,
           (long long)p.lease / 1000000, (long long)period_hold_until(&p, 0, p.lease) / 1000000,
           (long long)policy_takeover(&p, p.lease) / 1000000);
    return 0;
}
C
    cc -std=c11 -D_GNU_SOURCE -I"$ROOT/src" -I"$ROOT/include" figures.c "$ROOT"/src/core/period.c "$ROOT"/src/cli/lease_policy.c -o figures
    diff <("$ROOT/tools/draw" figures) <(./figures)
    simba lock --dry-run "$M" | awk '/^(ttl|transition) / { print $1, $2 * 1000 }' >shown
    diff <("$ROOT/tools/draw" figures | grep -E '^(ttl|transition) ') shown
}
