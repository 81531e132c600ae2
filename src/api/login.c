/* A question is a path and a form; equal questions are one, whoever asks them.
 *
 *   asked ──remembered──▶ told at once
 *     └──▶ under way, perhaps with others who asked the same ──answer──▶ checked ──▶ all are told
 */
#include "api/login.h"

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "net/http_client.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECTIONS = 64,
    HASH_SIZE = 32,
    PROOF_MS = 60 * 1000, /* how long the token is valid that shows who asks */
};

static const char form_type[] = "application/x-www-form-urlencoded";

struct remembered {
    uint8_t hash[HASH_SIZE];
    struct link in_age; /* the oldest first */
    int64_t until_wall_ms;
    struct buf token;
};

/* One that is under way. */
struct question {
    struct login *login;
    uint8_t hash[HASH_SIZE];
    struct link in_list;
    const char *path;
    char account[ACCESS_ACCOUNT_MAX + 1]; /* whose the token must be */
    struct list waiting;
};

struct waiting {
    struct link of_question;
    struct link of_asker;
    login_done *done;
    void *user;
};

struct login {
    struct doors *doors;
    struct access *access;
    struct http_client *client;
    char url[LOGIN_URL_MAX];
    uint8_t hash_key[HASH_SIZE];
    struct map remembered; /* the first 8 bytes of the hash -> struct remembered */
    struct list by_age;
    struct map asked; /* the same -> struct question */
    struct list questions;
    size_t n_questions;
};

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct login *login_new(struct doors *doors, struct access *access)
{
    struct login *l = xcalloc(1, sizeof(*l));
    struct http_client_config config = {.timeout_ms = LOGIN_MS, .per_host = CONNECTIONS};
    l->doors = doors;
    l->access = access;
    l->client = http_client_new(doors->loop, &config);
    randombytes_buf(l->hash_key, sizeof(l->hash_key));
    list_init(&l->by_age);
    list_init(&l->questions);
    return l;
}

static uint64_t key_of(const uint8_t hash[HASH_SIZE])
{
    uint64_t key;
    memcpy(&key, hash, sizeof(key));
    return key;
}

static void forget(struct login *l, struct remembered *m)
{
    map_remove(&l->remembered, key_of(m->hash));
    list_remove(&m->in_age);
    sodium_memzero(m->token.data, m->token.len);
    buf_done(&m->token);
    free(m);
}

static void forget_all(struct login *l)
{
    LIST_EACH(&l->by_age, m, struct remembered, in_age)
    {
        forget(l, m);
    }
}

static void waiting_free(struct waiting *w)
{
    list_remove(&w->of_question);
    list_remove(&w->of_asker);
    free(w);
}

/* Nobody finds it any more; those who wait for it stay with it. */
static void withdraw(struct question *q)
{
    struct login *l = q->login;
    if (map_get(&l->asked, key_of(q->hash)) == q)
        map_remove(&l->asked, key_of(q->hash));
    list_remove(&q->in_list);
    l->n_questions--;
}

void login_free(struct login *l)
{
    if (!l)
        return;
    http_client_free(l->client);
    forget_all(l);
    LIST_EACH(&l->questions, q, struct question, in_list)
    {
        withdraw(q);
        LIST_EACH(&q->waiting, w, struct waiting, of_question)
        {
            waiting_free(w);
        }
        free(q);
    }
    map_done(&l->remembered);
    map_done(&l->asked);
    free(l);
}

void login_configure(struct login *l, const char *url)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    (void)str_copy(l->url, sizeof(l->url), (struct str){url, len});
    forget_all(l);
}

bool login_is_set(const struct login *l)
{
    return l->url[0] != '\0';
}

void login_forget(struct list *waiting)
{
    LIST_EACH(waiting, w, struct waiting, of_asker)
    {
        waiting_free(w);
    }
}

/* ── remembering ───────────────────────────────────────────────────────────────────────────── */

static void hash_question(const struct login *l, const char *path, const struct buf *form,
                          uint8_t ret[HASH_SIZE])
{
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, l->hash_key, sizeof(l->hash_key), HASH_SIZE);
    (void)crypto_generichash_update(&state, (const uint8_t *)path, strlen(path) + 1);
    (void)crypto_generichash_update(&state, form->data, form->len);
    (void)crypto_generichash_final(&state, ret, HASH_SIZE);
}

/* For half of its time: a game server that is started later must not get what is about to end. */
static void remember(struct login *l, const uint8_t hash[HASH_SIZE], struct str token,
                     int64_t expires_wall_ms)
{
    int64_t now_ms = l->doors->wall_ms;
    struct remembered *m = map_get(&l->remembered, key_of(hash));
    struct link *oldest = list_first(&l->by_age);
    if (m)
        forget(l, m);
    else if (oldest && l->remembered.len >= LOGIN_REMEMBERED_MAX)
        forget(l, container_of(oldest, struct remembered, in_age));
    m = xcalloc(1, sizeof(*m));
    memcpy(m->hash, hash, HASH_SIZE);
    m->until_wall_ms = now_ms + (expires_wall_ms - now_ms) / 2;
    buf_append(&m->token, token.at, token.len);
    map_put(&l->remembered, key_of(hash), m);
    list_append(&l->by_age, &m->in_age);
}

static bool recall(struct login *l, const uint8_t hash[HASH_SIZE], struct buf *out)
{
    struct remembered *m = map_get(&l->remembered, key_of(hash));
    if (!m || memcmp(m->hash, hash, HASH_SIZE) != 0)
        return false;
    if (l->doors->wall_ms >= m->until_wall_ms) {
        forget(l, m);
        return false;
    }
    buf_append(out, m->token.data, m->token.len);
    return true;
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

/* The token in {"token": "…"} or {"access_token": "…"}; empty when there is none. In root. */
static struct str token_in(const struct json *root)
{
    const struct json *token = NULL;
    if (root && json_kind(root) == JSON_KIND_OBJECT)
        token = json_member(root, "token");
    if (root && json_kind(root) == JSON_KIND_OBJECT && !token)
        token = json_member(root, "access_token");
    return token ? json_get_text(token) : (struct str){0};
}

/* 0, or ERR_LOGIN_FAILED with why. */
static int check(const struct question *q, struct str token, struct access_grant *ret, char *why)
{
    struct login *l = q->login;
    char clause[ACCESS_WHY_MAX];
    if (access_check(l->access, token, l->doors->wall_ms, ret, clause) != 0) {
        snprintf(why, LOGIN_WHY_MAX, "the token it gave is not valid: %s", clause);
        return ERR_LOGIN_FAILED;
    }
    if (strcmp(ret->account, q->account) != 0) {
        snprintf(why, LOGIN_WHY_MAX, "the token it gave is another account's");
        return ERR_LOGIN_FAILED;
    }
    return 0;
}

static void log_failure(const struct question *q, const char *why)
{
    struct log_entry e;
    if (!log_enabled(LOG_WARN))
        return;
    log_begin(&e, LOG_WARN, "the login service did not give a token");
    log_word(&e, "asked", q->path + 1);
    log_text(&e, "account", str_of(q->account));
    log_text(&e, "text", str_of(why));
    log_end(&e);
}

/* Whoever is told may ask again, and forget others who wait. */
static void tell_all(struct question *q, const struct login_answer *answer)
{
    struct link *n;
    withdraw(q);
    while ((n = list_first(&q->waiting))) {
        struct waiting *w = container_of(n, struct waiting, of_question);
        struct waiting told = *w;
        waiting_free(w);
        told.done(told.user, answer);
    }
    free(q);
}

static void on_answer(void *user, const struct http_reply *reply)
{
    struct question *q = user;
    struct login *l = q->login;
    struct access_grant grant = {0};
    char why[LOGIN_WHY_MAX] = "", ignored[JSON_WHY_MAX];
    struct json *root = reply->status == 200 ? json_parse(reply->body, ignored) : NULL;
    struct login_answer answer = {.err = ERR_LOGIN_FAILED, .token = token_in(root), .why = why};
    doors_read_clocks(l->doors);
    if (reply->status == 0)
        snprintf(why, sizeof(why), "%s", reply->why);
    else if (reply->status != 200)
        snprintf(why, sizeof(why), "it answered %d", reply->status);
    else if (answer.token.len == 0)
        snprintf(why, sizeof(why), "its answer holds no token");
    else
        answer.err = check(q, answer.token, &grant, why);
    if (answer.err != 0)
        log_failure(q, why);
    else
        remember(l, q->hash, answer.token, grant.expires_wall_ms);
    tell_all(q, &answer);
    json_free(root);
}

/* ── questions ─────────────────────────────────────────────────────────────────────────────── */

static void put_field(struct buf *form, const char *name, struct str value)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    if (form->len > 0)
        buf_append(form, "&", 1);
    buf_append(form, name, strlen(name));
    buf_append(form, "=", 1);
    for (size_t i = 0; i < value.len; i++) {
        char escaped[4];
        if (value.at[i] && strchr(plain, value.at[i])) {
            buf_append(form, &value.at[i], 1);
            continue;
        }
        snprintf(escaped, sizeof(escaped), "%%%02X", (unsigned char)value.at[i]);
        buf_append(form, escaped, 3);
    }
}

static void join(struct question *q, const struct login_asker *asker)
{
    struct waiting *w = xcalloc(1, sizeof(*w));
    w->done = asker->done;
    w->user = asker->user;
    list_append(&q->waiting, &w->of_question);
    list_append(asker->waiting, &w->of_asker);
}

/* NULL when it cannot be asked. */
static struct question *begin(struct login *l, const char *path, const char *account,
                              const struct buf *form, const uint8_t hash[HASH_SIZE])
{
    char url[LOGIN_URL_MAX + 16];
    if (!login_is_set(l) || l->n_questions >= LOGIN_QUESTIONS_MAX)
        return NULL;
    struct question *q = xcalloc(1, sizeof(*q));
    *q = (struct question){.login = l, .path = path};
    memcpy(q->hash, hash, HASH_SIZE);
    (void)str_copy(q->account, sizeof(q->account), str_of(account));
    list_init(&q->waiting);
    snprintf(url, sizeof(url), "%s%s", l->url, path);
    if (!http_client_ask(l->client, HTTP_POST, url,
                         (struct str){(const char *)form->data, form->len}, form_type, on_answer,
                         q)) {
        free(q);
        return NULL;
    }
    if (!map_get(&l->asked, key_of(hash)))
        map_put(&l->asked, key_of(hash), q);
    list_append(&l->questions, &q->in_list);
    l->n_questions++;
    return q;
}

/* Takes the form. */
static enum login_begun ask(struct login *l, const char *path, const char *account,
                            struct buf *form, const struct login_asker *asker, struct buf *out)
{
    uint8_t hash[HASH_SIZE];
    enum login_begun begun = LOGIN_KNOWN;
    hash_question(l, path, form, hash);
    if (!recall(l, hash, out)) {
        struct question *q = map_get(&l->asked, key_of(hash));
        if (!q || memcmp(q->hash, hash, HASH_SIZE) != 0)
            q = begin(l, path, account, form, hash);
        begun = q ? LOGIN_ASKED : LOGIN_BUSY;
        if (q)
            join(q, asker);
    }
    sodium_memzero(form->data, form->len);
    buf_done(form);
    return begun;
}

enum login_begun login_extend(struct login *l, const char *account, struct str token, struct str by,
                              struct str asked, const struct login_asker *asker, struct buf *out)
{
    struct buf form = {0};
    put_field(&form, "access_token", token);
    put_field(&form, "extend", by);
    put_field(&form, "scopes", asked);
    http_client_set_token(l->client, NULL);
    return ask(l, "/extend", account, &form, asker, out);
}

enum login_begun login_issue(struct login *l, const char *account, const char *scopes,
                             const struct login_asker *asker, struct buf *out)
{
    struct buf form = {0}, proof = {0};
    int64_t now_ms = l->doors->wall_ms;
    put_field(&form, "credential", STR("muster"));
    put_field(&form, "account", str_of(account));
    put_field(&form, "scopes", str_of(scopes));
    put_field(&form, "full", STR("true"));
    access_issue(l->access, "muster", ACCESS_GAME, now_ms, now_ms + PROOF_MS, &proof);
    buf_append(&proof, "", 1);
    http_client_set_token(l->client, (const char *)proof.data);
    buf_done(&proof);
    return ask(l, "/auth", account, &form, asker, out);
}
