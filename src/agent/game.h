/* Games: the game servers of this host as the control plane means them. A game ties together its
 * process, the link on which it speaks JSON-RPC, and what the outbox holds of it; it keeps the
 * times a game server has to keep, and says why one was ended.
 *
 * Owned by the agent; used on the loop's thread. Time here is the loop's (pulse.h): it stands while
 * the loop does, so that a host that was stopped for a minute concludes nothing from the silence.
 */
#pragma once

#include "agent/process.h"
#include "agent/pulse.h"
#include "agent/secrets.h"
#include "agent/spawn.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/list.h"
#include "base/map.h"

#include <stdbool.h>
#include <stdint.h>

struct deployments;
struct game_link;
struct links;
struct outbox;
struct outbox_event;

enum {
    GAME_WHY_MAX = 256,
    GAME_TAIL_BYTES = 4000,     /* of its last lines, in an event */
    GAME_LOG_BYTES = 16 * 1024, /* of its output, kept after its end */
    GAME_ANSWERS_MAX = 32,      /* calls whose answers are kept for a repeat */
    GAMES_OVER_MAX = 256,       /* games that are over and still known */
    GAME_ASKED_BYTES = 32,
};

/*   FETCHING ──its deployment is there──▶ STARTING ──inited──▶ INITING ──taken──▶ RUNNING
 *      │                                     │                    └──refused──▶ GIVEN_UP
 *      └─────────────┬───────────────────────┴── time is up, hung, terminated ──▶ ENDING
 *                    └──▶ OVER                       any with a process ──it ended──▶ OVER */
enum game_phase {
    GAME_FETCHING = 1,
    GAME_STARTING,
    GAME_INITING,
    GAME_RUNNING,
    GAME_GIVEN_UP,
    GAME_ENDING,
    GAME_OVER,
};

/* A call that was answered, for its repeat. */
struct game_answer {
    char *verb; /* NULL = free */
    char *key;
    char *id;
    struct buf message; /* the answer, whole */
};

struct game {
    struct games *games;
    struct link over_link; /* of games.over, once it is */
    int64_t server;
    int64_t session;
    enum game_phase phase;
    bool called_inited;

    /* It was asked to prepare and not yet to spawn: nobody hears of it, and it is ended when the
     * spawn does not come. */
    bool prepared;
    int64_t prepared_until_ms;
    uint8_t asked[GAME_ASKED_BYTES]; /* a hash of how it was asked for */

    struct spawn *spawn;     /* FETCHING */
    struct process *process; /* from STARTING to ENDING */
    struct game_link *link;  /* the same */
    int64_t deadline_ms;     /* STARTING, GIVEN_UP */
    char why[GAME_WHY_MAX]; /* we ended it, or OVER: it never ran, or nobody saw its end; else "" */
    bool timed_out;         /* … because it took too long to initialise */
    bool hung;              /* … because it did not answer */

    struct pulse pulse; /* RUNNING */
    int64_t status_id;  /* of the last question */

    int refusal; /* the first answer to inited was this error; 0 = it was not */
    char refusal_why[GAME_WHY_MAX];
    struct game_answer answers[GAME_ANSWERS_MAX];
    size_t next_answer;
    struct secrets secrets; /* that it was given */

    /* OVER */
    struct process_end end;
    pid_t pid;
    uint16_t ports[PROCESS_PORTS_MAX];
    int n_ports;
    struct buf log; /* without its secrets */
};

struct games {
    struct processes *processes;
    struct links *links;
    struct outbox *outbox;
    struct deployments *deployments;

    struct map by_server;
    struct list over; /* oldest first */
    size_t n_over;
    struct pulses pulses; /* of those that run; time here is pulses.now_ms */
    bool leaving;
};

/* The members up to `user` are put in by the agent, before the first call but games_init. */
void games_init(struct games *gs);

/* Forgets everything; the processes run on. */
void games_done(struct games *gs);

/* Takes over the processes and events of the agent before us. */
void games_adopt(struct games *gs);

/* From the loop's tick. */
void games_tick(struct games *gs, int64_t monotonic_ms);

/* Starts what a spawn request says. 0: it is being started, or was already; else an error with a
 * sentence. ERR_BUSY: something else was prepared under its number and is being ended. */
int games_spawn(struct games *gs, struct str body, char why[GAME_WHY_MAX]);

/* The same before it is certain that it will be asked for: with the same bytes, soon. */
int games_prepare(struct games *gs, struct str body, char why[GAME_WHY_MAX]);

/* process_ops.begun: the pid of a process is known. */
void games_process_begun(void *user, struct process *p);

/* process_ops.over: a process has ended. */
void games_process_over(void *user, struct process *p);

/* control_ops.answered. */
void games_answered(struct games *gs, const struct outbox_event *e, const struct json *result,
                    const struct json *error);

struct game *games_find(const struct games *gs, int64_t server);
struct game *games_next(const struct games *gs, size_t *at); /* start with *at = 0 */
size_t games_running(const struct games *gs);                /* that have a process, or will */

/* Ends it: SIGTERM now, SIGKILL after grace_ms. why is a clause. No-op when it ends already. */
void game_end(struct game *g, int64_t grace_ms, const char *why);
void game_kick(struct game *g, struct str key, struct str reason);
const char *game_state_name(const struct game *g); /* as heartbeats call it; "over" beside that */

/* The last of its output, also once it is over; without its secrets. */
void game_tail(const struct game *g, int lines, struct buf *out);

/* ── game_calls.c, for game.c ──────────────────────────────────────────────────────────────── */

/* A message has come: game_link_message. */
void game_message(void *user, struct str bytes);

/* RUNNING: asks for its status, and concludes from silence. */
void game_watch(struct game *g);

/* It is RUNNING from now on, and is asked for its status for the first time in so many
 * milliseconds. */
void game_runs(struct game *g, int64_t asked_in_ms);
void game_forget_answers(struct game *g);
