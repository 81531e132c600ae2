#include "cli/client.h"

#include "api/operation.h"
#include "base/clock.h"
#include "net/curl.h"
#include "net/nodes.h"
#include "wire/uri.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    CONNECT_MS = 5000,
    CONNECT_ONE_OF_MS = 2000, /* … where another node could be asked meanwhile */
    WAIT_MAX_MS = 2000,
    KEY_BYTES = 16, /* of an Idempotency-Key */
    TOKEN_MAX = 8 * 1024,
    ANSWER_MAX = JSON_SIZE_MAX,
    STATUS_OK = 200,
    STATUS_OK_END = 300,
    STATUS_REDIRECT = 307,
    STATUS_REDIRECT_TOO = 308,
    STATUS_UNAVAILABLE = 503,
};

/* ── settings ──────────────────────────────────────────────────────────────────────────────── */

struct client {
    CURL *handle;
    struct nodes nodes;
    bool served;              /* one of them has done what was asked */
    char url[NODES_TEXT_MAX]; /* that was asked last */
    const char *url_option;   /* outlives it */
    char *token;              /* NULL = none */
    bool token_is_local;      /* it is the data folder's */
    char hint[CLIENT_WHY_MAX];
    char error[CURL_ERROR_SIZE];
    int stop_fd;
    bool stopped;
    bool has_certificate; /* --tls-cert */

    /* The call under way. */
    struct buf body;
    bool too_long;
    client_take *take; /* NULL = the body is collected */
    void *user;
    bool taken;  /* it was given something */
    bool enough; /* take wants no more */
    bool once;   /* see client_call_once */
    int64_t patient_until_ms;
    char key[sizeof("Idempotency-Key: ") + 2 * KEY_BYTES]; /* the header; "" = it changes nothing */
    int upload_fd;                                         /* -1 = no upload */
    off_t upload_from;
    void (*on_wait)(void *user);
    void *wait_user;
    client_sent *sent; /* of an upload; NULL = nobody */
    void *sent_user;
};

/* The host of the URL without its port; the brackets of an IPv6 address are dropped. */
static bool copy_host(const char *url, char *ret, size_t cap, bool *ret_bracketed)
{
    const char *host = strstr(url, "://") + 3;
    *ret_bracketed = *host == '[';
    host += *ret_bracketed ? 1 : 0;
    size_t n = strcspn(host, *ret_bracketed ? "]" : ":/");
    if (*ret_bracketed && (host[n] != ']' || !strchr(":/", host[n + 1])))
        return false;
    return str_copy(ret, cap, (struct str){host, n});
}

/* Whether it can lead to nobody but this machine. Only addresses count: "127.example.com" is a name
 * that whoever has the domain points where he likes. */
static bool is_loopback(const char *url)
{
    char host[INET6_ADDRSTRLEN];
    struct in_addr v4;
    struct in6_addr v6;
    bool bracketed = false;
    if (!copy_host(url, host, sizeof(host), &bracketed))
        return false;
    if (bracketed)
        return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    return strcasecmp(host, "localhost") == 0;
}

static bool set_urls(struct client *c, const char *text, const char *option,
                     char why[CLIENT_WHY_MAX])
{
    char fault[NODES_WHY_MAX];
    c->nodes.wait_max_ms = WAIT_MAX_MS;
    if (nodes_read_urls(&c->nodes, text, fault) != 0) {
        snprintf(why, CLIENT_WHY_MAX, "%s takes %s", option, fault);
        return false;
    }
    memcpy(c->url, c->nodes.now, sizeof(c->url));
    return true;
}

/* Whether all of them are this machine. */
static bool are_loopback(const struct nodes *nodes)
{
    bool all = true;
    for (size_t i = 0; i < nodes->n; i++)
        all &= is_loopback(nodes->list[i]);
    return all;
}

/* What a header may carry: a line end in it would begin another header. */
static bool is_token(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (!isgraph((unsigned char)*at))
            return false;
    }
    return *text != '\0' && strlen(text) < TOKEN_MAX;
}

/* The token in a file, without its line end; NULL when there is none to be read. */
static char *read_token(const char *path)
{
    char text[TOKEN_MAX];
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    text[n] = '\0';
    char *token = is_token(text) ? xstrdup(text) : NULL;
    explicit_bzero(text, sizeof(text));
    return token;
}

/* ./data as `muster serve` makes it, or that of the package's service where there is one. */
static const char *usual_folder(void)
{
    bool packaged = access("data", F_OK) != 0 && access(CLIENT_SERVICE_DATA, F_OK) == 0;
    return packaged ? CLIENT_SERVICE_DATA : "data";
}

/* The folder's token opens everything, so it is shown to nobody on another machine who merely
 * stands in MUSTER_URL; with --data it was meant. The leader that this machine's Muster names may
 * see it, for that Muster has it. */
static void take_folders_token(struct client *c, const struct client_settings *set)
{
    char path[4096];
    const char *data = set->data;
    const char *option = set->token_option ? set->token_option : "--token or MUSTER_TOKEN";
    if (!data && !are_loopback(&c->nodes)) {
        snprintf(c->hint, sizeof(c->hint),
                 "Give one with %s; the token of a local data folder is sent to another machine "
                 "only with --data DIR.",
                 option);
        return;
    }
    snprintf(path, sizeof(path), "%s/admin.token", data ? data : usual_folder());
    errno = 0;
    c->token = read_token(path);
    c->token_is_local = c->token != NULL;
    if (!c->token)
        snprintf(c->hint, sizeof(c->hint),
                 "Give one with %s, or its data folder with --data DIR; %.300s %s%s.", option, path,
                 errno ? "cannot be read: " : "holds no token", errno ? strerror(errno) : "");
    else
        snprintf(c->hint, sizeof(c->hint),
                 "It was taken from %.300s; is that the data folder of the Muster at %.100s?", path,
                 c->url);
}

static bool set_token(struct client *c, const struct client_settings *set, char why[CLIENT_WHY_MAX])
{
    const char *variable = getenv("MUSTER_TOKEN");
    const char *token = set->token ? set->token : variable && *variable ? variable : NULL;
    if (!token) {
        take_folders_token(c, set);
        return true;
    }
    const char *from = set->token ? "--token" : "MUSTER_TOKEN";
    snprintf(c->hint, sizeof(c->hint), "It was given with %s.", from);
    if (!is_token(token)) {
        snprintf(why, CLIENT_WHY_MAX, "what %s holds is no access token", from);
        return false;
    }
    c->token = xstrdup(token);
    return true;
}

/* libcurl would name its own options when a file is missing. */
static bool check_tls(const struct client_settings *set, char why[CLIENT_WHY_MAX])
{
    const char *const files[] = {set->tls_ca, set->tls_cert, set->tls_key};
    if (!set->tls_cert != !set->tls_key) {
        snprintf(why, CLIENT_WHY_MAX, "--tls-cert and --tls-key belong together");
        return false;
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (files[i] && access(files[i], R_OK) != 0) {
            snprintf(why, CLIENT_WHY_MAX, "cannot read %.300s: %s", files[i], strerror(errno));
            return false;
        }
    }
    return true;
}

static size_t on_data(char *at, size_t size, size_t n, void *user);
static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t d, curl_off_t e);

/* What is the same for every call. */
static void set_up(struct client *c, const struct client_settings *set)
{
    curl.easy_setopt(c->handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.easy_setopt(c->handle, CURLOPT_ERRORBUFFER, c->error);
    curl.easy_setopt(c->handle, CURLOPT_WRITEFUNCTION, on_data);
    curl.easy_setopt(c->handle, CURLOPT_WRITEDATA, c);
    curl.easy_setopt(c->handle, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl.easy_setopt(c->handle, CURLOPT_XFERINFODATA, c);
    curl.easy_setopt(c->handle, CURLOPT_NOPROGRESS, 0L);
    curl.easy_setopt(c->handle, CURLOPT_USERAGENT, "muster/" MUSTER_VERSION);
    if (set->tls_ca)
        curl.easy_setopt(c->handle, CURLOPT_CAINFO, set->tls_ca);
    if (set->tls_cert && set->tls_key) {
        curl.easy_setopt(c->handle, CURLOPT_SSLCERT, set->tls_cert);
        curl.easy_setopt(c->handle, CURLOPT_SSLKEY, set->tls_key);
        c->has_certificate = true;
    }
    if (c->token) {
        curl.easy_setopt(c->handle, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        curl.easy_setopt(c->handle, CURLOPT_XOAUTH2_BEARER, c->token);
    }
}

struct client *client_open(const struct client_settings *set, char why[CLIENT_WHY_MAX])
{
    const char *variable = getenv("MUSTER_URL");
    const char *url = set->url ? set->url : variable && *variable ? variable : CLIENT_URL;
    const char *problem = curl_load();
    if (problem) {
        snprintf(why, CLIENT_WHY_MAX, "%s", problem);
        return NULL;
    }
    struct client *c = xcalloc(1, sizeof(*c));
    c->stop_fd = set->stop_fd;
    c->upload_fd = -1;
    c->url_option = set->url_option ? set->url_option : "--url";
    if (!set_urls(c, url, set->url ? c->url_option : "MUSTER_URL", why) ||
        !set_token(c, set, why) || !check_tls(set, why)) {
        client_close(c);
        return NULL;
    }
    c->handle = curl.easy_init();
    if (!c->handle)
        abort(); /* out of memory, as in xcalloc */
    set_up(c, set);
    return c;
}

void client_on_wait(struct client *c, void (*call)(void *user), void *user)
{
    c->on_wait = call;
    c->wait_user = user;
}

void client_close(struct client *c)
{
    if (!c)
        return;
    if (c->handle)
        curl.easy_cleanup(c->handle);
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    free(c->token);
    buf_done(&c->body);
    free(c);
}

const char *client_url(const struct client *c)
{
    return c->url;
}

bool client_has_several(const struct client *c)
{
    return nodes_are_several(&c->nodes);
}

static bool has_code(const struct json *root, struct str code)
{
    return str_eq(json_get_text(json_member(json_member(root, "error"), "code")), code);
}

bool client_is_leaderless(const struct client_answer *a)
{
    return a->status == STATUS_UNAVAILABLE && has_code(a->json, STR("no_leader"));
}

bool client_is_local_admin(const struct client *c)
{
    return c->token_is_local;
}

const char *client_token_hint(const struct client *c)
{
    return c->hint;
}

/* ── a call ────────────────────────────────────────────────────────────────────────────────── */

static long status_of(struct client *c)
{
    long status = 0;
    curl.easy_getinfo(c->handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* A refusal of a stream is collected like any other answer. */
static size_t on_data(char *at, size_t size, size_t n, void *user)
{
    struct client *c = user;
    size_t len = size * n;
    if (c->take && status_of(c) == STATUS_OK) {
        c->taken = true;
        c->enough = !c->take(c->user, (struct str){at, len});
        return c->enough ? 0 : len;
    }
    c->too_long = c->body.len + len > ANSWER_MAX;
    if (c->too_long)
        return 0;
    buf_append(&c->body, at, len);
    return len;
}

/* libcurl asks at least once a second whether to go on. */
static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t d, curl_off_t e)
{
    (void)a, (void)b;
    struct client *c = user;
    if (c->sent)
        c->sent(c->sent_user, e, d);
    struct pollfd stop = {.fd = c->stop_fd, .events = POLLIN};
    c->stopped = c->stop_fd >= 0 && poll(&stop, 1, 0) > 0;
    if (c->on_wait && !c->stopped)
        c->on_wait(c->wait_user);
    return c->stopped ? 1 : 0;
}

/* In TLS 1.3 a client is let in before its certificate is looked at; without one that is accepted
 * the connection then ends, and libcurl tells whichever of its calls noticed. */
static bool is_cut_off(const struct client *c, CURLcode code)
{
    return strncmp(c->url, "https://", 8) == 0 &&
           (code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING);
}

/* What an operator would do about it; "" = nothing but start it, or look elsewhere. */
static const char *advice(const struct client *c, CURLcode code)
{
    if (is_cut_off(c, code))
        return c->has_certificate ? "it may not accept our certificate (--tls-cert)"
                                  : "it may want our certificate: --tls-cert and --tls-key";
    switch ((int)code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return "--tls-ca FILE names the authority that signed its certificate";
    case CURLE_SSL_CERTPROBLEM:
        return "--tls-cert and --tls-key are our own certificate and its key";
    case CURLE_SSL_CONNECT_ERROR:
        return "is that port one for https, and does it want --tls-cert?";
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
        return "is that Muster's HTTP port, and http or https right?";
    default:
        return "";
    }
}

static const char *reason(struct client *c, CURLcode code)
{
    long number = 0;
    curl.easy_getinfo(c->handle, CURLINFO_OS_ERRNO, &number);
    if (code == CURLE_COULDNT_CONNECT && number)
        return strerror((int)number);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return "no answer in time";
    if (is_cut_off(c, code))
        return "it ended the TLS connection";
    return c->error[0] ? c->error : curl.easy_strerror(code);
}

static enum client_result unreachable(struct client *c, CURLcode code, struct client_answer *ret)
{
    if (c->stopped)
        return CLIENT_STOPPED;
    const char *why = c->too_long ? "the answer is too long" : reason(c, code);
    int n = (int)strnlen(why, 200);
    n -= n > 0 && why[n - 1] == '.' ? 1 : 0; /* more follows */
    const char *what = advice(c, code);
    bool others = client_has_several(c);
    int len = snprintf(ret->why, sizeof(ret->why), "cannot reach Muster at %s%s: %.*s; ", c->url,
                       others ? ", nor at another of its nodes" : "", n, why);
    if (*what)
        snprintf(ret->why + len, sizeof(ret->why) - (size_t)len, "%s", what);
    else
        snprintf(ret->why + len, sizeof(ret->why) - (size_t)len,
                 "is it running? 'muster serve' starts one; %s or MUSTER_URL names another",
                 c->url_option);
    return CLIENT_UNREACHABLE;
}

static enum client_result not_muster(struct client *c, struct client_answer *ret)
{
    snprintf(ret->why, sizeof(ret->why),
             "what answers at %s is not Muster (status %d, and no JSON); %s or MUSTER_URL names "
             "another address",
             c->url, ret->status, c->url_option);
    return CLIENT_UNREACHABLE;
}

/* The API's sentence, with its code when there is one. */
static enum client_result refused(struct client *c, struct client_answer *ret)
{
    const struct json *error = json_member(ret->json, "error");
    struct str message = json_get_text(json_member(error, "message"));
    if (message.len == 0)
        return not_muster(c, ret);
    snprintf(ret->why, sizeof(ret->why), "%.*s", (int)(message.len < 400 ? message.len : 400),
             message.at);
    return CLIENT_REFUSED;
}

static enum client_result understand(struct client *c, struct client_answer *ret)
{
    char why[JSON_WHY_MAX];
    struct str text = {(const char *)c->body.data, c->body.len};
    bool good = ret->status >= STATUS_OK && ret->status < STATUS_OK_END;
    ret->json = text.len > 0 ? json_parse(text, why) : NULL;
    if (good)
        return ret->json || text.len == 0 ? CLIENT_DONE : not_muster(c, ret);
    return refused(c, ret);
}

void client_answer_done(struct client_answer *a)
{
    json_free(a->json);
    *a = (struct client_answer){0};
}

/* ── which node ────────────────────────────────────────────────────────────────────────────── */

/* path is put behind the URL; headers may be NULL. */
static CURLcode perform(struct client *c, const char *path, struct curl_slist *headers)
{
    struct buf url = {0};
    long connect_ms = client_has_several(c) ? CONNECT_ONE_OF_MS : CONNECT_MS;
    memcpy(c->url, c->nodes.now, sizeof(c->url));
    buf_append(&url, c->url, strlen(c->url));
    buf_append(&url, path, strlen(path) + 1);
    c->error[0] = '\0';
    c->stopped = c->too_long = c->enough = c->taken = false;
    buf_clear(&c->body);
    if (c->upload_fd >= 0)
        (void)lseek(c->upload_fd, c->upload_from, SEEK_SET);
    /* Whatever proxy the environment names does not lead to here. */
    curl.easy_setopt(c->handle, CURLOPT_NOPROXY, is_loopback(c->url) ? "*" : NULL);
    curl.easy_setopt(c->handle, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    curl.easy_setopt(c->handle, CURLOPT_URL, (const char *)url.data);
    curl.easy_setopt(c->handle, CURLOPT_HTTPHEADER, headers);
    CURLcode code = curl.easy_perform(c->handle);
    curl.easy_setopt(c->handle, CURLOPT_HTTPHEADER, NULL);
    buf_done(&url);
    return code;
}

/* It sends us elsewhere, or waits for whoever will lead; or it is about to, and takes no more. What
 * it was asked before that may have been done. */
static bool stands_by(struct client *c)
{
    char why[JSON_WHY_MAX];
    long status = status_of(c);
    if (status != STATUS_UNAVAILABLE)
        return status == STATUS_REDIRECT || status == STATUS_REDIRECT_TOO;
    struct json *root = json_parse((struct str){(const char *)c->body.data, c->body.len}, why);
    bool waits = has_code(root, STR("no_leader")) ||
                 (has_code(root, STR("busy")) && client_has_several(c) && !c->once);
    json_free(root);
    return waits;
}

static bool follows(struct client *c)
{
    char *location = NULL;
    curl.easy_getinfo(c->handle, CURLINFO_REDIRECT_URL, &location);
    return location && nodes_follow_url(&c->nodes, location);
}

/* Nobody can have heard the request. */
static bool is_unheard(struct client *c, CURLcode code)
{
    curl_off_t connected_us = 0;
    curl.easy_getinfo(c->handle, CURLINFO_APPCONNECT_TIME_T, &connected_us);
    if (connected_us == 0 && strncmp(c->url, "https://", 8) != 0)
        curl.easy_getinfo(c->handle, CURLINFO_CONNECT_TIME_T, &connected_us);
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST || connected_us == 0;
}

/* Whether another node may be asked after this one could not be spoken to. One that has answered
 * half, or nothing in all its time, has had its turn. */
static bool may_ask_another(struct client *c, CURLcode code)
{
    if (c->stopped || c->enough || c->too_long || c->taken || !client_has_several(c))
        return false;
    return is_unheard(c, code) || (!c->once && code != CURLE_OPERATION_TIMEDOUT);
}

/* True to ask again after *wait_ms. When nobody was there at all, neither now nor before, there is
 * nothing to be patient for. */
static bool goes_on(struct client *c, CURLcode code, int64_t *wait_ms)
{
    bool waits = code == CURLE_OK && stands_by(c);
    *wait_ms = 0;
    if (code == CURLE_OK && !waits) {
        nodes_succeed(&c->nodes);
        c->served = true;
        return false;
    }
    if (waits && follows(c))
        return true;
    if (!waits && !may_ask_another(c, code))
        return false;
    bool hope = c->served || waits || c->nodes.stood_by;
    *wait_ms = nodes_fail(&c->nodes, waits);
    return *wait_ms == 0 || (hope && clock_monotonic_ms() + *wait_ms < c->patient_until_ms);
}

/* False when we were asked to stop. */
static bool pause_for(struct client *c, int64_t wait_ms)
{
    int64_t until_ms = clock_monotonic_ms() + wait_ms;
    for (int64_t left_ms = wait_ms; left_ms > 0; left_ms = until_ms - clock_monotonic_ms()) {
        struct pollfd stop = {.fd = c->stop_fd, .events = POLLIN};
        c->stopped = poll(&stop, 1, (int)(left_ms < 1000 ? left_ms : 1000)) > 0;
        if (c->stopped)
            return false;
        if (c->on_wait)
            c->on_wait(c->wait_user);
    }
    return true;
}

/* Asks whoever leads; at most timeout_s are spent on finding him. headers is consumed. */
static CURLcode perform_somewhere(struct client *c, const char *path, struct curl_slist *headers,
                                  int timeout_s)
{
    int patient_s = timeout_s > 0 && timeout_s < CLIENT_PATIENT_S ? timeout_s : CLIENT_PATIENT_S;
    CURLcode code = CURLE_OK;
    int64_t wait_ms = 0;
    bool keyed = false;
    c->patient_until_ms = clock_monotonic_ms() + (int64_t)patient_s * 1000;
    do {
        if (c->key[0] && !keyed && client_has_several(c)) { /* else it is sent once, to one */
            headers = curl.slist_append(headers, c->key);
            keyed = true;
        }
        code = perform(c, path, headers);
    } while (goes_on(c, code, &wait_ms) && pause_for(c, wait_ms));
    curl.slist_free_all(headers);
    return code;
}

static void make_key(struct client *c)
{
    uint8_t random[KEY_BYTES];
    char hex[2 * KEY_BYTES + 1];
    randombytes_buf(random, sizeof(random));
    snprintf(c->key, sizeof(c->key), "Idempotency-Key: %s",
             sodium_bin2hex(hex, sizeof(hex), random, sizeof(random)));
}

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

static void set_method(struct client *c, enum http_method method, const struct buf *body)
{
    bool some = body && body->len > 0;
    curl.easy_setopt(c->handle, CURLOPT_CUSTOMREQUEST, NULL);
    if (method == HTTP_GET) {
        curl.easy_setopt(c->handle, CURLOPT_HTTPGET, 1L);
        return;
    }
    curl.easy_setopt(c->handle, CURLOPT_POSTFIELDSIZE, some ? (long)body->len : 0L);
    curl.easy_setopt(c->handle, CURLOPT_POSTFIELDS, some ? (const char *)body->data : "");
    if (method != HTTP_POST)
        curl.easy_setopt(c->handle, CURLOPT_CUSTOMREQUEST, http_method_word(method));
}

static enum client_result call(struct client *c, enum http_method method, const char *path,
                               const struct buf *body, int timeout_s, struct client_answer *ret)
{
    client_answer_done(ret);
    c->take = NULL;
    c->key[0] = '\0';
    if (method != HTTP_GET)
        make_key(c);
    curl.easy_setopt(c->handle, CURLOPT_TIMEOUT, (long)timeout_s);
    curl.easy_setopt(c->handle, CURLOPT_LOW_SPEED_LIMIT, 0L);
    struct curl_slist *headers = NULL;
    if (body && body->len > 0)
        headers = curl.slist_append(NULL, "Content-Type: application/json");
    set_method(c, method, body);
    CURLcode code = perform_somewhere(c, path, headers, timeout_s);
    ret->status = (int)status_of(c);
    return code == CURLE_OK && !c->stopped ? understand(c, ret) : unreachable(c, code, ret);
}

enum client_result client_call(struct client *c, enum http_method method, const char *path,
                               const struct buf *body, int timeout_s, struct client_answer *ret)
{
    c->once = false;
    return call(c, method, path, body, timeout_s, ret);
}

enum client_result client_call_once(struct client *c, enum http_method method, const char *path,
                                    const struct buf *body, int timeout_s,
                                    struct client_answer *ret)
{
    c->once = true;
    return call(c, method, path, body, timeout_s, ret);
}

/* A stream or a text, taken piece by piece. CLIENT_DONE when it has ended or was enough. headers is
 * consumed. */
static enum client_result follow(struct client *c, const char *path, struct curl_slist *headers,
                                 client_take *take, void *user, struct client_answer *ret)
{
    client_answer_done(ret);
    c->take = take;
    c->user = user;
    c->once = false;
    c->key[0] = '\0';
    curl.easy_setopt(c->handle, CURLOPT_TIMEOUT, 0L);
    set_method(c, HTTP_GET, NULL);
    CURLcode code = perform_somewhere(c, path, headers, 0);
    ret->status = (int)status_of(c);
    if (c->enough)
        return CLIENT_DONE;
    if (code != CURLE_OK || c->stopped)
        return unreachable(c, code, ret);
    return ret->status == STATUS_OK ? CLIENT_DONE : understand(c, ret);
}

enum client_result client_read(struct client *c, const char *path, client_take *take, void *user,
                               struct client_answer *ret)
{
    curl.easy_setopt(c->handle, CURLOPT_LOW_SPEED_LIMIT, 0L);
    return follow(c, path, NULL, take, user, ret);
}

enum client_result client_stream(struct client *c, const char *path, const char *last_id,
                                 int silence_s, client_take *take, void *user,
                                 struct client_answer *ret)
{
    char line[128];
    curl.easy_setopt(c->handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl.easy_setopt(c->handle, CURLOPT_LOW_SPEED_TIME, (long)silence_s);
    struct curl_slist *headers = curl.slist_append(NULL, "Accept: text/event-stream");
    snprintf(line, sizeof(line), "Last-Event-ID: %s", last_id);
    if (*last_id)
        headers = curl.slist_append(headers, line);
    enum client_result result = follow(c, path, headers, take, user, ret);
    if (result != CLIENT_DONE || c->enough)
        return result;
    snprintf(ret->why, sizeof(ret->why), "Muster at %s has ended the stream", c->url);
    return CLIENT_UNREACHABLE;
}

static size_t on_wanted(char *at, size_t size, size_t n, void *user)
{
    const int *fd = user;
    ssize_t got = read(*fd, at, size * n);
    return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

enum client_result client_upload(struct client *c, const char *path, int fd, int64_t size,
                                 client_sent *sent, void *user, struct client_answer *ret)
{
    client_answer_done(ret);
    c->take = NULL;
    c->sent = sent;
    c->sent_user = user;
    c->once = false;
    c->key[0] = '\0'; /* an archive is known by its digest */
    c->upload_fd = fd;
    c->upload_from = lseek(fd, 0, SEEK_CUR);
    curl.easy_setopt(c->handle, CURLOPT_TIMEOUT, 0L);
    curl.easy_setopt(c->handle, CURLOPT_LOW_SPEED_LIMIT, 0L);
    set_method(c, HTTP_POST, NULL);
    curl.easy_setopt(c->handle, CURLOPT_POSTFIELDS, NULL);
    curl.easy_setopt(c->handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    curl.easy_setopt(c->handle, CURLOPT_READFUNCTION, on_wanted);
    curl.easy_setopt(c->handle, CURLOPT_READDATA, &fd);
    struct curl_slist *headers = curl.slist_append(NULL, "Content-Type: application/octet-stream");
    headers = curl.slist_append(headers, "Expect: 100-continue"); /* a refusal comes first */
    CURLcode code = perform_somewhere(c, path, headers, 0);
    c->sent = NULL;
    c->upload_fd = -1;
    ret->status = (int)status_of(c);
    return code == CURLE_OK && !c->stopped ? understand(c, ret) : unreachable(c, code, ret);
}

/* ── paths ─────────────────────────────────────────────────────────────────────────────────── */

void client_put_query(struct buf *path, const char *key, const char *value)
{
    if (!value)
        return;
    bool first = memchr(path->data, '?', path->len) == NULL;
    buf_append(path, first ? "?" : "&", 1);
    uri_escape(path, key);
    buf_append(path, "=", 1);
    uri_escape(path, value);
}
