#include "cli/stop.h"

#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

int stop_open(void)
{
    sigset_t set = stop_signals();
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void stop_heard(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) > 0)
        continue;
}

void stop_reset(void)
{
    sigset_t set = stop_signals();
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}
