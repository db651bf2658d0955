/* scenario.h: stories of one mutex, written down as transcripts and run in the simulated world.
 *
 * A scenario is a section of a Markdown file in this folder: a heading "## Title", prose, and an
 * indented block.
 *
 *     with B called primary            settings, see script.c
 *       0.000 * start A                the script: what happens at which second
 *       0.000   A > CONTEND            the trace: what follows from it
 *       0.010       the store grants 1 to A1
 *
 * The lines with a star are the script. They run in a world without chance: a message takes 10 ms,
 * a callback no time, jitter is at its least, and only what the script calls for goes wrong. The
 * transcript of that run must be the block as it is written, line by line; and no promise of
 * check.c may be broken on the way.
 *
 * A line with a star comes before everything else in its instant. Clients are A to D. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define CLIENTS 4
#define LINES_MAX 200
#define LINE_SIZE 128

struct transcript {
    size_t count;
    char line[LINES_MAX][LINE_SIZE];
};

struct scenario {
    char title[LINE_SIZE];
    struct transcript written;
};

/* Runs the script in what is written and takes down what happens. script.c */
void scenario_run(const struct transcript *written, struct transcript *happened);
#endif
