/* Pulses: which of this host's game servers are alive, by their answers to `status`. Each is asked
 * once per period of its own and has ten seconds to answer; three silences in a row are a hang.
 *
 * A silence counts against its server only when the machine was not the cause:
 *   - while the agent itself did not run, nobody's time runs, and an open question starts again;
 *   - anything that any server has said since the question shows that the machine runs;
 *   - without that, other servers whose own questions are open are witnesses. The verdict waits for
 *     them. When they are silent too, servers that are not due yet are asked as well; when all of
 *     those are silent, the machine stood still: nobody is judged, and all are counted anew;
 *   - a server that was not asked says nothing about the machine, so one that is silent alone is
 *     judged alone.
 *
 * Pure: no I/O and no clock; the caller says what time it is. Owned by struct games. */
#pragma once

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PULSE_ANSWER_MS = 10 * 1000, /* the time a game server has for an answer */
    PULSE_SILENT_MAX = 3,
    PULSE_GAP_MAX_MS = 1000, /* a longer one between two ticks: the agent did not run */
};

struct pulses {
    struct list running;
    int64_t now_ms; /* the time that the agent has run, from 1 */
    int64_t ticked_ms;
    int64_t heard_ms; /* when any server last said anything */
    bool all_silent;  /* nobody has spoken since the machine stood still */
};

/* One that is in no list is not watched. */
struct pulse {
    struct link link;
    int64_t period_ms;
    int64_t due_ms;   /* of the next question */
    int64_t asked_ms; /* 0 = no question is open */
    int silent;       /* silences in a row that count */
};

enum pulse_verdict { PULSE_WAIT, PULSE_ASK, PULSE_HUNG };

void pulses_init(struct pulses *ps, int64_t monotonic_ms);

/* Time has passed. */
void pulses_tick(struct pulses *ps, int64_t monotonic_ms);

/* When that much time will have passed, however long ago the last tick was. */
int64_t pulses_soon_ms(const struct pulses *ps, int64_t monotonic_ms, int64_t in_ms);

/* Any server has said something. */
void pulses_heard(struct pulses *ps);

/* The server is ready: it is watched from now on, and asked first in that many milliseconds. */
void pulse_start(struct pulses *ps, struct pulse *p, int64_t period_ms, int64_t first_in_ms);
void pulse_stop(struct pulse *p); /* no-op when it is not watched */

/* What is to be done about it now. After PULSE_ASK a question is open. */
enum pulse_verdict pulse_look(struct pulses *ps, struct pulse *p);

/* It has answered, to the last question or to an earlier one. */
void pulse_answered(struct pulse *p, bool last);
