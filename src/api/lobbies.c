/* Lobbies over HTTP: whoever made a match asks for one, looks at it and may abort it. What players
 * do in it they say on the client port. */
#include "api/browse.h"
#include "api/lobby_body.h"
#include "api/resource_lobby.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

/* false when there is none (any more). Its players are in the call's arena. */
static bool find(struct call *c, int64_t id, struct lobby_answer *ret)
{
    struct view_lobby_player *players =
        arena_alloc(&c->arguments.arena, LOBBY_PLAYERS_MAX * sizeof(*players));
    *ret = (struct lobby_answer){.players = players};
    if (!view_lobby(call_core(c), id, &ret->view))
        return false;
    while (ret->n_players < LOBBY_PLAYERS_MAX &&
           view_lobby_player(call_core(c), id, ret->n_players, &players[ret->n_players]))
        ret->n_players++;
    return true;
}

static bool has_player(const struct core *core, int64_t lobby, int64_t account)
{
    struct view_lobby_player player;
    for (size_t i = 0; view_lobby_player(core, lobby, i, &player); i++) {
        if (player.account == account)
            return true;
    }
    return false;
}

static bool lobby_item(const struct core *core, int64_t id, const struct wanted *wanted,
                       struct json_writer *w)
{
    struct view_lobby v;
    if (!view_lobby(core, id, &v) || (wanted->fleet && v.fleet_id != wanted->fleet) ||
        !browse_fits(wanted->state, v.state) ||
        (wanted->player && !has_player(core, id, wanted->player)))
        return false;
    shape_write(w, &lobby_shape, &v, core_config(core));
    return true;
}

void handle_list_lobbies(struct call *c)
{
    struct wanted wanted = {.state = call_argument(c, "state")->text,
                            .player = call_argument(c, "account")->number};
    if (call_fleet(c, "fleet", &wanted.fleet) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_lobby, browse_order(c), lobby_item, &wanted);
}

static void show_lobby(struct call *c)
{
    struct lobby_answer v;
    int64_t id = call_argument(c, "id")->number;
    if (find(c, id, &v))
        browse_show(c, &lobby_whole_shape, &v);
    else
        browse_refuse_missing(c, "lobby", id);
}

void handle_get_lobby(struct call *c)
{
    struct view_lobby v;
    int64_t id = call_argument(c, "id")->number;
    int64_t wait_s = call_argument(c, "wait")->number;
    if (wait_s > 0 && view_lobby(call_core(c), id, &v) && v.live && v.started_wall_ms == 0)
        call_wait(c, id, wait_s * 1000, show_lobby);
    else
        show_lobby(c);
}

/* ── asking for one ────────────────────────────────────────────────────────────────────────── */

static void show_changed(struct call *c)
{
    struct lobby_answer v;
    if (find(c, c->object, &v)) {
        browse_show(c, &lobby_whole_shape, &v);
        return;
    }
    call_refuse(c, ERR_NOT_FOUND, NULL, "It was done, but there is no lobby %" PRId64 " any more.",
                c->object);
    call_read(c);
}

static void show_created(struct call *c)
{
    char path[48];
    snprintf(path, sizeof(path), "/v1/lobbies/%" PRId64, c->object);
    call_head(c, "Location", str_of(path));
    c->status = 201;
    show_changed(c);
}

/* Ends the call as anything else that was seen in core. */
static void refuse_seen(struct call *c, int err)
{
    call_refuse(c, err, c->arguments.wrong, "%s", c->arguments.why);
    call_read(c);
}

/* The fleet by its name; false when the call is ended. A fleet that is not named is core's to find.
 */
static bool find_fleet(struct call *c, struct str *ret)
{
    struct view_fleet named;
    int64_t id = 0;
    if (call_fleet(c, "fleet", &id) != 0) {
        refuse_seen(c, ERR_NO_SUCH_FLEET);
        return false;
    }
    *ret = id != 0 && view_fleet(call_core(c), id, &named) ? str_of(named.name) : STR("default");
    return true;
}

static bool find_region(struct call *c, int8_t *ret)
{
    const struct argument *v = call_argument(c, "region");
    int code = REGION_AUTO;
    if (v->given && strcasecmp(v->text.at, "AUTO") != 0 && call_region(c, "region", &code) != 0) {
        refuse_seen(c, ERR_REGION_NOT_SUPPORTED);
        return false;
    }
    *ret = (int8_t)code;
    return true;
}

void handle_create_lobby(struct call *c)
{
    struct lobby_body *body = arena_alloc(&c->arguments.arena, sizeof(*body));
    const struct argument *teams = call_argument(c, "teams");
    const struct argument *groups = call_argument(c, "groups");
    struct lobby_wanted wanted = {
        .game_type = (int8_t)call_argument(c, "type")->number,
        .game_mode = (int8_t)call_argument(c, "mode")->number,
        .average_rating = (int32_t)call_argument(c, "rating")->number,
        .map = call_argument(c, "map")->text,
        .requeue = call_argument(c, "requeue")->number,
        .players = body->players,
    };
    struct operate o = {.verb = OPERATE_CREATE_LOBBY, .lobby = &wanted};
    c->noun = "lobby";
    if (lobby_body_read(body, &c->arguments.arena, teams->items, teams->n_items, groups->items,
                        groups->n_items) != 0) {
        call_refuse(c, ERR_BAD_ARGUMENT, body->where, "%s", body->why);
        call_answer(c);
        return;
    }
    wanted.n_players = body->n_players;
    if (find_fleet(c, &o.fleet) && find_region(c, &wanted.region))
        call_operate(c, &o, show_created);
}

void handle_abort_lobby(struct call *c)
{
    const struct argument *reason = call_argument(c, "reason");
    struct operate o = {.verb = OPERATE_ABORT_LOBBY,
                        .target = call_argument(c, "id")->number,
                        .reason = reason->text,
                        .detail = reason->text};
    c->noun = "lobby";
    call_operate(c, &o, show_changed);
}
