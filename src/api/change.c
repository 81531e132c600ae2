/* Changing: each operation is one EVENT_OPERATE; what came of it is shown when it is durable. */
#include "api/call.h"
#include "api/resource.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SCOPE_MAX = 64 };

/* What was changed can be gone again by the time a repeated request is answered. */
static void gone(struct call *c)
{
    call_refuse(c, ERR_NOT_FOUND, NULL, "It was done, but there is no %s %" PRId64 " any more.",
                c->noun, c->object);
    call_read(c);
}

/* ── servers and sessions ──────────────────────────────────────────────────────────────────── */

static void show_server(struct call *c)
{
    struct server_answer v;
    if (!merge_server(call_core(c), c->object, &v)) {
        gone(c);
        return;
    }
    call_render(c, &server_shape, &v);
    call_read(c);
}

static void drain(struct call *c, enum operate_verb verb)
{
    struct operate o = {.verb = verb, .target = call_argument(c, "id")->number};
    c->noun = "server";
    call_operate(c, &o, show_server);
}

void handle_drain(struct call *c)
{
    drain(c, OPERATE_DRAIN);
}

void handle_undrain(struct call *c)
{
    drain(c, OPERATE_UNDRAIN);
}

static void show_session(struct call *c)
{
    struct session_answer v;
    if (!merge_session(call_core(c), c->object, &v)) {
        gone(c);
        return;
    }
    call_render(c, &session_shape, &v);
    call_read(c);
}

void handle_end_session(struct call *c)
{
    struct operate o = {.verb = OPERATE_END, .target = call_argument(c, "id")->number};
    c->noun = "session";
    call_operate(c, &o, show_session);
}

/* ── enrolment tokens ──────────────────────────────────────────────────────────────────────── */

static void show_token_as(struct call *c, const struct shape *shape)
{
    struct token_answer v = {.text = c->token.at};
    if (!view_token(call_core(c), c->object, &v.view)) {
        gone(c);
        return;
    }
    call_render(c, shape, &v);
    call_read(c);
}

static void show_token(struct call *c)
{
    show_token_as(c, &token_shape);
}

static void show_made_token(struct call *c)
{
    show_token_as(c, &made_token_shape);
}

void handle_enrol(struct call *c)
{
    int64_t fleet = 0;
    struct view_fleet named;
    char detail[128];
    const struct argument *expires = call_argument(c, "expires_in_s");
    struct str role = call_argument(c, "role")->text;
    struct operate o = {
        .verb = OPERATE_ENROL,
        .name = call_argument(c, "name")->text,
        .role = str_eq(role, STR("server")) ? ROLE_SERVER : ROLE_CHAT,
        .expires_wall_ms = expires->given ? c->rest->doors->wall_ms + expires->number * 1000 : 0,
        .detail = {detail, 0},
    };
    c->noun = "token";
    if (call_fleet(c, "fleet", &fleet) != 0 || call_regions(c, "regions", &o.regions) != 0 ||
        !view_fleet(call_core(c), fleet, &named)) {
        call_refuse_argument(c);
        call_read(c);
        return;
    }
    o.fleet = str_of(named.name);
    o.detail.len = (size_t)snprintf(detail, sizeof(detail), "%s, fleet %s", role.at, named.name);
    call_operate(c, &o, show_made_token);
}

void handle_revoke(struct call *c)
{
    struct operate o = {.verb = OPERATE_REVOKE, .target = call_argument(c, "id")->number};
    c->noun = "token";
    call_operate(c, &o, show_token);
}

void handle_rotate(struct call *c)
{
    struct operate o = {
        .verb = OPERATE_ROTATE,
        .target = call_argument(c, "id")->number,
        .grace_ms = call_argument(c, "grace_s")->number * 1000,
    };
    c->noun = "token";
    call_operate(c, &o, show_made_token);
}

/* ── access tokens ─────────────────────────────────────────────────────────────────────────── */

/* A scope of whatever service: a game server's token is shown to others than us. */
static bool is_scope(struct str word)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return word.len <= SCOPE_MAX && strspn(word.at, allowed) == word.len;
}

static int check_scopes(struct call *c)
{
    const struct argument *list = call_argument(c, "scopes");
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    for (size_t i = 0; i < list->n_items; i++) {
        if (is_scope(list->items[i]))
            continue;
        int err = arguments_refuse(&c->arguments, "scopes",
                                   "A scope is at most %d letters, digits, '.', '_' and '-', "
                                   "not %s.",
                                   SCOPE_MAX, arguments_show(shown, list->items[i]));
        call_refuse_argument(c);
        return err;
    }
    return 0;
}

/* "game,profile_write", in the arguments' arena. */
static const char *asked_scopes(struct call *c)
{
    const struct argument *list = call_argument(c, "scopes");
    struct buf words = {0};
    for (size_t i = 0; i < list->n_items; i++) {
        buf_append(&words, ",", i > 0);
        buf_append(&words, list->items[i].at, list->items[i].len);
    }
    struct str kept =
        arena_str(&c->arguments.arena, (struct str){(const char *)words.data, words.len});
    buf_done(&words);
    return kept.at;
}

/* From the second of the first asking, so that a repeat gets the same token. */
static void show_access_token(struct call *c)
{
    struct buf text = {0};
    struct access_answer answer = {
        .account = call_argument(c, "account")->text.at,
        .scopes = call_argument(c, "scopes")->items,
        .n_scopes = call_argument(c, "scopes")->n_items,
        .issued_wall_ms = c->asked_wall_ms / 1000 * 1000,
    };
    answer.expires_wall_ms =
        answer.issued_wall_ms + call_argument(c, "expires_in_s")->number * 1000;
    access_issue_words(c->rest->access, answer.account, asked_scopes(c), answer.issued_wall_ms,
                       answer.expires_wall_ms, &text);
    buf_append(&text, "", 1);
    answer.text = (const char *)text.data;
    call_render(c, &access_token_shape, &answer);
    buf_done(&text);
    call_read(c);
}

void handle_issue(struct call *c)
{
    char detail[128];
    if (check_scopes(c) != 0) {
        call_read(c);
        return;
    }
    int len = snprintf(detail, sizeof(detail), "%s: %s", call_argument(c, "account")->text.at,
                       asked_scopes(c));
    struct operate o = {
        .verb = OPERATE_ISSUE,
        .detail = {detail, len < (int)sizeof(detail) ? (size_t)len : sizeof(detail) - 1},
    };
    c->noun = "access token";
    call_operate(c, &o, show_access_token);
}
