/* A game server for the tests of processes: does what its fourth argument says. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

extern char **environ;

static void show_limit(const char *name, int what)
{
    struct rlimit limit;
    getrlimit((__rlimit_resource_t)what, &limit);
    printf("limit %s=%lld\n", name, (long long)limit.rlim_max);
}

static int show(int argc, char **argv)
{
    char line[512];
    for (int i = 0; i < argc; i++)
        printf("argv %s\n", argv[i]);
    for (char **e = environ; *e; e++)
        printf("env %s\n", *e);
    printf("cwd %s\n", getcwd(line, sizeof(line)));
    show_limit("files", RLIMIT_NOFILE);
    show_limit("processes", RLIMIT_NPROC);
    show_limit("core", RLIMIT_CORE);
    show_limit("file", RLIMIT_FSIZE);
    printf("leader %d session %d\n", getpgrp() == getpid(), getsid(0) == getppid());
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("fd %d\n", fd);
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof(line), status))
        printf("status %s", line);
    return 0;
}

static int flood(long mib)
{
    static char block[1 << 20];
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = i % 64 == 63 ? '\n' : 'x';
    for (long i = 0; i < mib; i++)
        for (size_t done = 0; done < sizeof(block);) {
            ssize_t n = write(1, block + done, sizeof(block) - done);
            if (n < 0)
                return 1;
            done += (size_t)n;
        }
    printf("the last line\n");
    return 0;
}

/* "exit N" on its input ends it, everything else is said back. */
static int echo(void)
{
    char line[8192];
    int code;
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "exit %d", &code) == 1)
            return code;
        printf("heard %s", line);
    }
    return 99; /* the end of its input, which must not come */
}

static int leave_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        for (;;)
            pause();
    }
    printf("left %d\n", (int)pid);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[3] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(what, "show") == 0)
        return show(argc, argv);
    if (strcmp(what, "exit") == 0)
        return atoi(argv[4]);
    if (strcmp(what, "flood") == 0)
        return flood(atol(argv[4]));
    if (strcmp(what, "leave") == 0)
        return leave_child();
    if (strcmp(what, "stubborn") == 0)
        signal(SIGTERM, SIG_IGN);
    printf("ready\n");
    while (strcmp(what, "wait") == 0)
        pause();
    return echo();
}
