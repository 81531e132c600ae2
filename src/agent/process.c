#include "agent/process_parts.h"

#include "base/err.h"
#include "base/log.h"
#include "base/plant.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    SWEEP_MS = 60000,
    LOG_BYTES = 8 << 20,
    LOG_FILES = 4,
    LOCK_MS = 2000,
    LAY_IN_MS = 2,
    ASK_AGAIN_MS = 20,
};

int process_refuse(char why[PROCESS_WHY_MAX], int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, PROCESS_WHY_MAX, format, args);
    va_end(args);
    return err;
}

/* ── one of them ───────────────────────────────────────────────────────────────────────────── */

struct process *process_new(struct processes *ps)
{
    struct process *p = xcalloc(1, sizeof(*p));
    p->owner = ps;
    p->slot = -1;
    p->listener = -1;
    for (int i = 0; i < SHIM_FDS_MAX; i++)
        p->fds[i] = -1;
    return p;
}

void process_close_fds(struct process *p)
{
    for (int i = 0; i < SHIM_FDS_MAX; i++) {
        if (p->fds[i] >= 0)
            close(p->fds[i]);
        p->fds[i] = -1;
    }
}

void process_free(struct process *p)
{
    shim_drop_link(p);
    process_close_fds(p);
    if (p->listener >= 0)
        close(p->listener);
    buf_done(&p->tail);
    free(p->job);
    free(p->texts);
    free(p);
}

void process_home(const struct processes *ps, int64_t server, char ret[PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%.*s/servers/%" PRId64, PATH_MAX - 64, ps->sandbox.folder, server);
}

void process_home_after(const struct processes *ps, int64_t server, char ret[PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%.*s/ended/%" PRId64, PATH_MAX - 64, ps->sandbox.folder, server);
}

void process_home_ahead(const struct processes *ps, int64_t number, char ret[PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%.*s/servers/" PROCESS_HOME_AHEAD "%d-%" PRId64, PATH_MAX - 64,
             ps->sandbox.folder, (int)getpid(), number);
}

void process_claim(struct process *p)
{
    for (int i = 0; i < p->job->n_ports; i++)
        ports_claim(&p->owner->ports, p->job->ports[i]);
    p->slot = p->job->slot < (uint32_t)p->owner->n_slots ? (int)p->job->slot : -1;
    if (p->slot >= 0)
        p->owner->slots[p->slot] = 1;
}

void process_signal(struct process *p, int sig)
{
    if (PLANTED(kill_by_pid) && p->shim.pid > 0)
        (void)kill((pid_t)p->shim.pid, sig);
    else if (p->fds[FD_PIDFD] >= 0)
        (void)proc_pidfd_signal(p->fds[FD_PIDFD], sig);
}

/* ── ends ──────────────────────────────────────────────────────────────────────────────────── */

static void take_end(struct process *p)
{
    p->state = PROCESS_OVER;
    p->kill_at_ms = p->replace_at_ms = 0;
    if (p->shim.failed_step != SHIM_STEP_NONE)
        shim_say_refused(p);
    p->end = (struct process_end){.ran = p->shim.pid != 0,
                                  .exit_code = p->shim.exit_code,
                                  .exit_signal = p->shim.exit_signal,
                                  .peak_memory = p->shim.peak_memory,
                                  .run_ms = p->shim.run_ms,
                                  .dropped_bytes = (int64_t)p->shim.dropped};
    process_close_fds(p);
}

void process_is_over(struct process *p)
{
    take_end(p);
    p->owner->ops.over(p->owner->ops.user, p);
}

void process_is_over_later(struct process *p)
{
    take_end(p);
    p->waits_for_told = true;
    processes_wake_before_wait(p->owner);
}

/* Children of ours are shims; game servers whose shim was killed, which fell to us because we are a
 * subreaper; and what those had started. Only of the second kind anybody wants to know. */
static void reap(struct processes *ps)
{
    int code = 0;
    int sig = 0;
    int64_t peak = 0;
    pid_t pid;
    while ((pid = proc_reap(-1, &code, &sig, &peak)) > 0) {
        struct process *ended = NULL;
        size_t at = 0;
        shim_forget_spare(ps, pid);
        for (struct process *p; (p = processes_next(ps, &at));) {
            if (p->shim_pid == pid)
                shim_has_ended(p);
            if (p->shim.pid == pid && p->state != PROCESS_OVER)
                ended = p;
        }
        if (!ended)
            continue;
        ended->shim.exit_code = code;
        ended->shim.exit_signal = sig;
        ended->shim.peak_memory = peak;
        ended->shim.run_ms = proc_monotonic_ms() - ended->shim.started_ms;
        process_is_over(ended);
    }
}

static void on_child(uv_signal_t *handle, int signum)
{
    (void)signum;
    reap(handle->data);
}

/* ── deadlines ─────────────────────────────────────────────────────────────────────────────── */

static void on_clock(uv_timer_t *handle);

static int64_t sooner(int64_t a_ms, int64_t b_ms)
{
    return b_ms > 0 && b_ms < a_ms ? b_ms : a_ms;
}

void processes_arm(struct processes *ps)
{
    int64_t next_ms = sooner(ps->sweep_at_ms, ps->spares_at_ms);
    size_t at = 0;
    for (struct process *p; (p = processes_next(ps, &at));) {
        if (p->state == PROCESS_OVER)
            continue;
        next_ms = sooner(next_ms, p->kill_at_ms);
        next_ms = p->link ? next_ms : sooner(next_ms, p->replace_at_ms);
    }
    int64_t left_ms = next_ms - proc_monotonic_ms();
    uv_update_time(&ps->loop->uv);
    uv_timer_start(&ps->clock, on_clock, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
}

/* A shim that was not told to start its game server is our own child, not reaped, and goes instead.
 * One that was, and has not said who that is, is waited for: it may run already. */
static void kill_late(struct process *p)
{
    bool told = p->shim.pid == 0 && !p->waits_for_go && p->link;
    p->kill_at_ms = told ? proc_monotonic_ms() + ASK_AGAIN_MS : 0;
    if (p->shim.pid == 0 && p->shim_pid > 0 && !told)
        kill(p->shim_pid, SIGKILL);
    process_signal(p, SIGKILL);
}

/* What those who come next would wait for. One of each at a time: they take a while, and there are
 * others to be heard. */
static void lay_in(struct processes *ps, int64_t now_ms)
{
    int n = 0;
    bool more = shim_lay_in(ps);
    more = endpoints_lay_in(&ps->endpoints) || more;
    ports_lay_in(&ps->ports);
    ps->spares_at_ms = more ? now_ms + LAY_IN_MS : 0;
    for (int i = 0; i < ps->n_slots && n < SPARE_SHIMS; i++) {
        if (ps->slots[i])
            continue;
        sandbox_prepare(&ps->sandbox, i);
        n++;
    }
}

static void on_clock(uv_timer_t *handle)
{
    struct processes *ps = handle->data;
    int64_t now_ms = proc_monotonic_ms();
    size_t at = 0;
    for (struct process *p; (p = processes_next(ps, &at));) {
        if (p->state == PROCESS_OVER)
            continue;
        if (p->kill_at_ms > 0 && p->kill_at_ms <= now_ms)
            kill_late(p);
        if (!p->link && p->replace_at_ms > 0 && p->replace_at_ms <= now_ms)
            shim_replace(p);
    }
    if (ps->spares_at_ms > 0 && ps->spares_at_ms <= now_ms)
        lay_in(ps, now_ms);
    if (ps->sweep_at_ms <= now_ms) {
        reap(ps); /* also those who ended before we listened */
        sweep_ended(ps);
        ps->sweep_at_ms = now_ms + SWEEP_MS;
    }
    processes_arm(ps);
}

/* ── the end of a turn ─────────────────────────────────────────────────────────────────────── */

static struct process *next_to_tell(const struct processes *ps)
{
    size_t at = 0;
    struct process *p = processes_next(ps, &at);
    while (p && !p->waits_for_told)
        p = processes_next(ps, &at);
    return p;
}

/* The endpoint of one that was adopted has been bound anew by now. */
void process_go(struct process *p)
{
    if (!p->waits_for_go)
        return;
    p->waits_for_go = false;
    if (p->adopted)
        sandbox_let_in(p->endpoint);
    else
        shim_go(p);
}

int process_take_listener(struct process *p)
{
    int fd = p->listener;
    p->listener = -1;
    return fd;
}

static void on_before_wait(uv_prepare_t *handle)
{
    struct processes *ps = handle->data;
    size_t at = 0;
    uv_prepare_stop(handle);
    for (struct process *p; (p = processes_next(ps, &at));)
        process_go(p);
    for (struct process *p; (p = next_to_tell(ps));) {
        p->waits_for_told = false;
        ps->ops.over(ps->ops.user, p);
    }
}

void processes_wake_before_wait(struct processes *ps)
{
    uv_prepare_start(&ps->before_wait, on_before_wait);
}

/* ── all of them ───────────────────────────────────────────────────────────────────────────── */

/* A shim that the agent before us was just starting holds the lock until it can be found. */
static bool lock_within(int fd, int64_t limit_ms)
{
    int64_t until_ms = proc_monotonic_ms() + limit_ms;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (proc_monotonic_ms() >= until_ms)
            return false;
        poll(NULL, 0, 1);
    }
    return true;
}

/* Above the descriptors that shims are given, one of which it becomes. -1 with errno. */
static int open_lock(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    int lock = fcntl(fd, F_DUPFD_CLOEXEC, SHIM_LOCK_FD + 1);
    int why = errno;
    close(fd);
    errno = why;
    return lock;
}

static int make_folders(struct processes *ps, const char *folder, char why[PROCESS_WHY_MAX])
{
    static const char *const names[] = {"", "/servers", "/ended"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", folder, names[i]);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return process_refuse(why, ERR_IO, "cannot make the folder %.180s: %s", path,
                                  strerror(errno));
    }
    snprintf(path, sizeof(path), "%s/processes.lock", folder);
    ps->lock = open_lock(path);
    if (ps->lock < 0)
        return process_refuse(why, ERR_IO, "cannot open %.180s: %s", path, strerror(errno));
    if (!lock_within(ps->lock, LOCK_MS))
        return process_refuse(why, ERR_LOCKED, "another agent uses the folder %.180s", folder);
    return 0;
}

static int check_world(struct processes *ps, char why[PROCESS_WHY_MAX])
{
    int pidfd = proc_pidfd_open(getpid());
    proc_boot_id(ps->boot_id);
    if (pidfd < 0 || ps->boot_id[0] == '\0') {
        if (pidfd >= 0)
            close(pidfd);
        return process_refuse(why, ERR_IO,
                              "this kernel gives us no safe way to signal processes (pidfd, Linux "
                              "5.4 or newer, and /proc)");
    }
    close(pidfd);
    if (access(ps->shim, X_OK) < 0)
        return process_refuse(why, ERR_IO, "cannot execute the shim %.180s: %s", ps->shim,
                              strerror(errno));
    /* Game servers whose shim is killed fall to us instead of to init. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return process_refuse(why, ERR_IO, "cannot become a subreaper: %s", strerror(errno));
    signal(SIGPIPE, SIG_IGN); /* a game server may close its standard input */
    return 0;
}

static void start_handles(struct processes *ps)
{
    uv_signal_init(&ps->loop->uv, &ps->children);
    uv_timer_init(&ps->loop->uv, &ps->clock);
    uv_prepare_init(&ps->loop->uv, &ps->before_wait);
    ps->children.data = ps->clock.data = ps->before_wait.data = ps;
    ps->open_handles = 3;
    uv_signal_start(&ps->children, on_child, SIGCHLD);
    uv_unref((uv_handle_t *)&ps->children);
    ps->sweep_at_ms = ps->spares_at_ms = proc_monotonic_ms();
    ps->homes_ahead = ps->sweep_at_ms * 1000; /* an agent before us may have had our pid */
}

static void processes_free(struct processes *ps)
{
    size_t at = 0;
    for (struct process *p; (p = processes_next(ps, &at));)
        process_free(p);
    map_done(&ps->by_server);
    ports_done(&ps->ports);
    if (ps->lock >= 0)
        close(ps->lock);
    free(ps->slots);
    free(ps->shim);
    free(ps);
}

int processes_open(struct loop *loop, const char *folder, const char *shim,
                   const struct process_limits *limits, const struct process_ops *ops,
                   struct processes **ret, char why[PROCESS_WHY_MAX])
{
    struct processes *ps = xcalloc(1, sizeof(*ps));
    *ps = (struct processes){.loop = loop, .ops = *ops, .limits = *limits, .lock = -1};
    ps->shim = xstrdup(shim);
    ps->limits.log_bytes = limits->log_bytes > 0 ? limits->log_bytes : LOG_BYTES;
    ps->limits.log_files = limits->log_files > 0 ? limits->log_files : LOG_FILES;
    ps->n_slots = limits->slots > 0 ? limits->slots : limits->port_last - limits->port_first + 1;
    int err = limits->port_first == 0 || limits->port_first > limits->port_last
                  ? process_refuse(why, ERR_BAD_ARGUMENT, "%d-%d is no range of ports",
                                   limits->port_first, limits->port_last)
                  : make_folders(ps, folder, why);
    if (err == 0)
        err = check_world(ps, why);
    if (err == 0)
        err = sandbox_open(&ps->sandbox, folder, limits, why);
    if (err != 0) {
        processes_free(ps);
        return err;
    }
    ps->slots = xcalloc((size_t)ps->n_slots, 1);
    endpoints_init(&ps->endpoints, ps->sandbox.sockets);
    ports_init(&ps->ports, limits->port_first, limits->port_last);
    start_handles(ps);
    processes_adopt(ps);
    processes_wake_before_wait(ps);
    processes_arm(ps);
    *ret = ps;
    return 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct processes *ps = handle->data;
    if (--ps->open_handles == 0)
        free(ps);
}

void processes_close(struct processes *ps)
{
    if (!ps)
        return;
    size_t at = 0;
    for (struct process *p; (p = processes_next(ps, &at));)
        process_free(p);
    map_done(&ps->by_server);
    ports_done(&ps->ports);
    shim_drop_spares(ps);
    endpoints_done(&ps->endpoints);
    close(ps->lock);
    free(ps->slots);
    free(ps->shim);
    uv_close((uv_handle_t *)&ps->children, on_handle_closed);
    uv_close((uv_handle_t *)&ps->clock, on_handle_closed);
    uv_close((uv_handle_t *)&ps->before_wait, on_handle_closed);
}

struct process *processes_find(const struct processes *ps, int64_t server)
{
    return map_get(&ps->by_server, (uint64_t)server);
}

struct process *processes_next(const struct processes *ps, size_t *at)
{
    return map_next(&ps->by_server, at);
}

size_t processes_count(const struct processes *ps)
{
    return ps->by_server.len;
}

const char *processes_missing(const struct processes *ps)
{
    return ps->sandbox.missing;
}

/* ── starting one ──────────────────────────────────────────────────────────────────────────── */

/* The plain mistakes are told at once; what only exec can find out comes as its end. */
static int check_binary(const struct process_spec *spec, char why[PROCESS_WHY_MAX])
{
    char path[PATH_MAX];
    struct stat st;
    bool whole = spec->binary[0] == '/' || !spec->folder;
    int n = snprintf(path, sizeof(path), "%s%s%s", whole ? "" : spec->folder, whole ? "" : "/",
                     spec->binary);
    if (n >= (int)sizeof(path) || stat(path, &st) < 0)
        return process_refuse(why, ERR_SPAWN_FAILED, "cannot execute %.180s: %s", path,
                              n >= (int)sizeof(path) ? "its name is too long" : strerror(errno));
    if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
        return process_refuse(why, ERR_SPAWN_FAILED, "cannot execute %.180s: it is not %s", path,
                              S_ISREG(st.st_mode) ? "executable" : "a file");
    return 0;
}

static int check_spec(struct processes *ps, const struct process_spec *spec,
                      char why[PROCESS_WHY_MAX])
{
    char after[PATH_MAX];
    process_home_after(ps, spec->server, after);
    if (spec->server <= ps->highest && access(after, F_OK) == 0)
        return process_refuse(why, ERR_ALREADY_OVER, "server %" PRId64 " has ended already",
                              spec->server);
    if (spec->n_ports < 1 || spec->n_ports > PROCESS_PORTS_MAX)
        return process_refuse(why, ERR_BAD_ARGUMENT, "a server has 1 to %d ports, not %d",
                              PROCESS_PORTS_MAX, spec->n_ports);
    return check_binary(spec, why);
}

static int take_slot(struct process *p, char why[PROCESS_WHY_MAX])
{
    struct processes *ps = p->owner;
    for (int i = 0; i < ps->n_slots; i++) {
        if (ps->slots[i])
            continue;
        ps->slots[i] = 1;
        p->slot = i;
        return 0;
    }
    return process_refuse(why, ERR_NO_PLACE, "all %d places of this host are taken", ps->n_slots);
}

static void give_slot(struct process *p)
{
    if (p->slot >= 0)
        p->owner->slots[p->slot] = 0;
    p->slot = -1;
}

/* A game server that came before somebody listens would wait for ZeroMQ's next try, a tenth of a
 * second. Whoever listens need not speak yet. */
static int listen_for(struct process *p, const struct sandbox_place *place,
                      char why[PROCESS_WHY_MAX])
{
    p->listener = endpoints_listen(&p->owner->endpoints, place->endpoint);
    if (p->listener >= 0 &&
        (place->uid == (uid_t)-1 || lchown(place->endpoint, (uid_t)-1, place->uid) == 0))
        return 0;
    return process_refuse(why, ERR_IO, "cannot listen at %.150s: %s", place->endpoint,
                          strerror(errno));
}

/* Everything it needs before its shim can be told to go. */
static int furnish(struct process *p, const struct process_spec *spec, const uint16_t *ports,
                   char why[PROCESS_WHY_MAX])
{
    struct sandbox_place place;
    int err = sandbox_enter(&p->owner->sandbox, spec->server, p->slot, &place, why);
    if (err == 0)
        err = process_job_make(p, spec, &place, ports, why);
    if (err == 0)
        err = listen_for(p, &place, why);
    if (err == 0)
        err = shim_start(p, why);
    return err;
}

void process_leave(struct processes *ps, int64_t server, int slot, const char *endpoint)
{
    char away[PATH_MAX];
    snprintf(away, sizeof(away), "%.*s/ended/%" PRId64 ".scratch", PATH_MAX - 64,
             ps->sandbox.folder, server);
    if (sandbox_leave(&ps->sandbox, server, slot, endpoint, away))
        sweep_folder(ps, away);
}

int processes_spawn(struct processes *ps, const struct process_spec *spec, struct process **ret,
                    char why[PROCESS_WHY_MAX])
{
    uint16_t ports[PROCESS_PORTS_MAX];
    *ret = processes_find(ps, spec->server);
    if (*ret)
        return 0;
    int err = check_spec(ps, spec, why);
    if (err != 0)
        return err;
    struct process *p = process_new(ps);
    err = take_slot(p, why);
    if (err == 0 && !ports_take(&ps->ports, spec->n_ports, ports))
        err = process_refuse(why, ERR_NO_PLACE, "no %d of the ports %d-%d are free", spec->n_ports,
                             ps->ports.first, ps->ports.last);
    else if (err == 0 && (err = furnish(p, spec, ports, why)) != 0)
        ports_give(&ps->ports, ports, spec->n_ports);
    if (err != 0) {
        process_leave(ps, spec->server, p->slot, p->endpoint);
        give_slot(p);
        process_free(p);
        return err;
    }
    p->unconfirmed = spec->prepared;
    p->state = spec->prepared ? PROCESS_PREPARED : PROCESS_STARTING;
    p->shim.since_ms = proc_wall_ms();
    p->waits_for_go = true;
    map_put(&ps->by_server, (uint64_t)spec->server, p);
    ps->highest = spec->server > ps->highest ? spec->server : ps->highest;
    processes_wake_before_wait(ps);
    *ret = p;
    return 0;
}

/* ── what may be asked of one ──────────────────────────────────────────────────────────────── */

int64_t process_server(const struct process *p)
{
    return p->spec.server;
}

int64_t process_session(const struct process *p)
{
    return p->spec.session;
}

pid_t process_pid(const struct process *p)
{
    return (pid_t)p->shim.pid;
}

enum process_state process_state(const struct process *p)
{
    return p->state;
}

bool process_was_adopted(const struct process *p)
{
    return p->adopted;
}

const uint16_t *process_ports(const struct process *p, int *ret_n)
{
    *ret_n = p->job->n_ports;
    return p->job->ports;
}

int64_t process_since_ms(const struct process *p)
{
    return p->shim.since_ms;
}

const struct process_spec *process_spec(const struct process *p)
{
    return &p->spec;
}

const char *process_endpoint(const struct process *p)
{
    return p->endpoint;
}

bool process_is_no_program(const struct process *p)
{
    return p->shim.failed_step == SHIM_STEP_EXEC;
}

const char *process_why(const struct process *p)
{
    return p->why;
}

const struct process_end *process_ended(const struct process *p)
{
    assert(p->state == PROCESS_OVER);
    return &p->end;
}

void process_confirm(struct process *p)
{
    p->unconfirmed = false;
    if (p->state != PROCESS_PREPARED)
        return;
    p->state = PROCESS_STARTING;
    shim_mark(p);
}

bool process_is_unconfirmed(const struct process *p)
{
    return p->unconfirmed;
}

void process_inited(struct process *p)
{
    if (p->state != PROCESS_STARTING)
        return;
    p->state = PROCESS_RUNNING;
    shim_note(p);
    if (p->owner->spares_at_ms > 0) { /* nobody waits for anything now */
        p->owner->spares_at_ms = proc_monotonic_ms();
        processes_arm(p->owner);
    }
}

/* Asked again, it may be sooner but never later. What nobody has asked for stays PREPARED to the
 * next agent, who then tells nobody of it either. */
void process_end(struct process *p, int64_t grace_ms)
{
    if (grace_ms <= 0 && !p->waits_for_go)
        shim_await_hello(p); /* or its shim would be killed, and what that is just starting not */
    if (p->state == PROCESS_OVER)
        return;
    bool again = p->state == PROCESS_ENDING;
    int64_t at_ms = proc_monotonic_ms() + grace_ms;
    p->state = PROCESS_ENDING;
    if (PLANTED(port_freed_early))
        ports_give(&p->owner->ports, p->job->ports, p->job->n_ports);
    if (grace_ms <= 0) {
        kill_late(p);
    } else {
        if (!again)
            process_signal(p, SIGTERM);
        if (!again || (p->kill_at_ms > 0 && at_ms < p->kill_at_ms))
            p->kill_at_ms = at_ms;
    }
    if (!p->unconfirmed)
        shim_note(p);
    processes_arm(p->owner);
}

/* A pipe takes that much whole or not at all. */
int process_write(struct process *p, struct str line)
{
    struct iovec parts[] = {{(void *)line.at, line.len}, {"\n", 1}};
    if (p->fds[FD_IN] < 0 || line.len + 1 > PIPE_BUF)
        return ERR_IO;
    return writev(p->fds[FD_IN], parts, 2) == (ssize_t)line.len + 1 ? 0 : ERR_IO;
}

static void forget(struct process *p, const char *home_after)
{
    struct processes *ps = p->owner;
    char home[PATH_MAX];
    int64_t server = p->spec.server;
    assert(p->state == PROCESS_OVER);
    shim_bye(p);
    process_home(ps, server, home);
    rename(home, home_after);
    process_leave(ps, server, (int)p->job->slot, p->endpoint);
    ports_give(&ps->ports, p->job->ports, p->job->n_ports);
    give_slot(p);
    map_remove(&ps->by_server, (uint64_t)server);
    process_free(p);
}

void process_forget(struct process *p)
{
    char after[PATH_MAX];
    process_home_after(p->owner, p->spec.server, after);
    forget(p, after);
}

void process_discard(struct process *p)
{
    struct processes *ps = p->owner;
    char away[PATH_MAX + 16];
    char after[PATH_MAX];
    process_home_after(ps, p->spec.server, after);
    snprintf(away, sizeof(away), "%s.discarded", after);
    forget(p, away);
    sweep_folder(ps, away);
}
