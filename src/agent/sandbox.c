#include "agent/sandbox.h"

#include "base/err.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SOCKET_NAME_MAX = 48 }; /* "/<uid>/<server>-<8 hex>" */

static int refuse(char why[PROCESS_WHY_MAX], int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(char why[PROCESS_WHY_MAX], int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, PROCESS_WHY_MAX, format, args);
    va_end(args);
    return err;
}

static void miss(struct sandbox *s, const char *sentence)
{
    size_t len = strlen(s->missing);
    snprintf(s->missing + len, sizeof(s->missing) - len, "%s%s", len ? "; " : "", sentence);
}

static int make_folder(const char *path, mode_t mode, char why[PROCESS_WHY_MAX])
{
    if ((mkdir(path, mode) < 0 && errno != EEXIST) || chmod(path, mode) < 0)
        return refuse(why, ERR_IO, "cannot make the folder %.180s: %s", path, strerror(errno));
    return 0;
}

/* ── what this host allows ─────────────────────────────────────────────────────────────────── */

/* Their uids reach scratch and endpoint only through folders that are open to all. */
static int check_reachable(const char *folder, char why[PROCESS_WHY_MAX])
{
    char path[PATH_MAX];
    if (!realpath(folder, path))
        return refuse(why, ERR_IO, "cannot find %.180s: %s", folder, strerror(errno));
    for (;;) {
        struct stat st;
        if (stat(path, &st) == 0 && !(st.st_mode & S_IXOTH))
            return refuse(why, ERR_IO,
                          "%.120s is closed to others, and so to game servers with user ids of "
                          "their own; open it, or say --uids none",
                          path);
        char *slash = strrchr(path, '/');
        if (!slash || path[1] == '\0')
            break;
        slash[slash == path ? 1 : 0] = '\0';
    }
    return 0;
}

static int open_users(struct sandbox *s, const struct process_limits *limits,
                      char why[PROCESS_WHY_MAX])
{
    if (geteuid() != 0) {
        miss(s, "game servers share the agent's user id, because it is not root, and so the number "
                "of their processes is not limited");
        return 0;
    }
    if (limits->uid_first == 0) {
        miss(s, "game servers run as root, because they are given no user ids of their own");
        return 0;
    }
    s->uid_first = limits->uid_first;
    return check_reachable(s->folder, why);
}

static bool write_text(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    return n == (ssize_t)strlen(text);
}

static void open_cgroup(struct sandbox *s, const struct process_limits *limits)
{
    char procs[PATH_MAX + 16];
    if (!limits->cgroup || !*limits->cgroup) {
        miss(s, "memory is not limited, because no cgroup was given");
        return;
    }
    (void)mkdir(limits->cgroup, 0755); /* none outlives a boot; one that is there stays */
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", limits->cgroup);
    if (access(procs, W_OK) < 0 || strlen(limits->cgroup) + 64 > sizeof(s->cgroup)) {
        miss(s, "memory is not limited, because the cgroup is not ours");
        return;
    }
    if (!realpath(limits->cgroup, s->cgroup)) /* a shim may be elsewhere */
        snprintf(s->cgroup, sizeof(s->cgroup), "%s", limits->cgroup);
    bool memory = write_text(s->cgroup, "cgroup.subtree_control", "+memory");
    bool pids = write_text(s->cgroup, "cgroup.subtree_control", "+pids");
    if (!memory && limits->memory_bytes > 0)
        miss(s, "memory is not limited, because the cgroup has no memory controller");
    if (!pids && limits->processes > 0 && s->uid_first == 0)
        miss(s, "processes are not counted, because the cgroup has no pids controller");
}

/* Without this list a shim cannot find what its game server left behind. */
static void check_kernel(struct sandbox *s)
{
    if (access("/proc/thread-self/children", R_OK) < 0)
        miss(s,
             "processes that a game server leaves behind are not ended, because this kernel does "
             "not list children");
}

/* ── folders ───────────────────────────────────────────────────────────────────────────────── */

/* A path that is too long for a socket's address is replaced by a short one for the same folder;
 * somebody else may have made that, and then it is not used. */
static int choose_sockets(struct sandbox *s, char why[PROCESS_WHY_MAX])
{
    struct stat st;
    if (strlen(s->folder) + sizeof("/ipc") + SOCKET_NAME_MAX <= sizeof(s->sockets)) {
        snprintf(s->sockets, sizeof(s->sockets), "%.*s/ipc", (int)sizeof(s->sockets) - 8,
                 s->folder);
        return make_folder(s->sockets, 0711, why);
    }
    snprintf(s->sockets, sizeof(s->sockets), "/tmp/muster-%u-%08x", (unsigned)geteuid(),
             (unsigned)str_hash(0, str_of(s->folder)));
    if (mkdir(s->sockets, 0711) < 0 && errno != EEXIST)
        return refuse(why, ERR_IO, "cannot make %s: %s", s->sockets, strerror(errno));
    if (lstat(s->sockets, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022))
        return refuse(why, ERR_IO, "%s is not ours; use a data folder with a shorter name",
                      s->sockets);
    return 0;
}

int sandbox_open(struct sandbox *s, const char *folder, const struct process_limits *limits,
                 char why[PROCESS_WHY_MAX])
{
    *s = (struct sandbox){.memory_bytes = limits->memory_bytes, .processes = limits->processes};
    if (!realpath(folder, s->folder) || strlen(s->folder) + 64 > sizeof(s->folder))
        return refuse(why, ERR_IO, "cannot use the folder %.180s: %s", folder, strerror(errno));
    char scratch[PATH_MAX + 16];
    snprintf(scratch, sizeof(scratch), "%s/scratch", s->folder);
    /* Others may walk through; they may not look. */
    int err = make_folder(s->folder, 0711, why);
    if (err == 0)
        err = make_folder(scratch, 0711, why);
    if (err == 0)
        err = choose_sockets(s, why);
    if (err == 0)
        err = open_users(s, limits, why);
    if (err == 0) {
        open_cgroup(s, limits);
        check_kernel(s);
    }
    return err;
}

static bool is_as_wanted(const char *path, mode_t mode, uid_t owner, gid_t group)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 07777) == mode &&
           (owner == (uid_t)-1 || st.st_uid == owner) && (group == (gid_t)-1 || st.st_gid == group);
}

/* What is as it should be is only looked at: a change, even to the same, has to wait for the disk
 * when that is busy. */
static int own_folder(const char *path, mode_t mode, uid_t owner, gid_t group,
                      char why[PROCESS_WHY_MAX])
{
    if (is_as_wanted(path, mode, owner, group))
        return 0;
    if ((mkdir(path, mode) < 0 && errno != EEXIST) || lchown(path, owner, group) < 0 ||
        chmod(path, mode) < 0)
        return refuse(why, ERR_IO, "cannot make the folder %.180s: %s", path, strerror(errno));
    return 0;
}

/* The game server may walk through the folder of its endpoint and connect, but put nothing there:
 * we bind in it as root. */
static int make_endpoint(const struct sandbox *s, int64_t server, struct sandbox_place *place,
                         char why[PROCESS_WHY_MAX])
{
    uint32_t salt = 0;
    bool own = place->uid != (uid_t)-1;
    char folder[SANDBOX_SOCKET_MAX + 16];
    if (getrandom(&salt, sizeof(salt), 0) < 0)
        return refuse(why, ERR_IO, "cannot draw a number: %s", strerror(errno));
    snprintf(folder, sizeof(folder), "%s/%u", s->sockets, (unsigned)(own ? place->uid : geteuid()));
    int n = snprintf(place->endpoint, sizeof(place->endpoint), "%s/%" PRId64 "-%08x", folder,
                     server, salt);
    if (n >= (int)sizeof(place->endpoint))
        return refuse(why, ERR_IO, "the path of the endpoint is too long: %s…", place->endpoint);
    return own_folder(folder, own ? 0710 : 0700, (uid_t)-1, own ? place->uid : (gid_t)-1, why);
}

static void server_cgroup(const struct sandbox *s, int64_t server, char ret[PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%.*s/server-%" PRId64, PATH_MAX - 64, s->cgroup, server);
}

static int enter_cgroup(const struct sandbox *s, int64_t server, struct sandbox_place *place,
                        char why[PROCESS_WHY_MAX])
{
    char folder[PATH_MAX];
    char number[24];
    if (!*s->cgroup)
        return 0;
    server_cgroup(s, server, folder);
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return refuse(why, ERR_IO, "cannot make the cgroup %.180s: %s", folder, strerror(errno));
    snprintf(number, sizeof(number), "%" PRId64, s->memory_bytes);
    if (s->memory_bytes > 0)
        (void)write_text(folder, "memory.max", number);
    snprintf(number, sizeof(number), "%" PRId64, s->processes);
    if (s->processes > 0)
        (void)write_text(folder, "pids.max", number);
    snprintf(place->cgroup, sizeof(place->cgroup), "%.*s/cgroup.procs", PATH_MAX - 16, folder);
    return 0;
}

static void slot_scratch(const struct sandbox *s, int slot, char ret[PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%.*s/scratch/%d", PATH_MAX - 64, s->folder, slot);
}

static uid_t slot_uid(const struct sandbox *s, int slot)
{
    return s->uid_first ? s->uid_first + (uid_t)slot : (uid_t)-1;
}

void sandbox_prepare(const struct sandbox *s, int slot)
{
    char folder[PATH_MAX], why[PROCESS_WHY_MAX];
    uid_t uid = slot_uid(s, slot);
    slot_scratch(s, slot, folder);
    (void)own_folder(folder, 0700, uid, uid, why);
}

int sandbox_enter(const struct sandbox *s, int64_t server, int slot, struct sandbox_place *ret,
                  char why[PROCESS_WHY_MAX])
{
    *ret = (struct sandbox_place){.uid = slot_uid(s, slot)};
    slot_scratch(s, slot, ret->scratch);
    int err = own_folder(ret->scratch, 0700, ret->uid, ret->uid, why);
    if (err == 0)
        err = make_endpoint(s, server, ret, why);
    if (err == 0)
        err = enter_cgroup(s, server, ret, why);
    return err;
}

/* The folder is closed to everybody else, and its group is that of the one uid. */
void sandbox_let_in(const char *endpoint)
{
    struct stat st;
    char folder[SANDBOX_SOCKET_MAX];
    snprintf(folder, sizeof(folder), "%s", endpoint);
    char *slash = strrchr(folder, '/');
    if (geteuid() != 0 || !slash)
        return;
    *slash = '\0';
    if (stat(folder, &st) == 0 && lchown(endpoint, (uid_t)-1, st.st_gid) == 0)
        chmod(endpoint, 0660);
}

static bool is_empty(const char *path)
{
    int n = 0;
    DIR *folder = opendir(path);
    while (folder && n < 3 && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n <= 2; /* "." and ".." */
}

bool sandbox_leave(const struct sandbox *s, int64_t server, int slot, const char *endpoint,
                   const char *away)
{
    char folder[PATH_MAX];
    if (endpoint && *endpoint)
        unlink(endpoint);
    if (*s->cgroup) {
        server_cgroup(s, server, folder);
        rmdir(folder);
    }
    slot_scratch(s, slot, folder);
    return slot >= 0 && !is_empty(folder) && rename(folder, away) == 0;
}
