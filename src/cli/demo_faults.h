/* What goes wrong in `muster dev --lobby --faults` beside what players and servers do themselves:
 * now and then a game server, or Muster itself, is killed with SIGKILL, and started again a little
 * later. Embedded in dev.c. */
#pragma once

#include "cli/demo.h"

struct demo_faults {
    uint64_t luck;
    int64_t next_ms; /* the next one is killed then; 0 = not begun */
    int64_t back_ms; /* whoever is down is started again then */
    int down;        /* the child that is; -1 = none */
    int tries;       /* to start it again, so far */
};

/* Does what is due, and says it through the children's on_note; returns when to call it again.
 * *ret is DEMO_FAILED when one cannot be started again, DEMO_STOPPED when we were asked to stop. */
int64_t demo_faults_turn(struct demo_faults *f, struct demo *d, enum demo_start *ret);

/* True while Muster is down because of us. */
bool demo_faults_has_muster(const struct demo_faults *f);

/* No more of it: whoever is down is started again. */
enum demo_start demo_faults_end(struct demo_faults *f, struct demo *d);
