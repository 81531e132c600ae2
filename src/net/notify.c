#include "net/notify.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A path, or with @ in front a name that is in no folder. -1: errno says why. */
static int reach(const char *name)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || len >= sizeof(to.sun_path)) {
        errno = EINVAL;
        return -1;
    }
    memcpy(to.sun_path, name, len);
    if (name[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0)
        return fd;
    int kept = errno;
    close(fd);
    errno = kept;
    return -1;
}

/* Half of what the watchdog waits, so that one late sign is no death. 0 where it is not for us. */
static int64_t watchdog_period(void)
{
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    if (!usec || (pid && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    int64_t us = strtoll(usec, NULL, 10);
    return us > 0 ? us / 2000 + (us < 2000) : 0;
}

void notify_open(struct notify *n)
{
    char quoted[LOG_QUOTE_MAX + 8];
    const char *name = getenv("NOTIFY_SOCKET");
    *n = (struct notify){.fd = -1};
    if (name && *name) {
        n->fd = reach(name);
        n->period_ms = watchdog_period();
        if (n->fd < 0)
            log_line(LOG_WARN, "NOTIFY_SOCKET cannot be reached, so nobody hears that we are ready",
                     "socket=%s why=\"%s\"", log_quote(quoted, str_of(name)), strerror(errno));
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

static bool say(const struct notify *n, const char *text)
{
    return send(n->fd, text, strlen(text), MSG_NOSIGNAL) >= 0 ||
           (errno != EAGAIN && errno != ENOBUFS && errno != EINTR);
}

/* What came later stands for what was not heard before. */
static void tell(struct notify *n, const char *text)
{
    if (!n || n->fd < 0)
        return;
    n->untold[0] = '\0';
    if (!say(n, text))
        snprintf(n->untold, sizeof(n->untold), "%s", text);
}

void notify_ready(struct notify *n, const char *status)
{
    char text[NOTIFY_TEXT_MAX];
    snprintf(text, sizeof(text), "READY=1\nSTATUS=%s", status);
    tell(n, text);
}

void notify_reloading(struct notify *n)
{
    char text[NOTIFY_TEXT_MAX];
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_monotonic_us());
    tell(n, text);
}

void notify_stopping(struct notify *n)
{
    tell(n, "STOPPING=1\nSTATUS=finishing what is under way");
}

void notify_tick(struct notify *n, int64_t monotonic_ms)
{
    if (!n || n->fd < 0)
        return;
    if (n->untold[0] && say(n, n->untold))
        n->untold[0] = '\0';
    if (n->period_ms == 0 || monotonic_ms < n->next_ms)
        return;
    if (say(n, "WATCHDOG=1"))
        n->next_ms = monotonic_ms + n->period_ms;
}
