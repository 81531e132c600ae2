/* Changing hosts, seats, versions and spawned servers. */
#include "api/browse.h"
#include "api/resource.h"
#include "api/resource_room.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>

static void gone(struct call *c)
{
    call_refuse(c, ERR_NOT_FOUND, NULL, "It was done, but there is no %s %" PRId64 " any more.",
                c->noun, c->object);
    call_read(c);
}

static void operate_on(struct call *c, enum operate_verb verb, const char *noun,
                       void (*resume)(struct call *c))
{
    struct operate o = {.verb = verb, .target = call_argument(c, "id")->number};
    c->noun = noun;
    call_operate(c, &o, resume);
}

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

static void show_host(struct call *c)
{
    struct view_host v;
    if (view_host(call_core(c), c->object, &v))
        browse_show(c, &host_shape, &v);
    else
        gone(c);
}

void handle_enable_host(struct call *c)
{
    operate_on(c, OPERATE_ENABLE_HOST, "host", show_host);
}

void handle_disable_host(struct call *c)
{
    operate_on(c, OPERATE_DISABLE_HOST, "host", show_host);
}

/* ── seats ─────────────────────────────────────────────────────────────────────────────────── */

/* The seat is gone by then: its number is what is left to show. */
static void show_kicked(struct call *c)
{
    struct kicked_answer answer = {c->object};
    browse_show(c, &kicked_shape, &answer);
}

void handle_kick(struct call *c)
{
    const struct argument *reason = call_argument(c, "reason");
    struct operate o = {.verb = OPERATE_KICK,
                        .target = call_argument(c, "id")->number,
                        .reason = reason->text,
                        .detail = reason->text};
    c->noun = "seat";
    call_operate(c, &o, show_kicked);
}

/* ── versions and deployments ──────────────────────────────────────────────────────────────── */

static void show_version(struct call *c)
{
    const struct core *core = call_core(c);
    struct view_version v;
    int64_t fleet = 0;
    (void)call_fleet(c, "fleet", &fleet);
    for (size_t i = 0; view_version(core, fleet, i, &v); i++) {
        if (v.id == c->object) {
            browse_show(c, &version_shape, &v);
            return;
        }
    }
    gone(c);
}

static void turn_version(struct call *c, enum operate_verb verb)
{
    int64_t fleet = 0;
    struct view_fleet named;
    char detail[128];
    struct operate o = {.verb = verb, .name = call_argument(c, "version")->text};
    c->noun = "version";
    if (call_fleet(c, "fleet", &fleet) != 0 || !view_fleet(call_core(c), fleet, &named)) {
        browse_refuse_argument(c);
        return;
    }
    o.fleet = str_of(named.name);
    int len = snprintf(detail, sizeof(detail), "%s %.*s", named.name, (int)o.name.len, o.name.at);
    o.detail = (struct str){detail, len < (int)sizeof(detail) ? (size_t)len : sizeof(detail) - 1};
    call_operate(c, &o, show_version);
}

void handle_enable_version(struct call *c)
{
    turn_version(c, OPERATE_ENABLE_VERSION);
}

void handle_disable_version(struct call *c)
{
    turn_version(c, OPERATE_DISABLE_VERSION);
}

static void show_deployment(struct call *c)
{
    struct view_deployment v;
    if (view_deployment(call_core(c), c->object, &v))
        browse_show(c, &deployment_shape, &v);
    else
        gone(c);
}

void handle_switch(struct call *c)
{
    operate_on(c, OPERATE_SWITCH, "deployment", show_deployment);
}

/* ── servers ───────────────────────────────────────────────────────────────────────────────── */

static void show_server(struct call *c)
{
    struct server_answer v;
    if (merge_server(call_core(c), c->object, &v))
        browse_show(c, &server_shape, &v);
    else
        gone(c);
}

void handle_terminate(struct call *c)
{
    struct view_server registered;
    int64_t id = call_argument(c, "id")->number;
    if (view_server(call_core(c), id, &registered)) {
        call_refuse(c, ERR_WRONG_PROVIDER, "id",
                    "Server %" PRId64 " registered by itself, so nobody here can end it. Drain it.",
                    id);
        call_read(c);
        return;
    }
    operate_on(c, OPERATE_TERMINATE, "server", show_server);
}
