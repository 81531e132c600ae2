/* The insides of struct processes, for the files process*.c alone. */
#pragma once

#include "agent/endpoint.h"
#include "agent/ports.h"
#include "agent/process.h"
#include "agent/sandbox.h"
#include "base/map.h"
#include "net/loop.h"
#include "shim/proc.h"
#include "shim/shim.h"

#include <limits.h>
#include <stdarg.h>

/* Where a descriptor of shim.h lies in an array of them. */
enum { FD_PIDFD, FD_OUT, FD_IN, FD_JOB };

enum { SPARE_SHIMS = 4 };

struct processes {
    struct loop *loop;
    struct process_ops ops;
    struct process_limits limits;
    struct sandbox sandbox;
    struct endpoints endpoints;
    struct ports ports;
    struct map by_server;
    int64_t highest; /* no server above it was ever known here, so none of them has ended */
    uint8_t *slots;  /* one per slot: taken */
    int n_slots;
    char *shim;
    int lock;
    char boot_id[SHIM_BOOT_MAX];

    uv_signal_t children;
    uv_timer_t clock;
    uv_prepare_t before_wait; /* active while somebody waits for it */
    int open_handles;
    int64_t sweep_at_ms;

    /* Shims that wait for a job: starting one takes longer than starting most game servers. */
    struct spare_shim {
        int fd;
        pid_t pid;
        int64_t home; /* its number, see process_home_ahead */
    } spares[SPARE_SHIMS];
    int n_spares;
    int64_t homes_ahead;  /* the number in the name of the last one */
    int64_t spares_at_ms; /* more of them; 0 = there are enough */
};

/* One connection to a shim. Lives until libuv has let go of it. */
struct shim_link {
    uv_poll_t poll;
    int fd;
    struct process *process; /* NULL = it was dropped */
};

struct process {
    struct processes *owner;
    enum process_state state;
    bool adopted;
    bool unconfirmed;    /* it was PREPARED, and nobody has asked for it yet */
    bool waits_for_go;   /* for process_go, or for the end of this turn of the loop */
    bool waits_for_told; /* its end is told when this turn of the loop is over */
    int slot;            /* -1 = none */
    struct shim_job *job;
    const char **texts; /* of the job: the command line, NULL, the environment, NULL */
    struct process_spec spec;
    const char *endpoint;
    struct shim_state shim; /* as the shim told it */
    struct shim_link *link; /* NULL = the shim is gone */
    pid_t shim_pid;         /* our child, not reaped yet; 0 = none */
    int64_t home_ahead;     /* the number of the home that its shim has made; 0 = none */
    int fds[SHIM_FDS_MAX];
    int listener;          /* at the endpoint; -1 = taken, or it was adopted */
    int64_t kill_at_ms;    /* 0 = not */
    int64_t replace_at_ms; /* another shim; 0 = not */
    struct process_end end;
    char why[PROCESS_WHY_MAX];
    struct buf tail;
};

/* ── process.c ─────────────────────────────────────────────────────────────────────────────── */

int process_refuse(char why[PROCESS_WHY_MAX], int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* In no map yet, without descriptors. */
struct process *process_new(struct processes *ps);

/* Frees it, whatever it has; the map must not know it any more. The game server runs on. */
void process_free(struct process *p);
void process_close_fds(struct process *p);

/* <folder>/servers/<server>, <folder>/ended/<server> */
void process_home(const struct processes *ps, int64_t server, char ret[PATH_MAX]);
void process_home_after(const struct processes *ps, int64_t server, char ret[PATH_MAX]);

/* Beside them, of a shim that has no server yet: <folder>/servers/spare-<our pid>-<number> */
#define PROCESS_HOME_AHEAD "spare-"
void process_home_ahead(const struct processes *ps, int64_t number, char ret[PATH_MAX]);

/* Its places, which nobody uses any more, can be given to others. */
void process_leave(struct processes *ps, int64_t server, int slot, const char *endpoint);

/* Takes its ports and slot out of what can be given. */
void process_claim(struct process *p);

/* Its end is known: from p->shim, or from p->why alone. Tells the owner, who may forget it at once:
 * p must not be touched afterwards. */
void process_is_over(struct process *p);
/* The same, told when this turn of the loop is over. */
void process_is_over_later(struct process *p);

/* The nearest of all deadlines is awaited. */
void processes_arm(struct processes *ps);
void processes_wake_before_wait(struct processes *ps);

/* Through its pidfd alone. */
void process_signal(struct process *p, int sig);

/* ── process_job.c ─────────────────────────────────────────────────────────────────────────── */

/* p->job and what points into it, from how it is to be started. 0, or an error with why. */
int process_job_make(struct process *p, const struct process_spec *spec,
                     const struct sandbox_place *place, const uint16_t *ports,
                     char why[PROCESS_WHY_MAX]);

/* Takes the job (from malloc, size bytes), whoever wrote it. False and not taken when it is none.
 */
bool process_job_take(struct process *p, struct shim_job *job, size_t size);

/* A memory file with the job; -1 with errno. */
int process_job_file(const struct process *p);

/* ── process_shim.c ────────────────────────────────────────────────────────────────────────── */

/* Its shim could not start it: process_why says what could not be done. */
void shim_say_refused(struct process *p);

/* A shim, one that waits or a new one, and a link to it; what it is to do is told by shim_go. 0, or
 * an error with why. */
int shim_start(struct process *p, char why[PROCESS_WHY_MAX]);
void shim_go(struct process *p);

/* Starts one that waits, unless there are enough: true when there are not yet. False too when it
 * cannot: whoever wants one will hear why. */
bool shim_lay_in(struct processes *ps);
/* One that has ended; all of them. */
void shim_forget_spare(struct processes *ps, pid_t pid);
void shim_drop_spares(struct processes *ps);

/* Somebody else's shim answers on fd, which is taken. */
void shim_connect(struct process *p, int fd);
void shim_note(struct process *p);
void shim_mark(struct process *p);
void shim_bye(struct process *p);
void shim_drop_link(struct process *p);

/* Its shim, a child of ours, was reaped just now. */
void shim_has_ended(struct process *p);

/* Its shim is gone, it is not: another takes over. Tries again later when that fails. */
void shim_replace(struct process *p);

/* What it says. fds are taken. May end p (process_is_over). */
void shim_hear(struct process *p, const struct shim_message *m, int fds[SHIM_FDS_MAX],
               const char *tail);

/* Returns when p->shim.pid is known, or after a moment. */
void shim_await_hello(struct process *p);

/* Is this (pid, start, boot) still the process that the pidfd stands for? */
bool shim_state_proved(const struct processes *ps, const struct shim_state *state, int pidfd);

/* ── process_adopt.c ───────────────────────────────────────────────────────────────────────── */

/* Finds the servers of the agent before us. */
void processes_adopt(struct processes *ps);

/* ── process_sweep.c ───────────────────────────────────────────────────────────────────────── */

/* Removes a folder and all in it, off the loop. */
void sweep_folder(struct processes *ps, const char *path);

/* Removes what is left of servers that ended long ago, off the loop. */
void sweep_ended(struct processes *ps);
