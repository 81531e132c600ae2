#include "wire/settings.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>

static int refuse(char why[SETTINGS_WHY_MAX], const char *what)
{
    (void)snprintf(why, SETTINGS_WHY_MAX, "%s", what);
    return ERR_BAD_ARGUMENT;
}

static int refuse_length(char why[SETTINGS_WHY_MAX])
{
    (void)snprintf(why, SETTINGS_WHY_MAX, "settings are at most %d bytes", SETTINGS_MAX);
    return ERR_BAD_ARGUMENT;
}

/* NULL with why when text is no object. */
static struct json *parse_object(struct str text, char why[SETTINGS_WHY_MAX])
{
    char fault[JSON_WHY_MAX];
    struct json *v = json_parse(text.len > 0 ? text : STR("{}"), fault);
    if (!v)
        (void)snprintf(why, SETTINGS_WHY_MAX, "the settings are no JSON: %s", fault);
    if (v && json_kind(v) != JSON_KIND_OBJECT) {
        refuse(why, "settings are a JSON object");
        json_free(v);
        return NULL;
    }
    return v;
}

/* What was appended after `before` is settings only within the limit; the escapes of the one form
 * can be longer than what was sent. */
static int keep_within(struct buf *out, size_t before, char why[SETTINGS_WHY_MAX])
{
    if (out->len - before <= SETTINGS_MAX)
        return 0;
    out->len = before;
    return refuse_length(why);
}

int settings_take(struct str text, struct buf *out, char why[SETTINGS_WHY_MAX])
{
    size_t before = out->len;
    if (text.len > SETTINGS_MAX)
        return refuse_length(why);
    struct json *v = parse_object(text, why);
    if (!v)
        return ERR_BAD_ARGUMENT;
    json_any(&(struct json_writer){.out = out}, v);
    json_free(v);
    return keep_within(out, before, why);
}

int settings_merge(struct str base, struct str over, struct buf *out, char why[SETTINGS_WHY_MAX])
{
    size_t before = out->len;
    struct json *below = parse_object(base, why);
    struct json *above = below ? parse_object(over, why) : NULL;
    if (above)
        json_any_over(&(struct json_writer){.out = out}, below, above);
    json_free(below);
    json_free(above);
    return above ? keep_within(out, before, why) : ERR_BAD_ARGUMENT;
}
