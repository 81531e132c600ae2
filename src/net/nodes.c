#include "net/nodes.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { DOUBLINGS_MAX = 8, SILENT_EVERY = 4 };

/* ── the list ──────────────────────────────────────────────────────────────────────────────── */

static bool is_https(const char *url)
{
    return strncasecmp(url, "https://", 8) == 0;
}

/* Where the host begins; 0 when it is no URL of http or https. */
static size_t scheme_length(const char *url)
{
    return is_https(url) ? 8 : strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
}

static bool take_address(char node[NODES_TEXT_MAX], struct str text)
{
    if (!str_copy(node, NODES_TEXT_MAX, text))
        return false;
    const char *colon = strrchr(node, ':');
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    return colon && colon > node && digits > 0 && digits <= 5 && !colon[1 + digits] &&
           !strpbrk(node, " \t\r\n/");
}

static bool take_url(char node[NODES_TEXT_MAX], struct str text)
{
    char plain[NODES_TEXT_MAX];
    if (!str_copy(plain, sizeof(plain), text) || strpbrk(plain, " ?#@\\\t\r\n"))
        return false;
    bool has_scheme = strstr(plain, "://") != NULL;
    int len = snprintf(node, NODES_TEXT_MAX, "%s%s", has_scheme ? "" : "http://", plain);
    if (len >= NODES_TEXT_MAX)
        return false;
    while (len > 0 && node[len - 1] == '/')
        node[--len] = '\0';
    size_t scheme = scheme_length(node);
    return scheme > 0 && (size_t)len > scheme;
}

static void turn_to(struct nodes *n, const char *node)
{
    memmove(n->now, node, strlen(node) + 1);
}

static int read_list(struct nodes *n, const char *text,
                     bool (*take)(char node[NODES_TEXT_MAX], struct str text), const char *what,
                     char why[NODES_WHY_MAX])
{
    int64_t wait_max_ms = n->wait_max_ms;
    *n = (struct nodes){.wait_max_ms = wait_max_ms};
    for (const char *at = text; at;) {
        struct str one = {at, strcspn(at, ",")};
        at = at[one.len] ? at + one.len + 1 : NULL;
        if (n->n == NODES_MAX) {
            snprintf(why, NODES_WHY_MAX, "at most %d, with commas between them", NODES_MAX);
            return -1;
        }
        if (!take(n->list[n->n], one)) {
            snprintf(why, NODES_WHY_MAX, "%s, or several with commas between them, not '%.*s'",
                     what, (int)(one.len < 100 ? one.len : 100), one.at);
            return -1;
        }
        n->n++;
    }
    turn_to(n, n->list[0]);
    return 0;
}

int nodes_read_addresses(struct nodes *n, const char *text, char why[NODES_WHY_MAX])
{
    return read_list(n, text, take_address, "HOST:PORT", why);
}

int nodes_read_urls(struct nodes *n, const char *text, char why[NODES_WHY_MAX])
{
    return read_list(n, text, take_url, "a URL as http://10.0.0.1:9508", why);
}

bool nodes_are_several(const struct nodes *n)
{
    return n->n > 1 || n->in_cell;
}

/* ── what came of asking ───────────────────────────────────────────────────────────────────── */

static void begin_round(struct nodes *n)
{
    n->tried = 0;
    n->hops = 0;
    n->stood_by = false;
}

void nodes_succeed(struct nodes *n)
{
    begin_round(n);
    n->rounds = 0;
    n->silent = 0;
}

/* So that a thousand that lost it together do not come back together. */
static int64_t jittered(int64_t ms)
{
    return ms / 2 + (int64_t)randombytes_uniform((uint32_t)(ms / 2 + 1));
}

static int64_t end_round(struct nodes *n)
{
    assert(n->wait_max_ms >= NODES_WAIT_FIRST_MS); /* who never waits would do nothing but ask */
    int64_t most_ms = n->stood_by && NODES_WAIT_STANDBY_MS < n->wait_max_ms ? NODES_WAIT_STANDBY_MS
                                                                            : n->wait_max_ms;
    int64_t wait_ms = (int64_t)NODES_WAIT_FIRST_MS
                      << (n->rounds < DOUBLINGS_MAX ? n->rounds : DOUBLINGS_MAX);
    begin_round(n);
    n->rounds++;
    return jittered(wait_ms < most_ms ? wait_ms : most_ms);
}

static bool is_silent(const struct nodes *n, size_t at)
{
    return (n->silent >> at & 1) != 0;
}

static bool is_passed_over(const struct nodes *n, size_t at)
{
    bool all = n->silent == (UINT32_C(1) << n->n) - 1;
    return is_silent(n, at) && !all && n->rounds % SILENT_EVERY != SILENT_EVERY - 1;
}

static void note_answer(struct nodes *n, bool answered)
{
    uint32_t bit = UINT32_C(1) << n->at;
    if (n->is_named)
        return;
    n->tried++;
    n->silent = answered ? n->silent & ~bit : n->silent | bit;
}

int64_t nodes_fail(struct nodes *n, bool stands_by)
{
    int64_t wait_ms = 0;
    n->stood_by |= stands_by;
    n->in_cell |= stands_by;
    note_answer(n, stands_by);
    n->is_named = false;
    n->at = (n->at + 1) % n->n;
    while (n->tried < n->n && is_passed_over(n, n->at)) {
        n->at = (n->at + 1) % n->n;
        n->tried++;
    }
    if (n->tried >= n->n)
        wait_ms = end_round(n);
    while (is_passed_over(n, n->at))
        n->at = (n->at + 1) % n->n;
    turn_to(n, n->list[n->at]);
    return wait_ms;
}

static bool find(const struct nodes *n, const char *node, size_t *ret)
{
    for (*ret = 0; *ret < n->n; ++*ret) {
        if (strcasecmp(n->list[*ret], node) == 0)
            return true;
    }
    return false;
}

static bool follow(struct nodes *n, const char *node)
{
    size_t at = 0;
    bool listed = find(n, node, &at);
    n->stood_by = n->in_cell = true;
    if (n->hops == NODES_HOPS_MAX || strcasecmp(n->now, node) == 0 || (n->is_named && !listed) ||
        (is_https(n->now) && !is_https(node)) || (listed && is_silent(n, at)))
        return false;
    n->hops++;
    note_answer(n, true);
    n->is_named = !listed;
    n->at = listed ? at : n->at;
    turn_to(n, node);
    return true;
}

bool nodes_follow_url(struct nodes *n, const char *location)
{
    char node[NODES_TEXT_MAX];
    size_t scheme = scheme_length(location);
    size_t host = scheme > 0 ? strcspn(location + scheme, "/?#") : 0;
    return host > 0 && take_url(node, (struct str){location, scheme + host}) && follow(n, node);
}

bool nodes_follow_sentence(struct nodes *n, struct str sentence)
{
    char node[NODES_TEXT_MAX];
    struct str leader = {0};
    return nodes_is_standby(sentence, &leader) && take_address(node, leader) && follow(n, node);
}

/* ── what a standby's chat port says ───────────────────────────────────────────────────────── */

bool nodes_is_standby(struct str sentence, struct str *leader)
{
    static const char is_at[] = " is at ";
    static const char nobody[] = "nobody leads cell ";
    const size_t len = strlen(is_at);
    *leader = STR("");
    for (size_t at = sentence.len; at >= len; at--) {
        struct str rest = {sentence.at + at, sentence.len - at};
        if (memcmp(rest.at - len, is_at, len) != 0)
            continue;
        *leader = rest;
        return rest.len > 0 && !memchr(rest.at, ' ', rest.len);
    }
    return sentence.len > 0 && memmem(sentence.at, sentence.len, nobody, strlen(nobody)) != NULL;
}
