#include "shim/talk.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union ancillary {
    struct cmsghdr align;
    char room[CMSG_SPACE(SHIM_FDS_MAX * sizeof(int))];
};

int talk_send(int sock, const struct shim_message *m, const int fds[SHIM_FDS_MAX], const char *tail)
{
    struct iovec parts[2] = {{(void *)m, sizeof(*m)}, {(void *)tail, m->tail_len}};
    struct msghdr head = {.msg_iov = parts, .msg_iovlen = m->tail_len > 0 ? 2 : 1};
    union ancillary extra;
    int out[SHIM_FDS_MAX];
    size_t n = 0;
    for (int i = 0; i < SHIM_FDS_MAX; i++)
        if (m->fds & 1U << i)
            out[n++] = fds[i];
    if (n > 0) {
        memset(&extra, 0, sizeof(extra));
        head.msg_control = extra.room;
        head.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&head);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), out, n * sizeof(int));
    }
    return sendmsg(sock, &head, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* Hands the descriptors to those whose bits are set; there may be fewer when we ran out of them. */
static void take_fds(struct msghdr *head, uint32_t bits, int fds[SHIM_FDS_MAX])
{
    int got[SHIM_FDS_MAX];
    size_t n = 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(head);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(got, CMSG_DATA(c), n * sizeof(int));
    }
    size_t used = 0;
    for (int i = 0; i < SHIM_FDS_MAX; i++)
        if (bits & 1U << i && used < n)
            fds[i] = got[used++];
    while (used < n)
        close(got[used++]);
}

int talk_receive(int sock, struct shim_message *m, int fds[SHIM_FDS_MAX], char *tail, int flags)
{
    struct iovec parts[2] = {{m, sizeof(*m)}, {tail, SHIM_TAIL_MAX}};
    union ancillary extra;
    struct msghdr head = {.msg_iov = parts,
                          .msg_iovlen = tail ? 2 : 1,
                          .msg_control = extra.room,
                          .msg_controllen = sizeof(extra.room)};
    for (int i = 0; i < SHIM_FDS_MAX; i++)
        fds[i] = -1;
    ssize_t n;
    do {
        n = recvmsg(sock, &head, flags | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -1;
    bool ours = n >= (ssize_t)sizeof(*m) && m->version == SHIM_VERSION;
    take_fds(&head, ours ? m->fds : 0, fds);
    if (!ours)
        return 0;
    size_t came = (size_t)n - sizeof(*m);
    if (!tail || m->tail_len > came)
        m->tail_len = tail ? (uint32_t)came : 0;
    return 1;
}
