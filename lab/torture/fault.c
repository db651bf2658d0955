/* fault.c: names of faults and of their groups. */
#include "lab/torture/fault.h"

#include <stdio.h>
#include <string.h>

const char *const fault_names[FAULT_KINDS] = {
#define X(name, group, word, done) word,
    FAULTS(X)
#undef X
};

const char *const fault_done[FAULT_KINDS] = {
#define X(name, group, word, done) done,
    FAULTS(X)
#undef X
};

static const enum fault_group groups[FAULT_KINDS] = {
#define X(name, group, word, done) GROUP_##group,
    FAULTS(X)
#undef X
};

static const char *const group_names[FAULT_GROUPS] = {"process", "api", "network", "server",
                                                      "limits"};

enum fault_group fault_group_of(enum fault fault)
{
    return groups[fault];
}

/* A clock that steps is faster than the drift, for a moment. */
bool fault_is_limit(enum fault fault)
{
    return groups[fault] == GROUP_LIMIT || fault == FAULT_CLOCK;
}

fault_set faults_of(enum fault_group group)
{
    fault_set set = 0;
    for (int i = 0; i < FAULT_KINDS; i++) {
        if (groups[i] == group)
            set |= FAULT_BIT(i);
    }
    return set;
}

static bool find(const char *name, fault_set *out)
{
    for (int i = 0; i < FAULT_KINDS; i++) {
        if (strcmp(name, fault_names[i]) == 0) {
            *out = FAULT_BIT(i);
            return true;
        }
    }
    for (int i = 0; i < FAULT_GROUPS; i++) {
        if (strcmp(name, group_names[i]) == 0) {
            *out = faults_of((enum fault_group)i);
            return true;
        }
    }
    *out = strcmp(name, "all") == 0 ? (FAULT_BIT(FAULT_KINDS) - 1) & ~faults_of(GROUP_LIMIT) : 0;
    return *out != 0 || strcmp(name, "none") == 0;
}

void fault_choices(const char *out[FAULT_CHOICES])
{
    for (int i = 0; i < FAULT_KINDS; i++)
        *out++ = fault_names[i];
    for (int i = 0; i < FAULT_GROUPS; i++)
        *out++ = group_names[i];
    *out++ = "all";
    *out = "none";
}

bool faults_parse(const char *list, fault_set *out, char *unknown, size_t size)
{
    fault_set set = 0, one;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        bool is_taken_away = *at == '-';
        snprintf(unknown, size, "%.*s", (int)length - is_taken_away, at + is_taken_away);
        if (!find(unknown, &one))
            return false;
        set = is_taken_away ? set & ~one : set | one;
        at += length;
        if (*at == '\0')
            break;
    }
    *out = set;
    return true;
}
