#include "agent/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 16, ENDPOINT_MODE = 0660, FOLDER_MODE = 0700 };

void endpoints_init(struct endpoints *e, const char *sockets)
{
    snprintf(e->folder, sizeof(e->folder), "%.*s/spare", (int)sizeof(e->folder) - 16, sockets);
    for (int i = 0; i < ENDPOINT_SPARES; i++)
        e->spares[i] = -1;
}

static void spare_path(const struct endpoints *e, int i, char ret[SANDBOX_SOCKET_MAX])
{
    snprintf(ret, SANDBOX_SOCKET_MAX, "%.*s/%d", SANDBOX_SOCKET_MAX - 8, e->folder, i);
}

void endpoints_done(struct endpoints *e)
{
    char path[SANDBOX_SOCKET_MAX];
    for (int i = 0; i < ENDPOINT_SPARES; i++) {
        if (e->spares[i] < 0)
            continue;
        close(e->spares[i]);
        e->spares[i] = -1;
        spare_path(e, i, path);
        unlink(path);
    }
}

/* The mode before it listens: nobody connects to what is open to others for a moment. */
static bool listen_at(int fd, const char *path)
{
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof(here.sun_path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(here.sun_path, path, len);
    return bind(fd, (struct sockaddr *)&here, sizeof(here)) == 0 &&
           chmod(path, ENDPOINT_MODE) == 0 && listen(fd, BACKLOG) == 0;
}

static int make(const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || listen_at(fd, path))
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

bool endpoints_lay_in(struct endpoints *e)
{
    char path[SANDBOX_SOCKET_MAX];
    for (int i = 0; i < ENDPOINT_SPARES; i++) {
        if (e->spares[i] >= 0)
            continue;
        spare_path(e, i, path);
        unlink(path); /* of an agent that was killed */
        e->spares[i] = make(path);
        if (e->spares[i] < 0 && errno == ENOENT && mkdir(e->folder, FOLDER_MODE) == 0)
            e->spares[i] = make(path);
        return e->spares[i] >= 0 && i + 1 < ENDPOINT_SPARES;
    }
    return false;
}

int endpoints_listen(struct endpoints *e, const char *path)
{
    char spare[SANDBOX_SOCKET_MAX];
    for (int i = 0; i < ENDPOINT_SPARES; i++) {
        int fd = e->spares[i];
        if (fd < 0)
            continue;
        e->spares[i] = -1;
        spare_path(e, i, spare);
        if (rename(spare, path) == 0)
            return fd;
        close(fd);
    }
    return make(path);
}
