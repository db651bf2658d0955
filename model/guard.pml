/* guard.pml: keeper, guard and the tree of CMD (src/cli/run/run_options.h), with kill and stop of any of them.
 *
 * One step is one line of main's loop. Time passes in ticks, and only when nobody who can run has
 * something due: a process that runs acts within the margin. The tree here ignores what can be
 * ignored, has left its group and session, and ends only when it is killed or when it likes.
 *
 * Must hold: when another begins, nothing of the tree is alive; unless keeper and guard were dead or
 * stopped at the same time, which is the limit that docs/guarantees.md names. (A guard that was stopped
 * when its keeper dies is no excuse: it is woken.) And: the guard's timer never ends the tree before the
 * deadline that the keeper has told last, also if the guard was stopped when it was told.
 *
 * Taken away, and then it breaks: NO_TIMER (the guard has no deadline), NO_STANDIN (the keeper does
 * not act for its guard), NO_WAKE (a stopped guard stays so when its keeper dies), NO_LIVENESS (the
 * store asks for the keeper alone), FED_LATE (the deadline counts from when the guard hears of it),
 * ACTS_FIRST (a guard that goes on acts on its timer before it looks at what it was told). */
#ifndef LEASE
#define LEASE 5 /* as the store counts it */
#endif
#ifndef HOLD
#define HOLD 3 /* as keeper and guard do */
#endif

mtype = {RUNS, STOPPED, DEAD};
mtype keeper = RUNS, guard = RUNS;
bool tree = true, other = false;
bool excused = false; /* both were out of action at once */
byte left = LEASE;    /* of the lease, in the store */
byte hold = HOLD;     /* as the keeper knows */
byte told = HOLD;     /* as the keeper has told, in memory that both share */
byte timer = HOLD;    /* as the guard has set it, when it last looked there */

#define ACTS(p) (p == RUNS)
#define BOTH_OUT (!ACTS(keeper) && !ACTS(guard))

#ifdef NO_TIMER
#define GUARD_DUE (tree && ACTS(guard) && keeper == DEAD)
#else
#define GUARD_DUE (tree && ACTS(guard) && (timer == 0 || keeper == DEAD))
#endif
#ifdef NO_STANDIN
#define KEEPER_DUE false
#else
#define KEEPER_DUE (tree && ACTS(keeper) && (hold == 0 || guard == DEAD))
#endif
#ifdef NO_LIVENESS
#define SEEN_DEAD (keeper == DEAD)
#else
#define SEEN_DEAD (keeper == DEAD && guard == DEAD && !tree)
#endif
#define LESS(x) x = (x > 0 -> x - 1 : 0)

inline note()
{
    excused = excused || BOTH_OUT
}

inline by_timer()
{
#ifdef ACTS_FIRST
    tree = false; assert(told == 0)
#else
    if
#ifdef FED_LATE
    :: told > 0 -> timer = HOLD
#else
    :: told > 0 -> timer = told
#endif
    :: else -> tree = false; assert(told == 0)
    fi
#endif
}

active proctype main()
{
    do
    :: other -> break

    /* the keeper, as long as it has a right to, and there is something to hold the lock for */
    :: atomic { ACTS(keeper) && hold > 0 && tree -> left = LEASE; hold = HOLD }
    :: atomic { ACTS(keeper) && hold > 0 && told != hold -> told = hold }
    :: atomic { KEEPER_DUE -> tree = false }
    :: atomic { ACTS(keeper) && !tree -> left = 0; hold = 0 } /* releases */

    :: atomic { GUARD_DUE ->
        if
        :: keeper == DEAD -> tree = false
        :: else -> by_timer()
        fi
    }
    :: atomic { ACTS(guard) && !tree -> guard = DEAD; note() } /* nothing left to do */
    :: atomic { tree -> tree = false } /* ends by itself */

    :: atomic { !GUARD_DUE && !KEEPER_DUE && left > 0 -> LESS(left); LESS(hold); LESS(told); LESS(timer) }

    /* what may befall them */
    :: atomic { keeper == RUNS -> keeper = STOPPED; note() }
    :: atomic { keeper == STOPPED -> keeper = RUNS }
    :: atomic { guard == RUNS -> guard = STOPPED; note() }
    :: atomic { guard == STOPPED -> guard = RUNS }
    :: atomic { guard != DEAD -> guard = DEAD; note() }
    :: atomic { keeper != DEAD ->
        keeper = DEAD;
#ifndef NO_WAKE
        if
        :: guard == STOPPED -> guard = RUNS
        :: else
        fi;
#endif
        excused = excused || guard == DEAD
    }

    :: atomic { left == 0 || SEEN_DEAD -> other = true; assert(!tree || excused) }
    od
}
