/* Bans, as the seed's clients issue, read, change and lift them. */
#include "api/call.h"
#include "api/play.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>

/* The argument `expires`: 0, or ERR_BAD_ARGUMENT with the refusal rendered. */
static int take_expires(struct call *c, int64_t *ret_wall_ms)
{
    const struct argument *v = call_argument(c, "expires");
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    if (!v->given || play_date_read(v->text, ret_wall_ms))
        return 0;
    int err = arguments_refuse(&c->arguments, "expires",
                               "expires is a date as 2026-12-31 23:59:59 in UTC, not %s.",
                               arguments_show(shown, v->text));
    call_refuse_argument(c);
    return err;
}

static void show_issued(struct call *c)
{
    call_render(c, &issued_ban_shape, &(struct view_ban){.id = c->object});
    call_read(c);
}

static void show_done(struct call *c)
{
    call_render(c, &nothing_shape, c);
    call_read(c);
}

void handle_ban_issue(struct call *c)
{
    struct operate o = {
        .verb = OPERATE_BAN,
        .account = call_argument(c, "account")->text,
        .reason = call_argument(c, "reason")->text,
        .detail = call_argument(c, "account")->text,
    };
    c->noun = "ban";
    if (take_expires(c, &o.expires_wall_ms) != 0) {
        call_read(c);
        return;
    }
    if (o.expires_wall_ms <= c->rest->doors->wall_ms) {
        (void)arguments_refuse(&c->arguments, "expires", "expires is in the past.");
        call_refuse_argument(c);
        call_read(c);
        return;
    }
    call_operate(c, &o, show_issued);
}

static void show_ban(struct call *c, int64_t id)
{
    struct view_ban v;
    if (view_ban(call_core(c), id, &v))
        call_render(c, &played_ban_shape, &v);
    else
        call_refuse(c, ERR_NOT_FOUND, NULL, "There is no such ban.");
    call_read(c);
}

void handle_ban_get(struct call *c)
{
    show_ban(c, call_argument(c, "id")->number);
}

void handle_ban_find(struct call *c)
{
    show_ban(c, view_ban_of(call_core(c), call_argument(c, "account")->text));
}

void handle_ban_update(struct call *c)
{
    const struct argument *reason = call_argument(c, "reason");
    struct operate o = {.verb = OPERATE_UPDATE_BAN, .target = call_argument(c, "id")->number};
    c->noun = "ban";
    if (!reason->given && !call_argument(c, "expires")->given) {
        call_refuse(c, ERR_BAD_ARGUMENT, NULL, "reason or expires is missing: what to change.");
        call_read(c);
        return;
    }
    if (reason->given)
        o.reason = reason->text;
    if (take_expires(c, &o.expires_wall_ms) != 0) {
        call_read(c);
        return;
    }
    call_operate(c, &o, show_done);
}

void handle_ban_lift(struct call *c)
{
    struct operate o = {.verb = OPERATE_LIFT_BAN, .target = call_argument(c, "id")->number};
    c->noun = "ban";
    call_operate(c, &o, show_done);
}
