/* muster-shim: stands between an agent and one game server, so that neither the agent's death nor
 * its replacement touches the game. A session of its own; holds the pipes and the pidfd, writes the
 * log, keeps how it ended until an agent says BYE. Libc alone and small: there is one per game
 * server, and starting it is part of starting a game server. See shim.h for what is said. */
#include "shim/output.h"
#include "shim/proc.h"
#include "shim/start.h"
#include "shim/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 * 1024,
    PIPE_BYTES = 256 * 1024,
    JOB_READ_BYTES = 64 * 1024, /* a larger job is mapped */
    REAPED_WITHIN_MS = 1000,    /* by whoever is its parent, when we are not */
    ASK_AGAIN_MS = 20,
    SETTLE_MS = 10, /* after its start, unless there is a reason before */
    SETTLE_AGAIN_MS = 1000,
    LOOK_ROUND_MS = 60000, /* over, and nobody asks: is our home still there? */
    EXIT_JOB = 2,
};

enum { HOME, FOLDER, CGROUP, PLACES };

struct shim {
    const struct shim_job *job;
    char **places;
    size_t told_size; /* of the job without its environment */
    char **argv;
    char **env;
    struct shim_state state;
    struct output output;
    const char *spare; /* a home that was made ahead of time, in which we listen; NULL = none */
    bool settled;      /* our home is where it belongs, and there is a record in it */
    bool holds_lock;   /* nobody can find us yet */
    int64_t settle_at_ms;
    int control;   /* the agent; -1 = it is away */
    int listening; /* -1 = not yet, or the disk is full */
    int children;  /* signalfd */
    int pidfd, out_fd, in_fd, job_fd;
    int theirs[2];        /* the other ends of in_fd and out_fd, until it has them */
    bool parent;          /* the game server is our child */
    bool ended;           /* it is; what it had started may not be */
    int64_t ask_until_ms; /* how it ended, of somebody else's child */
};

static char read_buffer[READ_BYTES];

/* ── the job ───────────────────────────────────────────────────────────────────────────────── */

/* n texts from *at on; NULL when they do not end inside the job. */
static char **take_texts(const char **at, const char *end, uint32_t n)
{
    char **texts = calloc((size_t)n + 1, sizeof(*texts));
    for (uint32_t i = 0; texts && i < n; i++) {
        size_t left = (size_t)(end - *at);
        size_t len = strnlen(*at, left);
        if (len == left) {
            free(texts);
            return NULL;
        }
        texts[i] = (char *)*at;
        *at += len + 1;
    }
    return texts;
}

/* The game server waits for this: to map a page takes as long as the rest of our start. */
static struct shim_job *map_job(int fd, size_t size)
{
    if (size > JOB_READ_BYTES) {
        void *mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        return mapped != MAP_FAILED ? mapped : NULL;
    }
    struct shim_job *job = malloc(size);
    return job && pread(fd, job, size, 0) == (ssize_t)size ? job : NULL;
}

static bool read_job(struct shim *s, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(*s->job))
        return false;
    s->job = map_job(fd, (size_t)st.st_size);
    if (!s->job || s->job->version != SHIM_VERSION || s->job->size != st.st_size ||
        s->job->n_argv == 0)
        return false;
    const char *at = (const char *)(s->job + 1);
    const char *end = (const char *)s->job + s->job->size;
    s->places = take_texts(&at, end, PLACES);
    s->argv = s->places ? take_texts(&at, end, s->job->n_argv) : NULL;
    s->told_size = (size_t)(at - (const char *)s->job);
    s->env = s->argv ? take_texts(&at, end, s->job->n_env) : NULL;
    return s->env != NULL;
}

/* For an agent that finds neither us nor our socket. A full disk loses it, and nothing else. */
static void write_record(const struct shim *s)
{
    if (!s->settled)
        return;
    int fd = open(SHIM_RECORD ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    bool whole = write(fd, &s->state, sizeof(s->state)) == sizeof(s->state) &&
                 write(fd, s->job, s->told_size) == (ssize_t)s->told_size;
    close(fd);
    if (whole)
        rename(SHIM_RECORD ".new", SHIM_RECORD);
}

/* ── our home ──────────────────────────────────────────────────────────────────────────────── */

/* In the folder we are in. */
static bool listen_here(struct shim *s)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX, .sun_path = SHIM_SOCKET};
    unlink(SHIM_SOCKET); /* of a shim before us */
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&here, sizeof(here)) == 0 && listen(fd, 4) == 0) {
        s->listening = fd;
        return true;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

/* The next agent may look for us. It waits for this, or it could miss one that has just been given
 * a job; and what we begin must not keep it waiting. */
static void let_others_look(struct shim *s)
{
    if (s->holds_lock)
        close(SHIM_LOCK_FD);
    s->holds_lock = false;
}

/* A socket is an inode and so is a folder: what takes longest of settling is done before there is a
 * job. The next agent looks for us here, too. */
static void lay_in_home(struct shim *s, const char *path)
{
    if (mkdir(path, 0700) < 0)
        return;
    if (chdir(path) == 0 && listen_here(s)) {
        s->spare = path;
        let_others_look(s);
    } else {
        rmdir(path);
    }
}

static void drop_spare(struct shim *s)
{
    if (!s->spare)
        return;
    close(s->listening);
    s->listening = -1;
    unlink(SHIM_SOCKET);
    rmdir(s->spare);
    s->spare = NULL;
}

static bool move_in(struct shim *s)
{
    const char *home = s->places[HOME];
    if (s->spare && rename(s->spare, home) == 0) {
        s->spare = NULL;
        return true;
    }
    drop_spare(s); /* there is a home, of the shim before us */
    return (mkdir(home, 0700) == 0 || errno == EEXIST) && chdir(home) == 0 && listen_here(s);
}

/* Where the next agent finds us and what was printed. All of this is done when the game server is
 * ready or has had its time, because it waits for none of it and may have only this processor; and
 * again later when the disk is full. */
static void settle(struct shim *s)
{
    s->settle_at_ms = proc_monotonic_ms() + SETTLE_AGAIN_MS;
    if (s->settled)
        return;
    s->settled = move_in(s);
    let_others_look(s);
    if (!s->settled)
        return;
    write_record(s); /* who reads what was printed can rely on the record */
    output_open(&s->output);
}

/* ── the agent ─────────────────────────────────────────────────────────────────────────────── */

static void lose_agent(struct shim *s)
{
    if (s->control >= 0)
        close(s->control);
    s->control = -1;
}

static void tell(struct shim *s, enum shim_kind kind)
{
    const int fds[SHIM_FDS_MAX] = {s->pidfd, s->out_fd, s->in_fd, s->job_fd};
    struct shim_message m = {.version = SHIM_VERSION, .kind = kind, .state = s->state};
    for (int i = 0; kind == SHIM_HELLO && i < SHIM_FDS_MAX; i++)
        m.fds |= fds[i] >= 0 ? 1U << i : 0;
    if (kind == SHIM_OVER)
        m.tail_len = (uint32_t)s->output.tail_len;
    /* Whoever is gone may have said something before, so the link is not dropped here. */
    if (s->control >= 0)
        (void)talk_send(s->control, &m, fds, s->output.tail);
}

/* The folder is the agent's alone; this is for whoever opened it to others. */
static bool is_agent(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

/* False when there is nothing (more) to hear. */
static bool hear(struct shim *s)
{
    struct shim_message m;
    int fds[SHIM_FDS_MAX];
    int came = talk_receive(s->control, &m, fds, NULL, MSG_DONTWAIT);
    for (int i = 0; i < SHIM_FDS_MAX; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    /* Who left without reading all of ours: what it said before comes after this error. */
    if (came < 0 && errno == ECONNRESET)
        return true;
    if (came <= 0) {
        if (came == 0 || errno != EAGAIN)
            lose_agent(s);
        return false;
    }
    if (m.kind == SHIM_NOTE || m.kind == SHIM_MARK) {
        s->state.state = m.state.state;
        s->state.kill_at_ms = m.state.kill_at_ms;
    }
    if (m.kind == SHIM_NOTE && !s->settled) {
        settle(s);
    } else if (m.kind == SHIM_NOTE || m.kind == SHIM_MARK) {
        write_record(s);
    } else if (m.kind == SHIM_BYE && (s->state.over || !s->parent)) {
        _exit(0);
    }
    return true;
}

/* What the agent before has said is heard first. */
static void welcome(struct shim *s)
{
    int fd = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (!is_agent(fd)) {
        close(fd);
        return;
    }
    while (s->control >= 0 && hear(s))
        continue;
    lose_agent(s);
    settle(s);
    s->control = fd;
    tell(s, SHIM_HELLO);
    if (s->state.over)
        tell(s, SHIM_OVER);
}

/* ── the end of the game server ────────────────────────────────────────────────────────────── */

/* False when there is nothing (more) to read for now. */
static bool read_output(struct shim *s)
{
    ssize_t n = s->out_fd >= 0 ? read(s->out_fd, read_buffer, sizeof(read_buffer)) : 0;
    if (n > 0) {
        output_put(&s->output, read_buffer, (size_t)n, proc_monotonic_ms());
        return true;
    }
    if (s->out_fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
        close(s->out_fd);
        s->out_fd = -1;
    }
    return false;
}

static void be_over(struct shim *s)
{
    if (s->state.over)
        return;
    settle(s);
    while (read_output(s))
        continue;
    output_end(&s->output, proc_monotonic_ms());
    s->state.over = 1;
    s->state.run_ms = s->state.pid ? proc_monotonic_ms() - s->state.started_ms : 0;
    s->state.dropped = s->output.dropped;
    s->state.log_failed = s->output.failed;
    write_record(s);
    tell(s, SHIM_OVER);
}

/* What the game server had started is our child now that it is gone (we are a subreaper), not
 * reaped, and so nobody else's pid. */
static void kill_children(void)
{
    char list[4096];
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, list, sizeof(list) - 1) : 0;
    if (fd >= 0)
        close(fd);
    list[n > 0 ? n : 0] = '\0';
    char *at = list;
    for (long pid = strtol(at, &at, 10); pid > 0 && *at; pid = strtol(at, &at, 10))
        kill((pid_t)pid, SIGKILL);
}

/* Until nothing is left, because what is left may hold a port. */
static void reap(struct shim *s)
{
    int code = 0;
    int sig = 0;
    int64_t peak = 0;
    pid_t pid;
    while ((pid = proc_reap(-1, &code, &sig, &peak)) > 0) {
        if (pid != s->state.pid || !s->parent)
            continue;
        s->ended = true;
        s->state.exit_code = code;
        s->state.exit_signal = sig;
        s->state.peak_memory = peak;
    }
    if (s->ended && pid == 0)
        kill_children();
    if (s->ended && s->parent && pid < 0)
        be_over(s);
}

static void drain_signals(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) > 0)
        continue;
}

/* It is somebody else's child since our predecessor was killed; the kernel may tell us after it
 * was reaped. */
static void ask_how_it_ended(struct shim *s)
{
    int status;
    int64_t now_ms = proc_monotonic_ms();
    if (!s->ended)
        s->ask_until_ms = now_ms + REAPED_WITHIN_MS;
    s->ended = true;
    if (proc_exit_of(s->pidfd, &status)) {
        s->state.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        s->state.exit_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        be_over(s);
    } else if (now_ms >= s->ask_until_ms) {
        s->state.exit_code = SHIM_EXIT_UNKNOWN;
        be_over(s);
    }
}

/* ── its beginning ─────────────────────────────────────────────────────────────────────────── */

/* The order will say the same. */
static bool is_no_order(const struct shim_message *m)
{
    return m->kind == SHIM_NOTE || m->kind == SHIM_MARK;
}

/* Our ends do not make us wait; its ends are as it expects them. */
static bool make_pipes(struct shim *s)
{
    int out[2];
    int in[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return false;
    if (pipe2(in, O_CLOEXEC) < 0) {
        int why = errno;
        close(out[0]);
        close(out[1]);
        errno = why;
        return false;
    }
    s->out_fd = out[0];
    s->in_fd = in[1];
    s->theirs[0] = in[0];
    s->theirs[1] = out[1];
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(out[0], F_SETPIPE_SZ, PIPE_BYTES);
    return true;
}

static void drop_their_ends(struct shim *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->theirs[i] >= 0)
            close(s->theirs[i]);
        s->theirs[i] = -1;
    }
}

/* Only looks at the order: it stays where it is for us, with descriptors of its own. */
static bool see_job(struct shim *s)
{
    struct shim_message m;
    int fds[SHIM_FDS_MAX];
    for (;;) {
        if (talk_receive(s->control, &m, fds, NULL, MSG_PEEK) <= 0)
            return false;
        if (!is_no_order(&m))
            return m.kind == SHIM_GO && m.fds & SHIM_FD_JOB && read_job(s, fds[3]);
        (void)talk_receive(s->control, &m, fds, NULL, 0);
    }
}

/* In the child that is to be the game server, which has our memory. */
static bool await_job(void *user, struct start *ret)
{
    struct shim *s = user;
    if (!s->env && !see_job(s))
        return false;
    *ret = (struct start){.folder = s->places[FOLDER],
                          .cgroup = s->places[CGROUP],
                          .argv = s->argv,
                          .env = s->env,
                          .uid = s->job->uid,
                          .files = s->job->files,
                          .processes = s->job->processes,
                          .file_bytes = s->job->file_bytes};
    return true;
}

/* Begins the game server, perhaps long before there is a job, and waits until it has one and runs
 * its own code; or until it has left, because there is another order or none. */
static void begin_game(struct shim *s)
{
    enum shim_step step = SHIM_STEP_START;
    bool piped = s->theirs[0] >= 0 || make_pipes(s);
    int why = errno;
    s->state.pid = piped ? start(s->theirs[0], s->theirs[1], await_job, s, &step, &why) : 0;
    s->state.failed_step = s->state.pid == 0 ? step : SHIM_STEP_NONE;
    s->state.failed_errno = s->state.pid == 0 ? why : 0;
}

static void start_game(struct shim *s)
{
    drop_their_ends(s);
    if (s->state.pid == 0 && s->state.failed_step == SHIM_STEP_NONE) { /* killed, twice */
        s->state.failed_step = SHIM_STEP_START;
        s->state.failed_errno = EINTR;
    }
    if (s->state.pid == 0) {
        s->state.exit_code = 127;
        be_over(s);
        return;
    }
    s->pidfd = proc_pidfd_open((pid_t)s->state.pid); /* our child, not reaped: the one we started */
    s->state.start_ticks = proc_start_ticks((pid_t)s->state.pid);
    s->state.since_ms = proc_wall_ms();
    s->state.started_ms = proc_monotonic_ms();
    s->parent = true;
    tell(s, SHIM_HELLO);
    s->settle_at_ms = s->state.started_ms + SETTLE_MS;
    if (!s->spare)
        settle(s);
}

static void adopt_game(struct shim *s, const struct shim_message *m, const int fds[SHIM_FDS_MAX])
{
    s->state = m->state;
    drop_their_ends(s); /* it has pipes */
    close(s->out_fd);
    close(s->in_fd);
    s->pidfd = fds[0];
    s->out_fd = fds[1];
    s->in_fd = fds[2];
    tell(s, SHIM_HELLO);
    settle(s);
}

/* There is nothing for us to do, and nobody whom we could tell of what we have begun. */
static void leave(struct shim *s, int code)
{
    if (s->state.pid > 0)
        kill((pid_t)s->state.pid, SIGKILL);
    drop_spare(s);
    _exit(code);
}

/* Nothing is started for an agent that died before it said so. */
static void await_order(struct shim *s)
{
    struct shim_message m;
    int fds[SHIM_FDS_MAX];
    do {
        if (talk_receive(s->control, &m, fds, NULL, 0) <= 0)
            leave(s, 0);
    } while (is_no_order(&m));
    bool seen = s->env != NULL;
    s->job_fd = fds[3];
    if (!seen && !read_job(s, s->job_fd))
        leave(s, EXIT_JOB);
    output_init(&s->output, s->job->log_bytes, (int)s->job->log_files, proc_monotonic_ms());
    if (m.kind == SHIM_ADOPT && m.fds & SHIM_FD_PIDFD) {
        adopt_game(s, &m, fds);
    } else if (m.kind == SHIM_GO) {
        s->state.state = m.state.state;
        s->state.kill_at_ms = m.state.kill_at_ms;
        /* What was begun ahead of time and has gone wrong is not this job's fault. */
        if (s->state.pid == 0 && (!seen || s->state.failed_step == SHIM_STEP_NONE))
            begin_game(s);
        start_game(s);
    } else {
        leave(s, EXIT_JOB);
    }
}

/* Whatever those before us ignored, also the two signals that glibc keeps for itself. All zeros is
 * the kernel's default action. */
static void reset_signals(void)
{
    const uint64_t default_action[4] = {0};
    for (int sig = 1; sig < NSIG; sig++)
        syscall(SYS_rt_sigaction, sig, default_action, NULL, 8);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a log that may not grow any more is one that is full */
}

static int stand_alone(void)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    close_range(SHIM_LOCK_FD + 1, ~0U, 0);
    fcntl(SHIM_CONTROL_FD, F_SETFD, FD_CLOEXEC);
    fcntl(SHIM_LOCK_FD, F_SETFD, FD_CLOEXEC);
    umask(077);
    setsid();
    reset_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sigprocmask(SIG_SETMASK, &children, NULL);
    return signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* How long it may wait; -1 = for ever. */
static int patience(const struct shim *s)
{
    if (s->ended && !s->parent && !s->state.over)
        return ASK_AGAIN_MS;
    if (!s->settled) {
        int64_t left_ms = s->settle_at_ms - proc_monotonic_ms();
        return left_ms > 0 ? (int)left_ms : 0;
    }
    return s->state.over && s->control < 0 ? LOOK_ROUND_MS : -1;
}

static void turn(struct shim *s)
{
    bool watch = !s->parent && !s->ended;
    struct pollfd fds[] = {{.fd = s->control, .events = POLLIN},
                           {.fd = s->listening, .events = POLLIN},
                           {.fd = s->children, .events = POLLIN},
                           {.fd = s->spare ? -1 : s->out_fd, .events = POLLIN},
                           {.fd = watch ? s->pidfd : -1, .events = POLLIN}};
    int n = poll(fds, 5, patience(s));
    if (!s->settled && proc_monotonic_ms() >= s->settle_at_ms)
        settle(s);
    else if (n == 0 && s->state.over && s->control < 0 && access(SHIM_SOCKET, F_OK) < 0)
        _exit(0); /* nobody can find us any more */
    if (fds[3].revents)
        (void)read_output(s);
    if (fds[2].revents) {
        drain_signals(s->children);
        reap(s);
    }
    if (fds[4].revents || (s->ended && !s->parent && !s->state.over))
        ask_how_it_ended(s);
    if (fds[0].revents)
        (void)hear(s);
    if (fds[1].revents)
        welcome(s);
}

/* So that a list of processes tells whose shim this is. */
static void write_title(const struct shim *s, char *title)
{
    char number[SHIM_TITLE_MAX + 1];
    int n = snprintf(number, sizeof(number), "%lld", (long long)s->job->server);
    if (strlen(title) == SHIM_TITLE_MAX && n > 0 && n <= SHIM_TITLE_MAX)
        memcpy(title, number, (size_t)n);
}

int main(int argc, char **argv)
{
    static struct shim s;
    int children = stand_alone();
    s = (struct shim){.control = SHIM_CONTROL_FD, .listening = -1, .holds_lock = true};
    s.pidfd = s.out_fd = s.in_fd = s.job_fd = s.theirs[0] = s.theirs[1] = -1;
    s.children = children;
    s.state.version = SHIM_VERSION;
    proc_boot_id(s.state.boot_id);
    start_prepare();
    if (argc > 2)
        lay_in_home(&s, argv[2]);
    begin_game(&s);
    await_order(&s);
    if (argc > 1)
        write_title(&s, argv[1]);
    for (;;)
        turn(&s);
}
