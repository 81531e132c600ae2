/* Processes: the game servers of this host, each behind a shim that outlives us. Starting one,
 * finding those of an agent before us, watching them, their ports, their logs and their end. Knows
 * nothing of JSON-RPC or of the control plane. Owned by the agent; used on the loop's thread; calls
 * back from the loop only. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;
struct processes;
struct process;

enum {
    PROCESS_PORTS_MAX = 4,
    PROCESS_WHY_MAX = 256,
    PROCESS_TAIL_LINES = 20,
    PROCESS_CUT_BYTES = 8192, /* a tail that is shorter begins with a whole line */
};

/*   STARTING ──process_inited──▶ RUNNING ──▶ ENDING ──▶ OVER (kept until process_forget)
 *      ▲ └────────────────────────────────────────┴──▶ OVER
 *      └─process_confirm─ PREPARED ──▶ ENDING, OVER
 *
 * Kept by shims: append only. */
enum process_state {
    PROCESS_STARTING = 1,
    PROCESS_RUNNING,
    PROCESS_ENDING,
    PROCESS_OVER,
    PROCESS_PREPARED, /* as STARTING, but it is not known yet whether anybody wants it */
};

/* How to start one. Everything is copied. */
struct process_spec {
    int64_t server;
    int64_t session;
    const char *binary; /* a path; relative to `folder` when it is not absolute */
    const char *folder; /* working directory: the deployment's, read-only; NULL = its scratch */
    bool endpoint_uri;  /* argv[1] is "ipc://…" instead of the path */
    bool prepared;      /* PREPARED at first */
    int n_ports;        /* 1..4, from the pool */
    const char *const *arguments; /* closed by NULL */
    const char *const *env;       /* "KEY=value", closed by NULL: the whole environment */
    /* Kept with it for whoever adopts it; not looked at. */
    int64_t spawn_timeout_ms;
    int64_t status_period_ms;
};

/* How it ended. */
struct process_end {
    bool ran;        /* else nothing was started, and process_why says why */
    int exit_code;   /* -1 = nobody could tell; process_why says more */
    int exit_signal; /* 0 = it exited by itself */
    int64_t peak_memory;
    int64_t run_ms;
    int64_t dropped_bytes; /* of its output, which are not in its log */
};

struct process_ops {
    void (*begun)(void *user, struct process *p); /* its pid is known; NULL = nobody asks */
    void (*over)(void *user, struct process *p);  /* its port is free again after process_forget */
    void *user;
};

struct process_limits {
    uint16_t port_first, port_last;
    int64_t log_bytes;                    /* of one file; 8 MiB */
    int log_files;                        /* 4 */
    int64_t files, processes, file_bytes; /* rlimits; 0 = as ours */
    uid_t uid_first;                      /* own uid per slot when we are root; 0 = ours */
    int slots;                            /* servers at once; 0 = as many as there are ports for */
    const char *cgroup;                   /* a delegated cgroup v2 folder; NULL = none */
    int64_t memory_bytes;                 /* with a cgroup; 0 = no limit */
};

/* folder is the agent's data folder. Finds and proves the servers of the agent before us; they are
 * there when it returns; those that ended meanwhile are told by ops.over when the loop runs. Their
 * endpoints are to be bound before that. 0, or an error with why.
 * From now on this process is a subreaper, ignores SIGPIPE and reaps every child it has: whoever
 * wants to wait for a child of another kind must not do it in an agent. */
int processes_open(struct loop *loop, const char *folder, const char *shim,
                   const struct process_limits *limits, const struct process_ops *ops,
                   struct processes **ret, char why[PROCESS_WHY_MAX]);

/* Lets go of everything; the servers run on. NULL is fine. */
void processes_close(struct processes *ps);

/* 0 with *ret, or an error with a sentence: no port, no such binary, … Idempotent by server id; one
 * that was forgotten less than an hour ago is ERR_ALREADY_OVER. Its endpoint
 * listens. Does not wait for exec: the order to start goes out when this turn of the loop is over,
 * and what only exec can find out (an interpreter that is missing, a folder that its uid may not
 * enter) comes as its end: exit code 127 and a sentence in process_why. */
int processes_spawn(struct processes *ps, const struct process_spec *spec, struct process **ret,
                    char why[PROCESS_WHY_MAX]);

struct process *processes_find(const struct processes *ps, int64_t server);
struct process *processes_next(const struct processes *ps, size_t *at); /* start with *at = 0 */
size_t processes_count(const struct processes *ps);

/* Sandbox parts that this kernel does not give us, as a sentence; "" = all of them are on. */
const char *processes_missing(const struct processes *ps);

int64_t process_server(const struct process *p);
int64_t process_session(const struct process *p);
pid_t process_pid(const struct process *p); /* 0 until it has been started, a moment after spawn */
enum process_state process_state(const struct process *p);
bool process_was_adopted(const struct process *p);
const uint16_t *process_ports(const struct process *p, int *ret_n);
int64_t process_since_ms(const struct process *p); /* wall clock of its start */
const struct process_spec *process_spec(const struct process *p);
const char *
process_endpoint(const struct process *p); /* the path of its socket, new for each incarnation */

/* The socket that listens there, the caller's from now on. -1: it was adopted, and the path is to
 * be bound anew before this turn of the loop is over; or it has been taken. */
int process_take_listener(struct process *p);

/* Lets it start now, instead of at the end of the loop's turn. */
void process_go(struct process *p);

/* It says that it can be played on, and that was heard. */
void process_inited(struct process *p);

/* PREPARED: somebody wants it. */
void process_confirm(struct process *p);

/* It was PREPARED, perhaps by the agent before us, and whatever it is now: nobody has said that he
 * wants it. */
bool process_is_unconfirmed(const struct process *p);

/* SIGTERM now, SIGKILL after grace_ms; grace_ms 0 = SIGKILL now. Through its pidfd. */
void process_end(struct process *p, int64_t grace_ms);

/* A line of at most 4095 bytes to its standard input, with a newline. 0, or ERR_IO: it does not
 * read, or is gone. */
int process_write(struct process *p, struct str line);

/* The last lines of its output / the end of its log. */
void process_tail(const struct process *p, int lines, struct buf *out);

/* OVER: how. */
const struct process_end *process_ended(const struct process *p);

/* OVER, and its binary could not be executed. */
bool process_is_no_program(const struct process *p);

/* OVER, and it never ran or nobody saw its end: a sentence. Else "". */
const char *process_why(const struct process *p);

/* OVER and told: reaped, its files are swept after a while, its port may be given again. */
void process_forget(struct process *p);

/* The same for one that nobody ever wanted: nothing is kept of it, and its number is free. */
void process_discard(struct process *p);
