/*   none ──get──▶ asking ──token──▶ kept ──shortly before its end──▶ asking, the old one still used
 *                  │  ▲              └──refused──▶ none
 *                  ▼  │
 *                waiting, longer with each failure
 */
#include "api/google_token.h"

#include "api/backoff.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "net/loop.h"

#include <errno.h>
#include <jwt.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_MAX = 64 * 1024,
    PROOF_S = 3600,        /* how long what we sign is valid; Google takes no more */
    EARLY_MS = 240 * 1000, /* the metadata server gives a new one in the last five minutes */
    SHORTEST_MS = 1000,    /* a token that ends sooner is asked for again after this */
    EMAIL_MAX = 320,
    URL_MAX = 512,
};

static const char default_token_uri[] = "https://oauth2.googleapis.com/token";
static const char scope[] = "https://www.googleapis.com/auth/pubsub";
static const char grant_head[] =
    "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";

struct google_token {
    struct http_client *client;
    struct http_call *call; /* under way */
    uv_timer_t again;       /* when it is asked for again */
    void (*changed)(void *user);
    void *user;
    struct backoff backoff;
    char *token;
    int64_t ends_ms; /* monotonic: it is not shown from then on */
    char why[GOOGLE_WHY_MAX];

    char url[URL_MAX]; /* who gives it */
    char *email;       /* of the service account; NULL = the metadata server is asked */
    char *key;         /* PEM */
    char *key_id;
};

static void begin(struct google_token *t);

/* ── the service account ───────────────────────────────────────────────────────────────────── */

static bool refuse(char *why, const char *file, const char *clause)
{
    snprintf(why, GOOGLE_WHY_MAX, "Cannot use the Google credentials %.110s: %.100s", file, clause);
    return false;
}

static bool read_file(const char *file, struct buf *out, char *why)
{
    FILE *f = fopen(file, "re");
    if (!f)
        return refuse(why, file, strerror(errno));
    size_t n = fread(buf_extend(out, FILE_MAX), 1, FILE_MAX, f);
    bool failed = ferror(f) != 0;
    out->len = n;
    (void)fclose(f);
    return failed ? refuse(why, file, "it cannot be read") : true;
}

static char *member(const struct json *root, const char *name)
{
    const struct json *v = json_member(root, name);
    struct str text = v ? json_get_text(v) : (struct str){0};
    if (text.len == 0)
        return NULL;
    char *copy = xmalloc(text.len + 1);
    (void)str_copy(copy, text.len + 1, text);
    return copy;
}

/* What shows the token endpoint that we are that account; NULL when the key is none. To be freed.
 */
static char *sign_proof(const struct google_token *t)
{
    jwt_t *jwt = NULL;
    char *proof = NULL;
    long now_s = (long)(clock_wall_ms() / 1000);
    if (jwt_new(&jwt) != 0)
        abort(); /* out of memory, as in buf.h */
    if (jwt_set_alg(jwt, JWT_ALG_RS256, (const unsigned char *)t->key, (int)strlen(t->key)) == 0 &&
        (!t->key_id || jwt_add_header(jwt, "kid", t->key_id) == 0) &&
        jwt_add_grant(jwt, "iss", t->email) == 0 && jwt_add_grant(jwt, "scope", scope) == 0 &&
        jwt_add_grant(jwt, "aud", t->url) == 0 && jwt_add_grant_int(jwt, "iat", now_s) == 0 &&
        jwt_add_grant_int(jwt, "exp", now_s + PROOF_S) == 0)
        proof = jwt_encode_str(jwt);
    jwt_free(jwt);
    return proof;
}

static bool take_account(struct google_token *t, const struct json *root, const char *file,
                         char *why)
{
    char *type = member(root, "type");
    bool is_account = type && strcmp(type, "service_account") == 0;
    free(type);
    if (!is_account)
        return refuse(why, file, "it is no service account's key (type is not service_account)");
    char *uri = member(root, "token_uri");
    bool fits = str_copy(t->url, sizeof(t->url), str_of(uri ? uri : default_token_uri));
    free(uri);
    t->email = member(root, "client_email");
    t->key = member(root, "private_key");
    t->key_id = member(root, "private_key_id");
    if (!fits || !t->email || !t->key)
        return refuse(why, file, "client_email or private_key is missing, or token_uri too long");
    char *proof = sign_proof(t);
    if (!proof)
        return refuse(why, file, "its private_key is no RSA key in PEM");
    free(proof);
    return true;
}

static bool load_account(struct google_token *t, const char *file, char *why)
{
    struct buf text = {0};
    char clause[JSON_WHY_MAX];
    bool ok = read_file(file, &text, why);
    if (ok) {
        struct json *root = json_parse((struct str){(const char *)text.data, text.len}, clause);
        if (!root)
            ok = refuse(why, file, clause);
        else if (json_kind(root) != JSON_KIND_OBJECT)
            ok = refuse(why, file, "it is no JSON object");
        else
            ok = take_account(t, root, file, why);
        json_free(root);
    }
    if (text.data)
        sodium_memzero(text.data, text.cap);
    buf_done(&text);
    return ok;
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void wipe(char **text)
{
    if (*text)
        sodium_memzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct google_token *t = handle->data;
    wipe(&t->token);
    wipe(&t->key);
    free(t->key_id);
    free(t->email);
    free(t);
}

void google_token_free(struct google_token *t)
{
    if (!t)
        return;
    if (t->call)
        http_call_drop(t->call);
    uv_close((uv_handle_t *)&t->again, on_closed);
}

struct google_token *google_token_new(struct loop *loop, struct http_client *client,
                                      const char *credentials_file, void (*changed)(void *user),
                                      void *user, char why[GOOGLE_WHY_MAX])
{
    const char *host = getenv("GCE_METADATA_HOST");
    struct google_token *t = xcalloc(1, sizeof(*t));
    *t = (struct google_token){.client = client, .changed = changed, .user = user};
    uv_timer_init(&loop->uv, &t->again);
    t->again.data = t;
    snprintf(t->url, sizeof(t->url),
             "http://%s/computeMetadata/v1/instance/service-accounts/default/token",
             host && *host ? host : "metadata.google.internal");
    if (*credentials_file && !load_account(t, credentials_file, why)) {
        google_token_free(t);
        return NULL;
    }
    return t;
}

/* ── getting one ───────────────────────────────────────────────────────────────────────────── */

static void on_again(uv_timer_t *handle)
{
    begin(handle->data);
}

static void fail(struct google_token *t, const char *clause)
{
    int64_t wait_ms = backoff_next_ms(&t->backoff);
    snprintf(t->why, sizeof(t->why), "%s", clause);
    if (log_enabled(LOG_WARN)) {
        struct log_entry e;
        log_begin(&e, LOG_WARN, "Google gave no access token");
        log_text(&e, "asked", str_of(t->url));
        log_text(&e, "why", str_of(clause));
        log_int(&e, "again_ms", wait_ms);
        log_end(&e);
    }
    uv_timer_start(&t->again, on_again, (uint64_t)wait_ms, 0);
    t->changed(t->user);
}

static void keep(struct google_token *t, struct str token, int64_t valid_ms)
{
    int64_t early_ms = valid_ms / 4 < EARLY_MS ? valid_ms / 4 : EARLY_MS;
    int64_t refresh_ms = valid_ms - early_ms > SHORTEST_MS ? valid_ms - early_ms : SHORTEST_MS;
    wipe(&t->token);
    t->token = xmalloc(token.len + 1);
    (void)str_copy(t->token, token.len + 1, token);
    t->ends_ms = clock_monotonic_ms() + valid_ms;
    t->backoff = (struct backoff){0};
    t->why[0] = '\0';
    uv_timer_start(&t->again, on_again, (uint64_t)refresh_ms, 0);
    t->changed(t->user);
}

static bool is_plain(struct str token)
{
    for (size_t i = 0; i < token.len; i++) {
        if (token.at[i] <= ' ' || token.at[i] > '~')
            return false; /* it will stand in a header */
    }
    return token.len > 0;
}

static void on_reply(void *user, const struct http_reply *reply)
{
    struct google_token *t = user;
    char clause[JSON_WHY_MAX];
    t->call = NULL;
    if (reply->status != 200) {
        snprintf(clause, sizeof(clause), "it answered %d", reply->status);
        fail(t, reply->status == 0 ? reply->why : clause);
        return;
    }
    struct json *root = json_parse(reply->body, clause);
    const struct json *token = root ? json_member(root, "access_token") : NULL;
    const struct json *valid = root ? json_member(root, "expires_in") : NULL;
    struct str text = token ? json_get_text(token) : (struct str){0};
    int64_t valid_s = valid ? json_get_int(valid) : 0;
    if (!is_plain(text) || valid_s <= 0 || valid_s > INT32_MAX)
        fail(t, "its answer holds no token");
    else
        keep(t, text, valid_s * 1000);
    json_free(root);
}

static struct http_call *ask_metadata(struct google_token *t)
{
    static const struct http_field head[] = {{"Metadata-Flavor", "Google"}, {NULL, NULL}};
    struct http_client_request request = {.method = HTTP_GET, .url = t->url, .head = head};
    return http_client_send(t->client, &request, on_reply, t);
}

/* A JWT needs no escapes in a form. */
static struct http_call *ask_endpoint(struct google_token *t)
{
    struct buf form = {0};
    char *proof = sign_proof(t);
    if (!proof)
        abort(); /* it could sign when it was read, so memory is out */
    buf_append(&form, grant_head, strlen(grant_head));
    buf_append(&form, proof, strlen(proof));
    struct http_client_request request = {.method = HTTP_POST,
                                          .url = t->url,
                                          .body = {(const char *)form.data, form.len},
                                          .content_type = "application/x-www-form-urlencoded"};
    struct http_call *call = http_client_send(t->client, &request, on_reply, t);
    wipe(&proof);
    sodium_memzero(form.data, form.len);
    buf_done(&form);
    return call;
}

static void begin(struct google_token *t)
{
    uv_timer_stop(&t->again);
    t->call = t->email ? ask_endpoint(t) : ask_metadata(t);
    if (!t->call)
        fail(t, "libcurl cannot be used");
}

/* ── using it ──────────────────────────────────────────────────────────────────────────────── */

const char *google_token_get(struct google_token *t)
{
    if (t->token && clock_monotonic_ms() >= t->ends_ms)
        wipe(&t->token);
    bool waits = t->call || uv_is_active((uv_handle_t *)&t->again);
    if (!t->token && !waits)
        begin(t);
    return t->token;
}

void google_token_refused(struct google_token *t)
{
    wipe(&t->token);
    if (!t->call && t->backoff.failures == 0)
        uv_timer_stop(&t->again); /* of its refresh: now it is due when it is next wanted */
}

const char *google_token_why(const struct google_token *t)
{
    return t->why;
}
