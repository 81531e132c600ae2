#include "cli/setting.h"

#include "cli/config_doc.h"
#include "net/address.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS (24 * 3600 * 1000)

static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};
static const char *const format_words[] = {"logfmt", "json", NULL};
static const char *const filters_words[] = {"none", "suffix", NULL};
static const char *const metrics_words[] = {"token", "open", NULL};

/* Kinds: what each row of config_keys.h says by one word. */
#define MS .kind = SETTING_NUMBER, .unit = "ms", .min = 1, .max = 7 * DAY_MS
#define COUNT .kind = SETTING_NUMBER, .unit = "", .min = 1, .max = 10 * 1000 * 1000
#define CONNECTIONS .kind = SETTING_NUMBER, .unit = "", .min = 1, .max = 1000 * 1000
#define PORT .kind = SETTING_NUMBER, .unit = "", .min = 0, .max = UINT16_MAX
#define LEVEL .kind = SETTING_WORD, .unit = "", .words = level_words
#define FORMAT .kind = SETTING_WORD, .unit = "", .words = format_words
#define METRICS .kind = SETTING_WORD, .unit = "", .words = metrics_words
#define FILTERS .kind = SETTING_WORD, .unit = "", .words = filters_words
#define IP .kind = SETTING_IP, .unit = ""
#define FILE_PATH .kind = SETTING_FILE, .unit = ""
#define NAME .kind = SETTING_NAME, .unit = ""
#define URL .kind = SETTING_URL, .unit = ""
#define TEXT .kind = SETTING_TEXT, .unit = ""
#define SECRET .kind = SETTING_SECRET, .unit = ""
#define HISTORY_MB .kind = SETTING_NUMBER, .unit = "", .min = 0, .max = 1024 * 1024
#define HISTORY_DAYS .kind = SETTING_NUMBER, .unit = "", .min = 0, .max = 3650
#define LEASE_MS .kind = SETTING_NUMBER, .unit = "ms", .min = 500, .max = 60 * 1000
#define DELIVERIES .kind = SETTING_NUMBER, .unit = "", .min = 1, .max = 1000
#define PULL .kind = SETTING_NUMBER, .unit = "", .min = 1, .max = PUBSUB_PULL_MAX
#define PULLS .kind = SETTING_NUMBER, .unit = "", .min = 1, .max = PUBSUB_PULLS_MAX
#define RELOADS .reloads = true
#define STAYS .reloads = false

#define ROW(structure, section_, key_, into, kind_, when, meaning_)                                \
    {.section = #section_,                                                                         \
     .key = #key_,                                                                                 \
     .meaning = meaning_,                                                                          \
     .doc_at = offsetof(struct doc, section_.key_),                                                \
     .at = offsetof(struct config, into),                                                          \
     .size = sizeof(((struct config *)0)->into),                                                   \
     kind_,                                                                                        \
     when},

const struct setting settings[] = {
    CONFIG_LISTEN(ROW) CONFIG_HTTP(ROW) CONFIG_TLS(ROW, http) CONFIG_TLS(ROW, server)
        CONFIG_TLS(ROW, manager) CONFIG_TLS(ROW, client) CONFIG_LOG(ROW) CONFIG_ACCESS(ROW)
            CONFIG_GEO(ROW) CONFIG_HISTORY(ROW) CONFIG_CLUSTER(ROW) CONFIG_NATS(ROW)
                CONFIG_PUBSUB(ROW) CONFIG_ROUTES(ROW) CONFIG_KUBERNETES(ROW) CONFIG_TIMEOUTS(ROW)
                    CONFIG_LIMITS(ROW)};
const size_t n_settings = sizeof(settings) / sizeof(settings[0]);

#define ONE(...) +1
_Static_assert(sizeof(struct core_timeouts) == (0 CONFIG_TIMEOUTS(ONE)) * sizeof(int64_t),
               "every timeout has a key");
_Static_assert(sizeof(struct core_limits) == (0 CONFIG_LIMITS(ONE)) * sizeof(int32_t),
               "every limit has a key");

const char *setting_said(const struct setting *s, const struct doc *doc)
{
    return *(const char *const *)((const char *)doc + s->doc_at);
}

bool setting_read_number(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    size_t len = strlen(text);
    if (len == 0 || len > 18 || strspn(text, "0123456789") != len)
        return false;
    int64_t v = strtoll(text, NULL, 10);
    if (v < min || v > max)
        return false;
    *ret = v;
    return true;
}

bool setting_is_name(const char *text, size_t max)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t len = strlen(text);
    return len > 0 && len <= max && strspn(text, allowed) == len;
}

/* One to which a path can be added: with a host, and without a query or anything to be escaped. */
static bool is_base_url(const char *text, size_t max)
{
    size_t scheme = strncmp(text, "http://", 7) == 0    ? 7
                    : strncmp(text, "https://", 8) == 0 ? 8
                                                        : 0;
    const char *host = text + scheme;
    for (const char *at = text; *at; at++) {
        if (*at <= ' ' || *at == 0x7f || strchr("?#\"\\", *at))
            return false;
    }
    return scheme > 0 && *host && *host != '/' && strlen(text) <= max;
}

bool setting_resolve(const char *path, const char *folder, char ret[CONFIG_PATH_MAX])
{
    bool inside = path[0] != '\0' && path[0] != '/' && folder[0] != '\0';
    int n = snprintf(ret, CONFIG_PATH_MAX, "%s%s%s", inside ? folder : "", inside ? "/" : "", path);
    return n >= 0 && n < CONFIG_PATH_MAX;
}

static void put_number(const struct setting *s, int64_t value, struct config *ret)
{
    char *to = (char *)ret + s->at;
    if (s->size == sizeof(bool))
        *(bool *)to = value != 0;
    else if (s->size == sizeof(uint16_t))
        *(uint16_t *)to = (uint16_t)value;
    else if (s->size == sizeof(int32_t))
        *(int32_t *)to = (int32_t)value;
    else
        *(int64_t *)to = value;
}

static int64_t get_number(const struct setting *s, const struct config *config)
{
    const char *from = (const char *)config + s->at;
    if (s->size == sizeof(bool))
        return *(const bool *)from;
    if (s->size == sizeof(uint16_t))
        return *(const uint16_t *)from;
    if (s->size == sizeof(int32_t))
        return *(const int32_t *)from;
    return *(const int64_t *)from;
}

static bool take_number(const struct setting *s, const char *text, struct config *ret, char *why)
{
    int64_t v = 0;
    if (!setting_read_number(text, s->min, s->max, &v)) {
        snprintf(why, SETTING_WHY_MAX,
                 "must be a whole number from %" PRId64 " to %" PRId64 ", not '%.40s'", s->min,
                 s->max, text);
        return false;
    }
    put_number(s, v, ret);
    return true;
}

/* "a, b or c" */
static void list_words(const char *const *words, char *dst, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; words[i]; i++) {
        const char *between = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        n += (size_t)snprintf(dst + n, cap - n, "%s%s", between, words[i]);
    }
}

static bool take_word(const struct setting *s, const char *text, struct config *ret, char *why)
{
    for (int i = 0; s->words[i]; i++) {
        if (strcmp(s->words[i], text) == 0) {
            put_number(s, i, ret);
            return true;
        }
    }
    char words[80];
    list_words(s->words, words, sizeof(words));
    snprintf(why, SETTING_WHY_MAX, "must be %s, not '%.40s'", words, text);
    return false;
}

static bool take_text(const struct setting *s, const char *text, const char *folder,
                      struct config *ret, char *why)
{
    union address ignored;
    char path[CONFIG_PATH_MAX];
    switch (s->kind) {
    case SETTING_IP:
        if (address_parse(text, 0, &ignored))
            break;
        snprintf(why, SETTING_WHY_MAX, "must be an IP address, not '%.60s'", text);
        return false;
    case SETTING_FILE:
        if (setting_resolve(text, folder, path)) {
            text = path;
            break;
        }
        snprintf(why, SETTING_WHY_MAX, "must be a path of at most %d bytes", CONFIG_PATH_MAX - 1);
        return false;
    case SETTING_TEXT:
    case SETTING_SECRET:
        if (strlen(text) < s->size)
            break;
        snprintf(why, SETTING_WHY_MAX, "must be at most %zu bytes", s->size - 1);
        return false;
    case SETTING_URL:
        if (!*text || is_base_url(text, s->size - 1))
            break;
        snprintf(why, SETTING_WHY_MAX,
                 "must be a URL as https://login.example, of at most %zu bytes, not '%.40s'",
                 s->size - 1, text);
        return false;
    default:
        if (setting_is_name(text, s->size - 1))
            break;
        snprintf(why, SETTING_WHY_MAX, "must be 1 to %zu of A-Z a-z 0-9 . _ -, not '%.40s'",
                 s->size - 1, text);
        return false;
    }
    (void)str_copy((char *)ret + s->at, s->size, str_of(text));
    return true;
}

bool setting_take(const struct setting *s, const char *text, const char *folder, struct config *ret,
                  char why[SETTING_WHY_MAX])
{
    if (s->kind == SETTING_NUMBER)
        return take_number(s, text, ret, why);
    if (s->kind == SETTING_WORD)
        return take_word(s, text, ret, why);
    return take_text(s, text, folder, ret, why);
}

const char *setting_print(const struct setting *s, const struct config *config,
                          char dst[SETTING_VALUE_MAX])
{
    const char *text = (const char *)config + s->at;
    if (s->kind == SETTING_NUMBER)
        snprintf(dst, SETTING_VALUE_MAX, "%" PRId64, get_number(s, config));
    else if (s->kind == SETTING_WORD)
        snprintf(dst, SETTING_VALUE_MAX, "%s", s->words[get_number(s, config)]);
    else if (s->kind == SETTING_IP && text[0] == '\0')
        snprintf(dst, SETTING_VALUE_MAX, "%s", config->bind_ip);
    else
        snprintf(dst, SETTING_VALUE_MAX, "%s", text);
    return dst;
}

void setting_copy(const struct setting *s, const struct config *from, struct config *to)
{
    memcpy((char *)to + s->at, (const char *)from + s->at, s->size);
}
