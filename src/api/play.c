/* What the handlers of the player API share: reading what players say. */
#include "api/play.h"

#include "api/call.h"
#include "api/geo.h"
#include "base/err.h"
#include "wire/filter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { LATENCY_MAX_MS = 60 * 1000 };

/* ── dates ─────────────────────────────────────────────────────────────────────────────────── */

const char *play_date_print(int64_t wall_ms, char dst[PLAY_DATE_MAX])
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm t;
    if (!gmtime_r(&s, &t) || strftime(dst, PLAY_DATE_MAX, "%Y-%m-%d %H:%M:%S", &t) == 0)
        dst[0] = '\0';
    return dst;
}

bool play_date_read(struct str text, int64_t *ret_wall_ms)
{
    static const char form[] = "dddd-dd-dd dd:dd:dd";
    char again[PLAY_DATE_MAX];
    char copy[PLAY_DATE_MAX];
    struct tm t = {0};
    if (text.len != strlen(form) || !str_copy(copy, sizeof(copy), text))
        return false;
    for (size_t i = 0; form[i]; i++) {
        bool digit = copy[i] >= '0' && copy[i] <= '9';
        if (form[i] == 'd' ? !digit : copy[i] != form[i])
            return false;
    }
    if (!strptime(copy, "%Y-%m-%d %H:%M:%S", &t))
        return false;
    int64_t wall_ms = (int64_t)timegm(&t) * 1000;
    /* The 31st of November would have become another day. */
    if (strcmp(play_date_print(wall_ms, again), copy) != 0)
        return false;
    *ret_wall_ms = wall_ms;
    return true;
}

/* ── what is asked for ─────────────────────────────────────────────────────────────────────── */

int play_fleet(struct call *c, struct view_fleet *ret)
{
    const struct core *core = call_core(c);
    struct str game = call_argument(c, "game")->text;
    struct str server = call_argument(c, "server")->text;
    char shown[2][ARGUMENTS_SHOWN_MAX + 16];
    int64_t id = view_fleet_played(core, game.at, server.at);
    if (id != 0 && view_fleet(core, id, ret))
        return 0;
    call_refuse(c, ERR_NOT_FOUND, NULL, "There is no game server %s of a game %s.",
                arguments_show(shown[0], server), arguments_show(shown[1], game));
    return ERR_NOT_FOUND;
}

int play_filter(struct call *c, struct filter **ret)
{
    char why[FILTER_WHY_MAX];
    const struct argument *v = call_argument(c, "settings");
    *ret = NULL;
    if (!v->given)
        return 0;
    *ret = filter_parse(v->text, why);
    if (*ret)
        return 0;
    int err = arguments_refuse(&c->arguments, "settings", "%s", why);
    call_refuse_argument(c);
    return err;
}

/* ── where from ────────────────────────────────────────────────────────────────────────────── */

static int region_of(const struct core_config *config, const char *name)
{
    for (int code = 0; code < REGION_CODES; code++) {
        if (config->regions[code].name[0] && strcasecmp(config->regions[code].name, name) == 0)
            return code;
    }
    return -1;
}

/* A region that we do not have is passed over: clients remember what they have measured once. */
static int take_latency(struct call *c, const char *name, const struct json *value, struct place *p)
{
    int code = region_of(core_config(call_core(c)), name);
    bool number = json_kind(value) == JSON_KIND_INT || json_kind(value) == JSON_KIND_REAL;
    double ms = number ? json_get_number(value) : NAN;
    if (!(ms >= 0 && ms <= LATENCY_MAX_MS))
        return arguments_refuse(&c->arguments, "latencies",
                                "latencies are milliseconds from 0 to %d by the names of regions.",
                                LATENCY_MAX_MS);
    if (code < 0)
        return 0;
    p->latencies |= 1ull << code;
    p->latency_ms[code] = (float)ms;
    return 0;
}

static int take_latencies(struct call *c, struct place *p)
{
    char why[JSON_WHY_MAX];
    const struct argument *v = call_argument(c, "latencies");
    struct json *object = v->given ? json_parse(v->text, why) : NULL;
    void *at = NULL;
    const char *name = NULL;
    const struct json *value = NULL;
    int err = 0;
    while (object && err == 0 && json_next(object, &at, &name, &value))
        err = take_latency(c, name, value, p);
    json_free(object);
    return err;
}

int play_nearness(struct call *c, struct str address, struct place *p)
{
    p->region = -1;
    p->located = geo_find(c->rest->geo, address, &p->latitude, &p->longitude);
    int err = take_latencies(c, p);
    if (err != 0)
        call_refuse_argument(c);
    return err;
}

int play_where(struct call *c, struct str address, struct place *p)
{
    int region = -1;
    int err = play_nearness(c, address, p);
    if (err != 0)
        return err;
    err = call_region(c, "region", &region);
    if (err != 0)
        call_refuse_argument(c);
    p->region = (int8_t)region;
    return err;
}
