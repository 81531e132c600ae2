#include "shim/start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The bounding set needs CAP_SETPCAP; whoever lacks it has nothing to give on either, because of
 * no_new_privs. What we may do ourselves stays: only an exec looks at it. */
void start_prepare(void)
{
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap);
}

/* Everything below runs between vfork and exec, in our memory: system calls only, and what they
 * refuse is left for us to read in these. (glibc's set*id tell other threads, and there are none,
 * but the bare calls need no such thought.) */
static volatile int refused_step;
static volatile int refused_errno;

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
    struct rlimit none = {0, 0};
    if (limit(RLIMIT_NOFILE, s->files) < 0 || limit(RLIMIT_FSIZE, s->file_bytes) < 0 ||
        limit(RLIMIT_NPROC, s->processes) < 0)
        return -1;
    return setrlimit(RLIMIT_CORE, &none);
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
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &head, none) < 0)
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* A group of its own: a game server that signals its group must not meet us. SIGPIPE stays ignored,
 * so that it survives a moment without a reader; everything else is as if nobody had been here. */
static enum shim_step become(const struct start *s)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    umask(022);
    if (s->batch)
        sched_setscheduler(0, SCHED_OTHER, &(const struct sched_param){0});
    if (dup2(s->in_fd, 0) < 0 || dup2(s->out_fd, 1) < 0 || dup2(s->out_fd, 2) < 0)
        return SHIM_STEP_START;
    if (*s->cgroup && join_cgroup(s->cgroup) < 0)
        return SHIM_STEP_CGROUP;
    if (set_limits(s) < 0)
        return SHIM_STEP_LIMIT;
    if (drop_everything(s->uid) < 0)
        return SHIM_STEP_USER;
    if (chdir(s->folder) < 0)
        return SHIM_STEP_FOLDER;
    execve(s->argv[0], s->argv, s->env);
    return SHIM_STEP_EXEC;
}

pid_t start(const struct start *s, enum shim_step *ret_step, int *ret_errno)
{
    refused_step = SHIM_STEP_NONE;
    /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): a copy of us costs more. */
    pid_t pid = vfork();
    if (pid == 0) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Vfork): it makes system calls and nothing else. */
        int step = (int)become(s);
        refused_errno = errno;
        refused_step = step;
        _exit(127);
    }
    *ret_step = pid < 0 ? SHIM_STEP_START : (enum shim_step)refused_step;
    *ret_errno = pid < 0 ? errno : refused_errno;
    if (*ret_step == SHIM_STEP_NONE)
        return pid;
    if (pid > 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    return 0;
}
