#include "cli/demo_faults.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>

enum {
    FIRST_MS = 5000,
    EVERY_MS = 4000, /* and as much again, by chance */
    DOWN_MS = 300,
    DOWN_MORE_MS = 1500,
    MUSTER_ONE_IN = 3,
    TRIES_MAX = 20,
    AGAIN_MS = 300,
};

static int64_t roll(struct demo_faults *f, int64_t n)
{
    f->luck = f->luck * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(f->luck >> 33) % n;
}

static void say(struct demo *d, const char *what, int i)
{
    char sentence[128];
    snprintf(sentence, sizeof(sentence), "%s %s", what, d->children.all[i].name);
    d->children.on_note(d->children.user, sentence);
}

static void kill_one(struct demo_faults *f, struct demo *d, int64_t now_ms)
{
    int i = roll(f, MUSTER_ONE_IN) == 0 ? DEMO_SERVE : 1 + (int)roll(f, DEMO_GAMES);
    f->next_ms = now_ms + EVERY_MS + roll(f, EVERY_MS);
    if (!children_runs(&d->children, i))
        return;
    say(d, "killing", i);
    kill(d->children.all[i].pid, SIGKILL);
    f->down = i;
    f->back_ms = now_ms + DOWN_MS + roll(f, DOWN_MORE_MS);
}

/* Its end must have been seen before it can begin again. A free port may be somebody's for a
 * moment, for an outgoing connection. */
static enum demo_start bring_back(struct demo_faults *f, struct demo *d)
{
    int i = f->down;
    if (children_runs(&d->children, i))
        return DEMO_STARTED;
    say(d, "starting again:", i);
    enum demo_start s = demo_restart(d, i);
    if (s == DEMO_FAILED && ++f->tries < TRIES_MAX) {
        f->back_ms = clock_monotonic_ms() + AGAIN_MS;
        return DEMO_STARTED;
    }
    f->down = -1;
    f->tries = 0;
    if (s == DEMO_STARTED && i == DEMO_SERVE)
        demo_revive(d);
    return s;
}

int64_t demo_faults_turn(struct demo_faults *f, struct demo *d, enum demo_start *ret)
{
    int64_t now_ms = clock_monotonic_ms();
    *ret = DEMO_STARTED;
    if (f->next_ms == 0) {
        *f = (struct demo_faults){
            .luck = (uint64_t)clock_wall_ms(), .next_ms = now_ms + FIRST_MS, .down = -1};
    } else if (f->down >= 0 && now_ms >= f->back_ms) {
        *ret = bring_back(f, d);
    } else if (f->down < 0 && now_ms >= f->next_ms) {
        kill_one(f, d, now_ms);
    }
    if (f->down >= 0) /* a dead one's end is seen within moments */
        return f->back_ms > now_ms ? f->back_ms : now_ms + 10;
    return f->next_ms;
}

bool demo_faults_has_muster(const struct demo_faults *f)
{
    return f->next_ms && f->down == DEMO_SERVE;
}

enum demo_start demo_faults_end(struct demo_faults *f, struct demo *d)
{
    enum demo_start s = DEMO_STARTED;
    while (f->next_ms && f->down >= 0 && s == DEMO_STARTED) {
        if (children_runs(&d->children, f->down) || clock_monotonic_ms() < f->back_ms)
            (void)children_turn(&d->children, clock_monotonic_ms() + AGAIN_MS);
        else
            s = bring_back(f, d);
    }
    return s;
}
