#include "shim/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { P_PIDFD_ = 3 }; /* P_PIDFD is an enumerator that older headers lack */

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t proc_monotonic_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

int64_t proc_wall_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

/* A signal may end the wait early: children end all the time. */
bool proc_await(int fd, int64_t until_ms)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    for (;;) {
        int64_t left_ms = until_ms - proc_monotonic_ms();
        int n = poll(&one, 1, left_ms > 0 ? (int)left_ms : 0);
        if (n >= 0 || errno != EINTR)
            return n > 0;
    }
}

static bool read_file(const char *path, char *to, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, to, cap - 1);
    close(fd);
    to[n > 0 ? n : 0] = '\0';
    return n > 0;
}

uint64_t proc_start_ticks(pid_t pid)
{
    enum { FIELDS_BEFORE = 20 }; /* after the name, which may hold anything, also ')' and spaces */
    char path[32];
    char text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (pid <= 0 || !read_file(path, text, sizeof(text)))
        return 0;
    char *at = strrchr(text, ')');
    for (int i = 0; at && i < FIELDS_BEFORE; i++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

void proc_boot_id(char ret[SHIM_BOOT_MAX])
{
    if (!read_file("/proc/sys/kernel/random/boot_id", ret, SHIM_BOOT_MAX))
        ret[0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

pid_t proc_pid_of(int pidfd)
{
    char path[48];
    char text[512];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    if (!read_file(path, text, sizeof(text)))
        return -1;
    const char *at = strstr(text, "\nPid:");
    return at ? (pid_t)strtol(at + 5, NULL, 10) : -1;
}

int proc_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

int proc_pidfd_signal(int pidfd, int sig)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

bool proc_is_over(int pidfd)
{
    return proc_await(pidfd, 0);
}

/* linux/pidfd.h of 6.15, which is newer than the headers we build with. */
struct pidfd_info_ {
    uint64_t mask;
    uint64_t cgroupid;
    uint32_t ids[11];
    int32_t exit_code;
};

bool proc_exit_of(int pidfd, int *ret_wait_status)
{
    enum { INFO_EXIT = 8 };
    struct pidfd_info_ info = {.mask = INFO_EXIT};
    if (ioctl(pidfd, _IOWR(0xFF, 11, struct pidfd_info_), &info) < 0 || !(info.mask & INFO_EXIT))
        return false;
    *ret_wait_status = info.exit_code;
    return true;
}

pid_t proc_reap(int pidfd, int *ret_code, int *ret_signal, int64_t *ret_peak_memory)
{
    siginfo_t info = {.si_pid = 0};
    struct rusage used = {.ru_maxrss = 0};
    if (syscall(SYS_waitid, pidfd < 0 ? P_ALL : P_PIDFD_, pidfd < 0 ? 0 : pidfd, &info,
                WEXITED | WNOHANG, &used) < 0)
        return -1;
    bool exited = info.si_code == CLD_EXITED;
    *ret_code = exited ? info.si_status : 0;
    *ret_signal = exited ? 0 : info.si_status;
    *ret_peak_memory = (int64_t)used.ru_maxrss * 1024;
    return info.si_pid;
}

pid_t proc_child_in_session(pid_t session)
{
    char chunk[4096];
    pid_t pid = 0;
    pid_t found = 0;
    ssize_t n = 0;
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && found == 0 && (n = read(fd, chunk, sizeof(chunk))) > 0) {
        for (ssize_t i = 0; i < n && found == 0; i++) {
            bool ends = chunk[i] < '0' || chunk[i] > '9';
            if (ends && pid > 0 && getsid(pid) == session)
                found = pid;
            pid = ends ? 0 : pid * 10 + (chunk[i] - '0');
        }
    }
    if (fd >= 0)
        close(fd);
    return found;
}
