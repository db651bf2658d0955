/* owners.c: owners URL COUNT [CHANGES [NOTE]]: owns COUNT mutexes, for tests of simba serve, until it is
 * killed. It prints "ready" when it owns all of them. CHANGES per second of them change their tenure: one
 * ends, the next begins. All have a note of NOTE bytes, which are six each in JSON. */
#include <poll.h>
#include <simba.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_MS 30000
#define NOTED 100 /* one in so many has a note */

static atomic_size_t owned;

static void on_acquired(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data, (void)mutex, (void)state;
    atomic_fetch_add(&owned, 1);
}

static void on_released(void *data, const char *mutex, const struct simba_state *state)
{
    (void)data, (void)mutex, (void)state;
    atomic_fetch_sub(&owned, 1);
}

static int fail(void)
{
    return fprintf(stderr, "owners: %s\n", simba_error_text()), 1;
}

int main(int argc, char **argv)
{
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    int changes = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0;
    size_t note_bytes = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    char long_note[SIMBA_NOTE_MAX + 1] = "";
    struct simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
    simba_contender **all = calloc(count + 1, sizeof(simba_contender *));
    simba_client *client = NULL;
    memset(long_note, '<', note_bytes < SIMBA_NOTE_MAX ? note_bytes : SIMBA_NOTE_MAX);
    if (count == 0 || all == NULL || simba_open(argv[1], NULL, &client) != 0)
        return fail();
    o.ttl_ms = TTL_MS;
    o.on_acquired = on_acquired;
    o.on_released = on_released;
    for (size_t i = 0; i < count; i++) {
        char mutex[SIMBA_MUTEX_MAX + 1], id[SIMBA_ID_MAX + 1];
        snprintf(mutex, sizeof mutex, "service-%05zu", i);
        snprintf(id, sizeof id, "owner-%zu@host-%zu", i, i % 7);
        o.id = id;
        o.note = note_bytes > 0 ? long_note : i % NOTED == 0 ? "http://10.0.0.7:8080/<b>" : NULL;
        if (simba_contender_create(client, mutex, &o, &all[i]) != 0 ||
            simba_contender_start(all[i]) != 0)
            return fail();
    }
    while (atomic_load(&owned) < count)
        poll(NULL, 0, 10);
    printf("ready\n");
    fflush(stdout);
    for (size_t i = 0;; i++) {
        poll(NULL, 0, changes > 0 ? 1000 / changes : -1);
        if (changes > 0)
            simba_contender_resign(all[i % count], 0);
    }
}
