#include "shim/start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024 };

/* The bounding set needs CAP_SETPCAP; whoever lacks it has nothing to give on either, because of
 * no_new_privs. What we may do ourselves stays: only an exec looks at it. */
void start_prepare(void)
{
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap);
}

/* Everything between the two lines runs in the child, which has our memory and a stack of its own,
 * while we sleep: nothing needs to be copied for it, and nothing locked. What it is refused is left
 * for us to read here. (glibc's set*id tell other threads, and there are none, but the bare calls
 * need no such thought.) */
static struct {
    int in_fd, out_fd;
    start_await *await;
    void *user;
    pid_t parent;
    bool ordinary; /* it is to be no batch job, as we are */
    volatile bool executes;
    volatile int refused_step;
    volatile int refused_errno;
} child;

static volatile pid_t in_our_memory; /* the child; the kernel clears this when it is no more */

/* ── the child ─────────────────────────────────────────────────────────────────────────────── */

static int limit(int what, int64_t value)
{
    if (value <= 0)
        return 0;
    struct rlimit both = {.rlim_cur = (rlim_t)value, .rlim_max = (rlim_t)value};
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < both.rlim_max)
        both.rlim_cur = both.rlim_max = now.rlim_max;
    return setrlimit((__rlimit_resource_t)what, &both);
}

static int set_limits(const struct start *s)
{
    bool done = limit(RLIMIT_NOFILE, s->files) == 0 && limit(RLIMIT_FSIZE, s->file_bytes) == 0 &&
                limit(RLIMIT_NPROC, s->processes) == 0;
    return done ? 0 : -1;
}

static int join_cgroup(const char *procs)
{
    int fd = open(procs, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, "0", 1);
    return n == 1 ? 0 : -1;
}

static int drop_everything(uint32_t uid)
{
    if (uid != SHIM_STAY &&
        (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, uid, uid, uid) < 0 ||
         syscall(SYS_setresuid, uid, uid, uid) < 0))
        return -1;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    return (int)syscall(SYS_capset, &head, none);
}

/* As long as it is no game server it does not outlive us. The kernel forgets that with each change
 * of user; and we may have gone before it was said. */
static bool stay_with_us(void)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == child.parent;
}

/* A group of its own: a game server that signals its group must not meet us. SIGPIPE stays ignored,
 * so that it survives a moment without a reader; everything else is as if nobody had been here. */
static bool get_ready(void)
{
    const struct rlimit none = {0, 0};
    sigset_t no_signal;
    sigemptyset(&no_signal);
    sigprocmask(SIG_SETMASK, &no_signal, NULL);
    signal(SIGXFSZ, SIG_DFL); /* which only the shim ignores */
    setpgid(0, 0);
    umask(022);
    if (child.ordinary)
        sched_setscheduler(0, SCHED_OTHER, &(const struct sched_param){0});
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return stay_with_us() && dup2(child.in_fd, 0) >= 0 && dup2(child.out_fd, 1) >= 0 &&
           dup2(child.out_fd, 2) >= 0 && setrlimit(RLIMIT_CORE, &none) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static enum shim_step become(const struct start *s)
{
    if (*s->cgroup && join_cgroup(s->cgroup) < 0)
        return SHIM_STEP_CGROUP;
    if (set_limits(s) < 0)
        return SHIM_STEP_LIMIT;
    if (drop_everything(s->uid) < 0 || !stay_with_us())
        return SHIM_STEP_USER;
    if (chdir(s->folder) < 0)
        return SHIM_STEP_FOLDER;
    prctl(PR_SET_PDEATHSIG, 0);
    child.executes = true;
    execve(s->argv[0], s->argv, s->env);
    return SHIM_STEP_EXEC;
}

static int run_child(void *unused)
{
    struct start s;
    (void)unused;
    bool ready = get_ready();
    if (ready && !child.await(child.user, &s))
        _exit(0);
    enum shim_step step = ready ? become(&s) : SHIM_STEP_START;
    child.refused_errno = errno;
    child.refused_step = (int)step;
    _exit(127);
}

/* ── we ────────────────────────────────────────────────────────────────────────────────────── */

/* Nothing of ours is urgent: whoever is a batch job waits until the processor is free, and does not
 * take it from the game server in the middle of its exec. Of the child that is not true, whom the
 * agent wakes. Where the agent was given another policy, that is for its game servers. */
static void be_patient(void)
{
    if (sched_getscheduler(0) == SCHED_OTHER)
        child.ordinary = sched_setscheduler(0, SCHED_BATCH, &(const struct sched_param){0}) == 0;
}

/* Not vfork, in which we could not be interrupted and would count as load for as long as we wait.
 */
static pid_t begin(void)
{
    static char stack[STACK_BYTES] __attribute__((aligned(16)));
    pid_t pid = clone(run_child, stack + sizeof(stack),
                      CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, NULL,
                      &in_our_memory, NULL, &in_our_memory);
    for (pid_t who; pid > 0 && (who = in_our_memory) != 0;)
        (void)syscall(SYS_futex, &in_our_memory, FUTEX_WAIT, who, NULL, NULL, 0);
    return pid;
}

pid_t start(int in_fd, int out_fd, start_await *await, void *user, enum shim_step *ret_step,
            int *ret_errno)
{
    be_patient();
    child.in_fd = in_fd;
    child.out_fd = out_fd;
    child.await = await;
    child.user = user;
    child.parent = getpid();
    child.executes = false;
    child.refused_step = SHIM_STEP_NONE;
    pid_t pid = begin();
    *ret_step = pid < 0 ? SHIM_STEP_START : (enum shim_step)child.refused_step;
    *ret_errno = pid < 0 ? errno : child.refused_errno;
    if (pid > 0 && child.executes && *ret_step == SHIM_STEP_NONE)
        return pid;
    if (pid > 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    return 0;
}
