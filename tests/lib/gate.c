/* A disk for tests, preloaded in front of libc and steered by files next to MUSTER_TEST_GATE:
 *
 *   NAME          while it exists no fsync or fdatasync returns
 *   NAME.waiting  appears when somebody waits for a file to go, so that a test need not guess
 *   NAME.broken   while it exists fsync and fdatasync fail
 *   NAME.full     while it exists nothing more can be written below MUSTER_TEST_GATE_FOLDER
 *   NAME.kept     while it exists no folder is removed */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int exists(const char *suffix)
{
    const char *name = getenv("MUSTER_TEST_GATE");
    char path[4096];
    if (!name)
        return 0;
    snprintf(path, sizeof(path), "%s%s", name, suffix);
    return access(path, F_OK) == 0;
}

static void say_waiting(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s.waiting", getenv("MUSTER_TEST_GATE"));
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

static void wait_while(const char *suffix)
{
    if (exists(suffix))
        say_waiting();
    while (exists(suffix))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int sync_through(const char *symbol, int fd)
{
    wait_while("");
    if (exists(".broken")) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, symbol);
    return real(fd);
}

int fsync(int fd)
{
    return sync_through("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_through("fdatasync", fd);
}

int rmdir(const char *path)
{
    int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "rmdir");
    wait_while(".kept");
    return real(path);
}

/* Sets errno when it is. */
static int is_full(int fd)
{
    const char *folder = getenv("MUSTER_TEST_GATE_FOLDER");
    char link[64], path[4096];
    if (!folder || !exists(".full"))
        return 0;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return 0;
    path[n] = '\0';
    if (strncmp(path, folder, strlen(folder)) != 0)
        return 0;
    errno = ENOSPC;
    return 1;
}

ssize_t write(int fd, const void *data, size_t len)
{
    ssize_t (*real)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return is_full(fd) ? -1 : real(fd, data, len);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    ssize_t (*real)(int, const void *, size_t, off_t) =
        (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    return is_full(fd) ? -1 : real(fd, data, len, at);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    ssize_t (*real)(int, const void *, size_t, off64_t) =
        (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    return is_full(fd) ? -1 : real(fd, data, len, at);
}
