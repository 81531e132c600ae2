#include "agent/process_parts.h"
#include "base/err.h"
#include "base/full.h"
#include "base/log.h"
#include "base/plant.h"
#include "shim/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    REPLACE_AGAIN_MS = 1000,
    HELLO_MS = 50,
    SPARES_MS = 20, /* after one was taken: its game server starts first */
    GO_NS = 20 * 1000,
};

/* ── the link ──────────────────────────────────────────────────────────────────────────────── */

static void on_link_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* libuv must not see the descriptor again once it is closed, so it lets go first. */
void shim_drop_link(struct process *p)
{
    struct shim_link *l = p->link;
    if (!l)
        return;
    p->link = NULL;
    l->process = NULL;
    uv_close((uv_handle_t *)&l->poll, on_link_closed);
    close(l->fd);
}

/* A shim was killed, perhaps before its home became that of a server. */
static void sweep_ahead(struct processes *ps, int64_t number)
{
    char home[PATH_MAX];
    process_home_ahead(ps, number, home);
    if (number > 0)
        sweep_folder(ps, home);
}

static void let_go(struct process *p)
{
    shim_drop_link(p);
    sweep_ahead(p->owner, p->home_ahead);
    p->home_ahead = 0;
}

static void say_not_started(struct process *p)
{
    snprintf(p->why, sizeof(p->why), "it was not started: %s",
             p->state == PROCESS_ENDING ? "it was to end before" : "its shim has ended");
}

/* One that never said who its game server is may have begun it all the same. That is our child now,
 * because we are a subreaper, and ends; its places are free when it is reaped. */
void shim_has_ended(struct process *p)
{
    pid_t shim = p->shim_pid;
    p->shim_pid = 0;
    shim_await_hello(p); /* what it has said comes first; nobody is waited for */
    if (p->shim.pid != 0 || p->state == PROCESS_OVER)
        return;
    pid_t left = proc_child_in_session(shim);
    let_go(p);
    say_not_started(p);
    if (left == 0) {
        process_is_over_later(p);
        return;
    }
    p->shim.pid = left;
    p->shim.started_ms = proc_monotonic_ms();
    kill(left, SIGKILL);
}

/* A shim that is gone before it said how its game server ended. */
static void lose_shim(struct process *p)
{
    let_go(p);
    if (p->state == PROCESS_OVER)
        return;
    if (p->shim.pid == 0 && p->shim_pid > 0) {
        kill(p->shim_pid, SIGKILL); /* it is our child; see shim_has_ended for what is left */
        return;
    }
    if (p->shim.pid == 0) {
        say_not_started(p);
        process_is_over(p);
        return;
    }
    log_line(LOG_WARN, "shim_gone", "server=%" PRId64 " pid=%" PRId64, p->spec.server, p->shim.pid);
    shim_replace(p);
}

static void on_link(uv_poll_t *handle, int status, int events)
{
    struct shim_link *l = handle->data;
    struct shim_message m;
    int fds[SHIM_FDS_MAX];
    char tail[SHIM_TAIL_MAX];
    (void)status;
    (void)events;
    while (l->process) {
        int came = talk_receive(l->fd, &m, fds, tail, MSG_DONTWAIT);
        if (came < 0 && errno == EAGAIN)
            return;
        if (came > 0)
            shim_hear(l->process, &m, fds, tail);
        else
            lose_shim(l->process);
    }
}

void shim_connect(struct process *p, int fd)
{
    struct shim_link *l = xcalloc(1, sizeof(*l));
    *l = (struct shim_link){.fd = fd, .process = p};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    uv_poll_init(&p->owner->loop->uv, &l->poll, fd);
    l->poll.data = l;
    p->link = l;
    uv_poll_start(&l->poll, UV_READABLE, on_link);
}

static void say(struct process *p, enum shim_kind kind, uint32_t fds)
{
    struct shim_message m = {.version = SHIM_VERSION, .kind = kind, .fds = fds, .state = p->shim};
    m.state.version = SHIM_VERSION;
    m.state.state = (int32_t)p->state;
    m.state.kill_at_ms = p->kill_at_ms;
    /* What cannot be sent is lost with the link, and on_link will see that. */
    if (p->link)
        (void)talk_send(p->link->fd, &m, p->fds, NULL);
}

/* The kernel takes whoever writes to a socket for one that goes to sleep next, and makes the reader
 * wait for this very processor. There is more to do in this turn, so we do sleep, as briefly as can
 * be: then the child of the shim, which becomes the game server, begins at once. */
void shim_go(struct process *p)
{
    const struct timespec moment = {.tv_nsec = GO_NS};
    say(p, SHIM_GO, SHIM_FD_JOB);
    (void)nanosleep(&moment, NULL);
}

void shim_note(struct process *p)
{
    say(p, SHIM_NOTE, 0);
}

void shim_mark(struct process *p)
{
    say(p, SHIM_MARK, 0);
}

void shim_bye(struct process *p)
{
    say(p, SHIM_BYE, 0);
}

/* ── starting one ──────────────────────────────────────────────────────────────────────────── */

/* Nothing of ours but two descriptors. Signals are reset over there. */
static int run_shim(const struct processes *ps, int control, char *home, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    char title[SHIM_TITLE_MAX + 1];
    char *const argv[] = {"muster-shim", title, home, NULL};
    char *const env[] = {NULL};
    memset(title, ' ', SHIM_TITLE_MAX);
    title[SHIM_TITLE_MAX] = '\0';
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, control, SHIM_CONTROL_FD);
    posix_spawn_file_actions_adddup2(&files, ps->lock, SHIM_LOCK_FD);
    int err = posix_spawn(ret, ps->shim, &files, NULL, argv, env);
    posix_spawn_file_actions_destroy(&files);
    return err;
}

/* One that is wanted at once makes its home when its game server has been started. */
static int new_shim(struct processes *ps, bool ahead, struct spare_shim *ret,
                    char why[PROCESS_WHY_MAX])
{
    int pair[2];
    char home[PATH_MAX];
    ret->home = ahead ? ++ps->homes_ahead : 0;
    process_home_ahead(ps, ret->home, home);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return process_refuse(why, ERR_IO, "cannot start a shim: %s", strerror(errno));
    int err = run_shim(ps, pair[1], ahead ? home : NULL, &ret->pid);
    close(pair[1]);
    if (err != 0) {
        close(pair[0]);
        return process_refuse(why, ERR_IO, "cannot start the shim %.150s: %s", ps->shim,
                              strerror(err));
    }
    ret->fd = pair[0];
    return 0;
}

/* A shim that waits says nothing, so whatever there is to read is its end. */
static bool is_waiting(const struct spare_shim *spare)
{
    return !proc_await(spare->fd, 0);
}

static bool take_spare(struct processes *ps, struct spare_shim *ret)
{
    while (ps->n_spares > 0) {
        *ret = ps->spares[--ps->n_spares];
        if (ps->spares_at_ms == 0)
            ps->spares_at_ms = proc_monotonic_ms() + SPARES_MS;
        processes_arm(ps);
        if (is_waiting(ret))
            return true;
        close(ret->fd);
        sweep_ahead(ps, ret->home);
    }
    return false;
}

bool shim_lay_in(struct processes *ps)
{
    char why[PROCESS_WHY_MAX];
    if (ps->n_spares == SPARE_SHIMS || new_shim(ps, true, &ps->spares[ps->n_spares], why) != 0)
        return false;
    return ++ps->n_spares < SPARE_SHIMS;
}

void shim_forget_spare(struct processes *ps, pid_t pid)
{
    for (int i = 0; i < ps->n_spares; i++) {
        if (ps->spares[i].pid != pid)
            continue;
        close(ps->spares[i].fd);
        sweep_ahead(ps, ps->spares[i].home);
        ps->spares[i] = ps->spares[--ps->n_spares];
        /* One that cannot live is not started all the time, also while others are laid in. */
        ps->spares_at_ms = proc_monotonic_ms() + REPLACE_AGAIN_MS;
        processes_arm(ps);
        return;
    }
}

void shim_drop_spares(struct processes *ps)
{
    while (ps->n_spares > 0)
        close(ps->spares[--ps->n_spares].fd);
}

int shim_start(struct process *p, char why[PROCESS_WHY_MAX])
{
    struct spare_shim shim = {.fd = -1, .pid = 0};
    if (p->fds[FD_JOB] < 0)
        p->fds[FD_JOB] = process_job_file(p);
    if (p->fds[FD_JOB] < 0)
        return process_refuse(why, ERR_IO, "cannot write a job: %s", full_reason(errno));
    if (!take_spare(p->owner, &shim)) {
        int err = new_shim(p->owner, false, &shim, why);
        if (err != 0)
            return err;
    }
    p->shim_pid = shim.pid;
    p->home_ahead = shim.home;
    shim_connect(p, shim.fd);
    return 0;
}

void shim_replace(struct process *p)
{
    char why[PROCESS_WHY_MAX];
    int64_t now_ms = proc_monotonic_ms();
    if (p->replace_at_ms > now_ms) /* the one before lasted less than that */
        return;
    p->replace_at_ms = now_ms + REPLACE_AGAIN_MS;
    processes_arm(p->owner);
    if (p->fds[FD_PIDFD] < 0)
        return;
    if (shim_start(p, why) != 0) {
        char quoted[LOG_QUOTE_MAX + 8];
        log_line(LOG_WARN, "shim_not_replaced", "server=%" PRId64 " why=%s", p->spec.server,
                 log_quote(quoted, str_of(why)));
        return;
    }
    uint32_t fds = 0;
    for (int i = 0; i < SHIM_FDS_MAX; i++)
        fds |= p->fds[i] >= 0 ? 1U << i : 0;
    say(p, SHIM_ADOPT, fds);
}

/* ── what it says ──────────────────────────────────────────────────────────────────────────── */

bool shim_state_proved(const struct processes *ps, const struct shim_state *state, int pidfd)
{
    if (PLANTED(kill_by_pid))
        return state->pid > 0;
    return pidfd >= 0 && state->pid > 0 && state->start_ticks > 0 &&
           strncmp(state->boot_id, ps->boot_id, sizeof(state->boot_id)) == 0 &&
           proc_pid_of(pidfd) == state->pid &&
           proc_start_ticks((pid_t)state->pid) == state->start_ticks;
}

static const char *const steps[] = {
    [SHIM_STEP_NONE] = "start",
    [SHIM_STEP_START] = "start",
    [SHIM_STEP_CGROUP] = "put into its cgroup",
    [SHIM_STEP_LIMIT] = "limit",
    [SHIM_STEP_USER] = "take privileges from",
    [SHIM_STEP_FOLDER] = "enter the folder of",
    [SHIM_STEP_EXEC] = "execute",
};

/* Whoever is told must be able to mend it: of what a user may not do, which user it is. */
void shim_say_refused(struct process *p)
{
    const struct shim_state *state = &p->shim;
    uint32_t uid = p->job->uid;
    bool known = state->failed_step > SHIM_STEP_NONE && state->failed_step <= SHIM_STEP_EXEC;
    const char *step = known ? steps[state->failed_step] : "start";
    if (state->failed_errno != EACCES || uid == SHIM_STAY)
        snprintf(p->why, sizeof(p->why), "cannot %s %.150s: %s", step, p->spec.binary,
                 strerror(state->failed_errno));
    else if (state->failed_step == SHIM_STEP_FOLDER && p->spec.folder)
        snprintf(p->why, sizeof(p->why),
                 "cannot %s %.50s: the user %" PRIu32 " may not enter %.90s", step, p->spec.binary,
                 uid, p->spec.folder);
    else
        snprintf(p->why, sizeof(p->why),
                 "cannot %s %.120s: the user %" PRIu32
                 " may not read and execute it, or not enter a folder above it",
                 step, p->spec.binary, uid);
}

/* Takes how it ended; the caller tells. False when that is known already. */
static bool hear_over(struct process *p, const struct shim_message *m, const char *tail)
{
    if (p->state == PROCESS_OVER)
        return false;
    p->shim = m->state;
    buf_clear(&p->tail);
    buf_append(&p->tail, tail, m->tail_len);
    return true;
}

/* A shim that stands for a process which is not the one it names is not believed: without a pidfd
 * nothing is ever signalled. */
static void hear_hello(struct process *p, const struct shim_message *m, int fds[SHIM_FDS_MAX])
{
    if (p->state == PROCESS_OVER)
        return;
    bool first = p->shim.pid == 0;
    p->shim = m->state;
    for (int i = 0; i < SHIM_FDS_MAX; i++) {
        if (fds[i] < 0)
            continue;
        if (p->fds[i] >= 0)
            close(p->fds[i]);
        p->fds[i] = fds[i];
        fds[i] = -1;
    }
    if (m->state.over)
        return; /* how is in the next message */
    if (p->fds[FD_PIDFD] >= 0 && !shim_state_proved(p->owner, &m->state, p->fds[FD_PIDFD]) &&
        !proc_is_over(p->fds[FD_PIDFD])) {
        log_line(LOG_ERROR, "process_not_proved", "server=%" PRId64 " pid=%" PRId64, p->spec.server,
                 m->state.pid);
        close(p->fds[FD_PIDFD]);
        p->fds[FD_PIDFD] = -1;
    }
    if (p->state == PROCESS_ENDING && first) /* asked for while it was being started */
        process_signal(p, p->kill_at_ms > 0 ? SIGTERM : SIGKILL);
    if (first && p->owner->ops.begun)
        p->owner->ops.begun(p->owner->ops.user, p);
}

void shim_hear(struct process *p, const struct shim_message *m, int fds[SHIM_FDS_MAX],
               const char *tail)
{
    if (m->kind == SHIM_HELLO)
        hear_hello(p, m, fds);
    for (int i = 0; i < SHIM_FDS_MAX; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    if (m->kind == SHIM_OVER && hear_over(p, m, tail))
        process_is_over(p);
}

/* The game server has been quicker than the word of its shim. */
void shim_await_hello(struct process *p)
{
    struct shim_message m;
    int fds[SHIM_FDS_MAX];
    char tail[SHIM_TAIL_MAX];
    if (p->shim.pid != 0 || !p->link || !proc_await(p->link->fd, proc_monotonic_ms() + HELLO_MS) ||
        talk_receive(p->link->fd, &m, fds, tail, MSG_DONTWAIT) <= 0)
        return;
    if (m.kind == SHIM_OVER && hear_over(p, &m, tail))
        process_is_over_later(p);
    else
        shim_hear(p, &m, fds, tail);
}
