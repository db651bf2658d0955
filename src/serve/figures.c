/* figures.c: counters for short times one after the other, which are used again a day later. */
#include "serve/figures.h"

void figures_count(struct figures *f, const struct seen_tenure *t)
{
    int64_t number = t->ended_ms / FIGURES_SLOT_MS;
    struct figures_slot *s = &f->slots[number > 0 ? number % FIGURES_SLOTS : 0];
    if (number < s->number) /* of a day earlier */
        return;
    if (number > s->number)
        *s = (struct figures_slot){.number = number};
    s->ended++;
    s->lost +=
        t->state == TENURE_ENDED && (t->reason == SIMBA_EXPIRED || t->reason == SIMBA_EVICTED);
}

void figures_write(const struct figures *f, int64_t now_ms, struct json_buffer *t)
{
    static const int minutes[] = {15, 60, 360, 1440};
    json_buffer_name(t, "figures");
    json_buffer_add(t, "[");
    for (size_t i = 0; i < sizeof minutes / sizeof *minutes; i++) {
        int64_t first = (now_ms - minutes[i] * INT64_C(60000)) / FIGURES_SLOT_MS + 1;
        uint64_t ended = 0, lost = 0;
        for (size_t j = 0; j < FIGURES_SLOTS; j++) {
            ended += f->slots[j].number >= first ? f->slots[j].ended : 0;
            lost += f->slots[j].number >= first ? f->slots[j].lost : 0;
        }
        json_buffer_add(t, i > 0 ? ",{" : "{");
        json_buffer_number_of(t, "minutes", true, minutes[i]);
        json_buffer_number_of(t, "ended", true, (int64_t)ended);
        json_buffer_number_of(t, "lost", true, (int64_t)lost);
        json_buffer_add(t, "}");
    }
    json_buffer_add(t, "]");
}
