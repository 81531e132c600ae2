/* The servers of the agent before us. Each has a home, where its shim listens; the shim is asked
 * first. One that was just being started may still listen in the home that was made ahead of time:
 * it answers when it has moved, and one that has no server leaves instead. One without a shim is
 * known by its record: the process is taken back if it is proved to be the one that was started,
 * and is over if not, whoever has its pid now. */
#include "agent/process_parts.h"
#include "base/log.h"
#include "shim/talk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { HELLO_MS = 10000, HELLO_STEP_MS = 100, JOB_MAX = 4 << 20 };

/* Somebody who listens in that home; -1 = nobody. Through /proc, because the path may be longer
 * than an address. */
static int dial(const char *home)
{
    struct sockaddr_un there = {.sun_family = AF_UNIX};
    int folder = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(there.sun_path, sizeof(there.sun_path), "/proc/self/fd/%d/" SHIM_SOCKET, folder);
    bool there_is =
        folder >= 0 && fd >= 0 && connect(fd, (struct sockaddr *)&there, sizeof(there)) == 0;
    if (folder >= 0)
        close(folder);
    if (there_is)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void *read_whole(int fd, size_t *ret_size)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > JOB_MAX)
        return NULL;
    uint8_t *data = xmalloc((size_t)st.st_size);
    if (pread(fd, data, (size_t)st.st_size, 0) != st.st_size) {
        free(data);
        return NULL;
    }
    *ret_size = (size_t)st.st_size;
    return data;
}

/* The job in fd, from offset on, is that of this server; 0 = of one that is not known yet. */
static bool take_job(struct process *p, int fd, size_t offset, int64_t server)
{
    size_t size = 0;
    uint8_t *data = read_whole(fd, &size);
    if (!data || size <= offset) {
        free(data);
        return false;
    }
    memmove(data, data + offset, size - offset);
    struct shim_job *job = (struct shim_job *)(void *)data;
    size -= offset;
    /* A record is cut before the environment. */
    if (size >= sizeof(*job) && offset > 0) {
        job->n_env = 0;
        job->size = (uint32_t)size;
    }
    bool right = size >= sizeof(*job) && job->server > 0 &&
                 (server != 0 ? job->server == server : !processes_find(p->owner, job->server));
    if (!right || !process_job_take(p, job, size)) {
        free(data);
        return false;
    }
    return true;
}

static void take_state(struct process *p, const struct shim_state *state)
{
    bool known = (state->state >= PROCESS_STARTING && state->state <= PROCESS_ENDING) ||
                 state->state == PROCESS_PREPARED;
    p->adopted = true;
    p->unconfirmed = state->state == PROCESS_PREPARED;
    p->shim = *state;
    p->state = known ? (enum process_state)state->state : PROCESS_STARTING;
    p->kill_at_ms = p->state == PROCESS_ENDING ? state->kill_at_ms : 0;
    p->waits_for_go = true; /* for its endpoint, which is bound anew */
    process_claim(p);
    map_put(&p->owner->by_server, (uint64_t)p->spec.server, p);
}

/* ── with a shim ───────────────────────────────────────────────────────────────────────────── */

/* One that only had to wait for its turn must not be taken for one that hangs, because then its
 * game server runs on without it or without us. *left_ms goes down while we run: when the machine
 * stood still, so did the shim. */
static bool await_hello(int fd, int64_t *left_ms, struct shim_message *m, int fds[SHIM_FDS_MAX])
{
    bool came = proc_await(fd, 0);
    for (; !came && *left_ms > 0; *left_ms -= HELLO_STEP_MS)
        came = proc_await(fd, proc_monotonic_ms() + HELLO_STEP_MS);
    return came && talk_receive(fd, m, fds, NULL, MSG_DONTWAIT) > 0 && m->kind == SHIM_HELLO;
}

static bool adopt_from_shim(struct process *p, int fd, int64_t server, int64_t *left_ms)
{
    struct shim_message m;
    int fds[SHIM_FDS_MAX] = {-1, -1, -1, -1};
    if (!await_hello(fd, left_ms, &m, fds) || !take_job(p, fds[FD_JOB], 0, server)) {
        for (int i = 0; i < SHIM_FDS_MAX; i++) {
            if (fds[i] >= 0)
                close(fds[i]);
        }
        return false;
    }
    take_state(p, &m.state);
    shim_connect(p, fd);
    shim_hear(p, &m, fds, NULL);
    return true;
}

/* ── without one ───────────────────────────────────────────────────────────────────────────── */

static void be_over_unseen(struct process *p, const struct shim_state *state)
{
    if (!state->over) {
        p->shim.exit_code = SHIM_EXIT_UNKNOWN;
        snprintf(p->why, sizeof(p->why), "it ended while nobody watched it");
    }
    process_is_over_later(p);
}

static bool adopt_from_record(struct process *p, const char *home, int64_t server)
{
    char path[PATH_MAX + 16];
    struct shim_state state;
    snprintf(path, sizeof(path), "%s/" SHIM_RECORD, home);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool ours = fd >= 0 && pread(fd, &state, sizeof(state), 0) == sizeof(state) &&
                state.version == SHIM_VERSION && take_job(p, fd, sizeof(state), server);
    if (fd >= 0)
        close(fd);
    if (!ours)
        return false;
    take_state(p, &state);
    p->fds[FD_PIDFD] = state.over || state.pid <= 0 ? -1 : proc_pidfd_open((pid_t)state.pid);
    if (!state.over && shim_state_proved(p->owner, &state, p->fds[FD_PIDFD]))
        shim_replace(p);
    else
        be_over_unseen(p, &state);
    return true;
}

/* ── all ───────────────────────────────────────────────────────────────────────────────────── */

/* A home in which nothing was ever started, or nothing that can be understood. */
static void abandon(struct processes *ps, int64_t server, const char *home)
{
    char after[PATH_MAX];
    process_home_after(ps, server, after);
    log_line(LOG_WARN, "server_abandoned", "server=%" PRId64, server);
    rename(home, after);
}

/* What was left in places that nobody has now. */
static void empty_slots(struct processes *ps)
{
    for (int i = 0; i < ps->n_slots; i++) {
        if (!ps->slots[i])
            process_leave(ps, -1 - i, i, NULL);
    }
}

struct found {
    int64_t server; /* 0 = its home has no number yet */
    int fd;
};

/* Only into those that were made ahead of time, or only into the others. False when there is nobody
 * to be asked or to be remembered. */
static bool look_into(struct processes *ps, const char *name, bool ahead, struct found *ret)
{
    char path[PATH_MAX];
    char *end;
    if (ahead != (strncmp(name, PROCESS_HOME_AHEAD, strlen(PROCESS_HOME_AHEAD)) == 0))
        return false;
    ret->server = ahead ? 0 : strtoll(name, &end, 10);
    if (!ahead && (ret->server <= 0 || *end != '\0' || processes_find(ps, ret->server)))
        return false;
    snprintf(path, sizeof(path), "%.*s/servers/%.255s", PATH_MAX - 300, ps->sandbox.folder, name);
    ret->fd = dial(path);
    if (ahead && ret->fd < 0)
        sweep_folder(ps, path); /* of a shim that was killed */
    return !ahead || ret->fd >= 0;
}

static struct found *find_homes(struct processes *ps, bool ahead, size_t *ret_n)
{
    struct buf list = {.data = NULL};
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.*s/servers", PATH_MAX - 16, ps->sandbox.folder);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        struct found one;
        if (look_into(ps, e->d_name, ahead, &one))
            buf_append(&list, &one, sizeof(one));
    }
    if (folder)
        closedir(folder);
    *ret_n = list.len / sizeof(struct found);
    return (struct found *)(void *)list.data;
}

static int64_t highest_in(const struct processes *ps, const char *name)
{
    char path[PATH_MAX];
    int64_t highest = 0;
    snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - 16, ps->sandbox.folder, name);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        int64_t server = strtoll(e->d_name, NULL, 10);
        highest = server > highest ? server : highest;
    }
    if (folder)
        closedir(folder);
    return highest;
}

static void adopt(struct processes *ps, const struct found *one, int64_t *left_ms)
{
    char home[PATH_MAX];
    process_home(ps, one->server, home);
    struct process *p = process_new(ps);
    if (one->fd >= 0 && adopt_from_shim(p, one->fd, one->server, left_ms))
        return;
    if (one->fd >= 0)
        close(one->fd);
    if (one->server > 0 && adopt_from_record(p, home, one->server))
        return;
    process_free(p);
    if (one->server > 0)
        abandon(ps, one->server, home);
}

/* All are asked before the first answer is awaited, so that a few that hang cost no more than one.
 */
static void adopt_all(struct processes *ps, bool ahead)
{
    size_t n = 0;
    struct found *all = find_homes(ps, ahead, &n);
    int64_t left_ms = HELLO_MS;
    for (size_t i = 0; i < n; i++)
        adopt(ps, &all[i], &left_ms);
    free(all);
}

void processes_adopt(struct processes *ps)
{
    /* One at a time, because a shim that is asked twice answers the second time only; and once
     * more, because a home that gets its number while we look may be seen in neither place. */
    adopt_all(ps, false);
    adopt_all(ps, true);
    adopt_all(ps, false);
    int64_t running = highest_in(ps, "servers");
    int64_t ended = highest_in(ps, "ended");
    ps->highest = running > ended ? running : ended;
    empty_slots(ps);
}
