#!/usr/bin/env bats
# torture_page.bats: the picture of a torture run, with runs that tests/torture/page_sample.c invents.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

TORTURE=$BATS_TEST_DIRNAME/../torture

sample() { # KIND [SEED [TENURES]]
    "${SIMBA%/*}/tests/page_sample" "$@"
}

@test "torture page: it is HTML that needs nothing else, with the run in it" {
    for kind in good bad empty hostile; do
        sample $kind 7 >page.html
        "$TORTURE/page_check.py" $kind page.html
    done
}

@test "torture page: twenty thousand tenures are not too many" {
    sample bad 3 20000 >page.html
    "$TORTURE/page_check.py" bad page.html
}

@test "torture page: the same run gives the same page" {
    cmp <(sample bad 5) <(sample bad 5)
    ! cmp -s <(sample bad 5) <(sample bad 6)
}

@test "torture page: a full disk is noticed" {
    run -1 bash -c '"$0" good 1 5000 >/dev/full' "${SIMBA%/*}/tests/page_sample"
    [[ "$output" = *"No space left on device"* ]]
}

@test "torture page: in a browser" {
    needs_browser
    sample good 1 >good.html
    sample bad 1 >bad.html
    sample bad 2 20000 >large.html
    sample hostile 1 >hostile.html
    "$PYTHON" "$TORTURE/page_browser.py" good.html bad.html large.html hostile.html
}
