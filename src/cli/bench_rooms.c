#include "cli/bench_rooms.h"

#include "api/access.h"
#include "base/clock.h"
#include "cli/bench_child.h"
#include "cli/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOUR_MS = 3600 * 1000 };

/* With another number, another token. */
static void issue(const struct access *access, const char *account, uint32_t scope, int64_t number,
                  char dst[BENCH_ROOM_TOKEN_MAX])
{
    struct buf text = {0};
    int64_t now_ms = clock_wall_ms() / 1000 * 1000;
    access_issue(access, account, scope, now_ms, now_ms + HOUR_MS + number * 1000, &text);
    (void)str_copy(dst, BENCH_ROOM_TOKEN_MAX, (struct str){(const char *)text.data, text.len});
    buf_done(&text);
}

static bool make(struct bench_players *p, struct bench *b, const char *data, size_t n,
                 size_t tokens_each, bool numbers)
{
    uint8_t secret[CORE_SECRET_SIZE];
    char why[SECRET_WHY_MAX], account[32];
    if (secret_load(data, false, secret, why) != 0)
        return bench_fail(b, "%s", why);
    struct access *access = access_new(secret);
    access_configure(access, "1", NULL, 0);
    issue(access, "host", ACCESS_HOST, 0, p->host);
    p->n = n * tokens_each;
    p->tokens = xcalloc(p->n, sizeof(*p->tokens));
    for (size_t i = 0; i < p->n; i++) {
        if (numbers)
            snprintf(account, sizeof(account), "%zu", i + 1);
        else
            snprintf(account, sizeof(account), "player-%zu", i % n);
        issue(access, account, ACCESS_GAME, (int64_t)(i / n), p->tokens[i]);
    }
    access_free(access);
    explicit_bzero(secret, sizeof(secret));
    return true;
}

bool bench_players_make(struct bench_players *p, struct bench *b, const char *data, size_t n,
                        size_t tokens_each)
{
    return make(p, b, data, n, tokens_each, false);
}

bool bench_accounts_make(struct bench_players *p, struct bench *b, const char *data, size_t n)
{
    return make(p, b, data, n, 1, true);
}

void bench_players_done(struct bench_players *p)
{
    free(p->tokens);
    *p = (struct bench_players){0};
}

const char *bench_player(const struct bench_players *p, int64_t i)
{
    return p->tokens[(size_t)i % p->n];
}

struct agent_start {
    const char *control;
    const char *token;
    const char *folder;
};

static void become_agent(void *user)
{
    const struct agent_start *a = user;
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    setenv("MUSTER_TOKEN", a->token, 1);
    execl("/proc/self/exe", "muster", "agent", "--control", a->control, "--region", "EU",
          "--listen", "127.0.0.1:0", "--data", a->folder, "--name", "bench", "--uids", "none",
          "--end-servers", "--log-level", bench_options.log_level, NULL);
    _exit(127);
}

bool bench_agent_start(struct bench *b, const struct served *s, const struct bench_players *p,
                       pid_t *ret)
{
    char url[96], folder[BENCH_PATH_MAX];
    snprintf(url, sizeof(url), "http://%s", s->http);
    struct agent_start a = {url, p->host, bench_path(b, "agent", folder)};
    *ret = child_start(become_agent, &a);
    return *ret > 0 || bench_fail(b, "muster agent cannot be started: %s", strerror(errno));
}
