/* The system: limits, the clock, what the kernel can, cgroups, libraries. */
#include "agent/zeromq.h"
#include "api/nats_link.h"
#include "base/clock.h"
#include "cli/beside.h"
#include "cli/doctor.h"
#include "net/curl.h"
#include "store/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

enum {
    FILES_BESIDE = 256,
    FEW_FILES = 2048,
    FEW_PROCESSES = 4096,
    BUILT_S = 1735689600 /* 2025-01-01 */
};

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

void doctor_check_limits(struct doctor *d)
{
    const struct config *c = d->config;
    struct rlimit files;
    struct rlimit processes;
    int64_t needed = c->connections + c->client_connections + c->http_connections + FILES_BESIDE;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        bool enough = files.rlim_max == RLIM_INFINITY || (int64_t)files.rlim_max >= needed;
        bool few = !enough && files.rlim_max < FEW_FILES;
        doctor_say(d, "open files",
                   enough ? DOCTOR_OK
                   : few  ? DOCTOR_PROBLEM
                          : DOCTOR_WARNING,
                   "A process may have %lld open files; the connections that are configured need "
                   "%" PRId64 ".",
                   (long long)files.rlim_max, needed);
        if (!enough)
            doctor_advise(d,
                          "Raise it: LimitNOFILE=%" PRId64 " in the unit, or ulimit -n; or lower "
                          "the limits of connections in the configuration.",
                          needed);
    }
    if (getrlimit(RLIMIT_NPROC, &processes) == 0 && processes.rlim_max != RLIM_INFINITY &&
        processes.rlim_max < FEW_PROCESSES) {
        doctor_say(d, "processes", DOCTOR_WARNING, "A user may have %lld processes and threads.",
                   (long long)processes.rlim_max);
        doctor_advise(d,
                      "An agent starts one or more per room: raise it (LimitNPROC=, ulimit -u).");
    }
}

/* ── the clock ─────────────────────────────────────────────────────────────────────────────── */

/* The newest date in the data folder, and whose; 0 = there is none. */
static int64_t newest_file_s(const char *folder, char name[256])
{
    int64_t newest = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e = NULL; dir && (e = readdir(dir));) {
        struct stat st;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_mtim.tv_sec > newest) {
            newest = st.st_mtim.tv_sec;
            (void)snprintf(name, 256, "%s", e->d_name);
        }
    }
    if (dir)
        closedir(dir);
    return newest;
}

static void check_dates(struct doctor *d)
{
    char name[256] = "";
    int64_t ahead_s = newest_file_s(d->data, name) - clock_wall_ms() / 1000;
    if (ahead_s <= 2)
        return;
    doctor_say(d, "clock set back", DOCTOR_WARNING,
               "%s/%s was written %" PRId64 " s from now: the clock has been set back.", d->data,
               name, ahead_s);
    doctor_advise(d, "Bans and access tokens go by the date: look that it is right now (date).");
}

void doctor_check_clock(struct doctor *d)
{
    struct timex now = {0};
    int state = adjtimex(&now);
    if (clock_wall_ms() / 1000 < BUILT_S) {
        doctor_say(d, "clock", DOCTOR_PROBLEM, "The date of this machine is years ago.");
        doctor_advise(d, "Set it: access tokens and certificates are judged by it.");
    } else if (state < 0 || state == TIME_ERROR || now.status & STA_UNSYNC) {
        doctor_say(d, "clock", DOCTOR_WARNING, "Nothing keeps the clock of this machine right.");
        doctor_advise(d,
                      "Install chrony, or turn systemd-timesyncd on. In a container, look at its "
                      "host.");
    } else {
        doctor_say(d, "clock", DOCTOR_OK, "The clock is kept right, within %.1f ms.",
                   (double)now.esterror / 1000);
    }
    check_dates(d);
}

/* ── the kernel ────────────────────────────────────────────────────────────────────────────── */

static bool has_pidfd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    bool can = fd >= 0 && syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0;
    if (fd >= 0)
        close(fd);
    return can;
}

static bool has_openat2(void)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how));
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

void doctor_check_kernel(struct doctor *d)
{
    struct utsname name;
    bool pidfd = has_pidfd();
    bool openat2 = has_openat2();
    (void)uname(&name);
    if (pidfd && openat2) {
        doctor_say(d, "kernel", DOCTOR_OK, "Linux %s has all that is used (pidfd, openat2).",
                   name.release);
        return;
    }
    doctor_say(d, "kernel", DOCTOR_PROBLEM, "Linux %s lacks%s%s.", name.release,
               pidfd ? "" : " pidfd, without which no agent runs",
               openat2 ? "" : " openat2, without which no archive is unpacked");
    doctor_advise(d, "Use Linux 5.6 or later; in a container, look whether seccomp forbids it.");
}

static bool file_has(const char *path, const char *word)
{
    char text[512] = "";
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    text[n] = '\0';
    if (f)
        (void)fclose(f);
    return strstr(text, word) != NULL;
}

/* "0::/system.slice/muster-agent.service" */
static bool own_cgroup(char ret[PATH_MAX])
{
    char line[PATH_MAX];
    bool found = false;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && !found && fgets(line, sizeof(line), f)) {
        found = strncmp(line, "0::/", 4) == 0;
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(ret, PATH_MAX, "/sys/fs/cgroup%.4000s", line + 3);
    }
    if (f)
        (void)fclose(f);
    return found;
}

void doctor_check_cgroups(struct doctor *d)
{
    static const char root[] = "/sys/fs/cgroup/cgroup.controllers";
    char own[PATH_MAX];
    char procs[PATH_MAX];
    if (access(root, R_OK) != 0 || !own_cgroup(own)) {
        doctor_say(d, "cgroups", DOCTOR_WARNING, "There is no cgroup v2 here.");
        doctor_advise(d, "An agent can then not limit the memory of rooms: boot with "
                         "systemd.unified_cgroup_hierarchy=1. Without agents it does not matter.");
        return;
    }
    bool controllers = file_has(root, "memory") && file_has(root, "pids");
    (void)snprintf(procs, sizeof(procs), "%.4000s/cgroup.subtree_control", own);
    bool ours = access(procs, W_OK) == 0;
    doctor_say(
        d, "cgroups", controllers ? DOCTOR_OK : DOCTOR_WARNING,
        "cgroup v2 is there, %s the memory and pids controllers; that of this shell %s ours.",
        controllers ? "with" : "without", ours ? "is" : "is not");
    if (!controllers)
        doctor_advise(d,
                      "An agent can then not limit the memory of rooms: turn the controllers on.");
    else if (!ours)
        doctor_advise(d, "An agent needs one of its own: Delegate=yes in its unit, as the package "
                         "has it, and --cgroup.");
}

/* ── libraries and programs ────────────────────────────────────────────────────────────────── */

static void check_library(struct doctor *d, const char *check, const char *missing,
                          enum doctor_level level, const char *what_for)
{
    if (!missing) {
        doctor_say(d, check, DOCTOR_OK, "It can be loaded; %s.", what_for);
        return;
    }
    doctor_say(d, check, level, "%s.", missing);
    doctor_advise(d, "It is for: %s.", what_for);
}

void doctor_check_programs(struct doctor *d)
{
    char shim[PATH_MAX];
    bool rooms = d->config->n_launches > 0;
    bool nats = d->config->nats.n_urls > 0;
    check_library(d, "libcurl", curl_load(), DOCTOR_PROBLEM,
                  "commands and agents speak HTTP by it");
    check_library(d, "libarchive", archive_load(), rooms ? DOCTOR_PROBLEM : DOCTOR_WARNING,
                  "deployments are unpacked by it");
    check_library(d, "libzmq", zeromq_load(), DOCTOR_WARNING, "agents speak to game servers by it");
    check_library(d, "libnats", nats_load(), nats ? DOCTOR_PROBLEM : DOCTOR_WARNING,
                  nats ? "NATS is configured" : "only where NATS is configured");
    if (beside_find("muster-shim", shim)) {
        doctor_say(d, "muster-shim", DOCTOR_OK, "It is %s.", shim);
        return;
    }
    doctor_say(d, "muster-shim", DOCTOR_WARNING,
               "It is neither beside muster nor in ../lib/muster from there.");
    doctor_advise(d, "An agent starts no room without it: install it there.");
}
