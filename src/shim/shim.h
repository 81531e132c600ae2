/* What an agent and a shim tell each other. A shim outlives the agent that started it, so the two
 * may be of different builds: everything here is append-only, and a message of another version than
 * ours is answered by leaving the other alone. Shared by src/shim and src/agent; owns nothing.
 *
 *   agent                                      shim (fd 3: a seqpacket socket)
 *     ├─ posix_spawn, perhaps long before ─────▶ new session; begins a child, which waits
 *     ├─ GO + job ─────────────────────────────▶ the child becomes the game server
 *     ◀────────── HELLO + pidfd, output, input, job
 *     │                                          makes its home, unless it has, and listens there
 *     ├─ NOTE (state) ─────────────────────────▶ kept for the next agent
 *     ├─ MARK (state) ─────────────────────────▶ the same, but nothing is written for it alone
 *     ◀──────────────────── OVER + last output   the game server and all it had started are gone
 *     ├─ BYE ──────────────────────────────────▶ leaves
 *
 * Instead of GO there may be ADOPT + pidfd, output, input, job: the shim before was killed. An
 * agent that connects to the socket gets HELLO, and OVER when it is. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    SHIM_VERSION = 1,
    SHIM_CONTROL_FD = 3,
    SHIM_LOCK_FD = 4, /* the agent's lock of its folder: held until the next agent can find us */
    SHIM_PORTS_MAX = 4,
    SHIM_TAIL_MAX = 8192, /* of the last output, with OVER */
    SHIM_BOOT_MAX = 40,
    SHIM_TITLE_MAX = 20, /* spaces in argv[1], which become the server's number */
};

#define SHIM_SOCKET "shim"     /* where it listens, in its home */
#define SHIM_RECORD "record"   /* a struct shim_state, then the job without its environment */
#define SHIM_LOG "log"         /* the newest; then log.1, log.2, … */
#define SHIM_STAY UINT32_C(~0) /* the uid of the agent */

enum shim_kind { SHIM_GO = 1, SHIM_ADOPT, SHIM_NOTE, SHIM_BYE, SHIM_HELLO, SHIM_OVER, SHIM_MARK };

/* Descriptors that come with a message, in this order. */
enum { SHIM_FD_PIDFD = 1, SHIM_FD_OUT = 2, SHIM_FD_IN = 4, SHIM_FD_JOB = 8, SHIM_FDS_MAX = 4 };

/* What could not be done on the way to the game server's main(). */
enum shim_step {
    SHIM_STEP_NONE,
    SHIM_STEP_START,
    SHIM_STEP_CGROUP,
    SHIM_STEP_LIMIT,
    SHIM_STEP_USER,
    SHIM_STEP_FOLDER,
    SHIM_STEP_EXEC,
};

enum { SHIM_EXIT_UNKNOWN = -1 };

struct shim_state {
    uint32_t version;
    int32_t state; /* the agent's word for it, kept for the next agent */
    int64_t kill_at_ms;
    char boot_id[SHIM_BOOT_MAX];
    int64_t pid; /* 0 = there is none (yet) */
    uint64_t start_ticks;
    int64_t since_ms;   /* wall clock */
    int64_t started_ms; /* monotonic */
    uint32_t over;
    uint32_t failed_step; /* enum shim_step: it was never executed, and errno why */
    int32_t failed_errno;
    int32_t exit_code; /* SHIM_EXIT_UNKNOWN: nobody could tell us */
    int32_t exit_signal;
    uint32_t log_failed; /* the end of its output is not in the log, only in the tail */
    int64_t peak_memory;
    int64_t run_ms;
    uint64_t dropped; /* bytes of output that were not kept */
};

/* Texts, each closed by NUL, follow: home, working folder, cgroup ("" = none), the n_argv of the
 * command line, the n_env of the environment. */
struct shim_job {
    uint32_t version;
    uint32_t size; /* of all, with the texts */
    int64_t server;
    int64_t session;
    int64_t spawn_timeout_ms;
    int64_t status_period_ms;
    int64_t log_bytes;
    int64_t files, processes, file_bytes; /* rlimits; 0 = as ours */
    uint32_t log_files;
    uint32_t uid; /* and gid; SHIM_STAY = as ours */
    uint32_t slot;
    uint32_t endpoint_uri;
    uint32_t own_folder; /* the working folder is its scratch, no folder was asked for */
    uint32_t n_argv;
    uint32_t n_env;
    uint16_t n_ports;
    uint16_t ports[SHIM_PORTS_MAX];
};

struct shim_message {
    uint32_t version;
    uint32_t kind;
    uint32_t fds; /* which came along */
    uint32_t tail_len;
    struct shim_state state;
};
