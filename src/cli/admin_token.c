#include "cli/admin_token.h"

#include "base/err.h"
#include "base/full.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "admin.token";
static const char draft_name[] = "admin.token.new";

#define DAY_MS (24 * 3600 * (int64_t)1000)
#define VALID_MS (365 * DAY_MS)
#define RENEW_MS (30 * DAY_MS)

static int fail(char *why, const char *folder)
{
    snprintf(why, ADMIN_TOKEN_WHY_MAX, "Cannot write %s/%s: %s", folder, file_name,
             full_reason(errno));
    return ERR_IO;
}

/* The token that is there; empty when there is none, or others could have read or written it. */
static struct str read_token(int dir, char *text, size_t cap)
{
    struct stat st;
    ssize_t n = -1;
    int fd = openat(dir, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return (struct str){0};
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & (S_IRWXG | S_IRWXO)))
        n = read(fd, text, cap);
    close(fd);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    return (struct str){text, n > 0 ? (size_t)n : 0};
}

static bool is_good(struct access *access, struct str token, int64_t wall_ms)
{
    struct access_grant grant;
    char why[ACCESS_WHY_MAX];
    return token.len > 0 && access_check(access, token, wall_ms, &grant, why) == 0 &&
           grant.scopes == ACCESS_ALL && grant.expires_wall_ms >= wall_ms + RENEW_MS;
}

/* Beside, synced, then renamed: there is a whole token or the old one, never a piece. */
static bool write_token(int dir, const struct buf *text)
{
    int fd = openat(dir, draft_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    bool written = fchmod(fd, 0600) == 0 &&
                   write(fd, text->data, text->len) == (ssize_t)text->len && fsync(fd) == 0;
    int kept = errno;
    close(fd);
    errno = kept;
    return written && renameat(dir, draft_name, dir, file_name) == 0 && fsync(dir) == 0;
}

int admin_token_keep(const char *folder, struct access *access, int64_t wall_ms, bool *ret_written,
                     char why[ADMIN_TOKEN_WHY_MAX])
{
    char text[ACCESS_TOKEN_MAX];
    struct buf token = {0};
    int err = 0;
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return fail(why, folder);
    *ret_written = !is_good(access, read_token(dir, text, sizeof(text)), wall_ms);
    if (*ret_written) {
        access_issue(access, "admin", ACCESS_ALL, wall_ms, wall_ms + VALID_MS, &token);
        buf_append(&token, "\n", 1);
        if (!write_token(dir, &token))
            err = fail(why, folder);
    }
    explicit_bzero(text, sizeof(text));
    buf_done(&token);
    close(dir);
    return err;
}
