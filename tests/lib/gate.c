/* A disk for tests, preloaded in front of libc: while the file named by MUSTER_TEST_GATE exists, no
 * fsync or fdatasync returns; while that name with ".broken" behind it exists, they fail. The name
 * with ".waiting" behind it appears when somebody waits, so that a test need not guess. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int exists(const char *name, const char *suffix)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s%s", name, suffix);
    return access(path, F_OK) == 0;
}

static void say_waiting(const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s.waiting", name);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

static int pass(const char *symbol, int fd)
{
    const char *name = getenv("MUSTER_TEST_GATE");
    if (name && exists(name, "")) {
        say_waiting(name);
        while (exists(name, ""))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (name && exists(name, ".broken")) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, symbol);
    return real(fd);
}

int fsync(int fd)
{
    return pass("fsync", fd);
}

int fdatasync(int fd)
{
    return pass("fdatasync", fd);
}
