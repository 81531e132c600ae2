/* Placing players: create, join and enter, for one or for several together. Each is one
 * EVENT_PLACE; core answers when the seats are durable, or when there will be none. */
#include "api/call.h"
#include "api/play.h"
#include "base/err.h"
#include "wire/filter.h"
#include "wire/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    INFO_MAX = 4 * 1024,
    WAIT_MAX_MS = (REST_WAIT_MAX_S + 20) * 1000, /* before the HTTP server gives up */
};

/* What is asked for, in the arguments' arena. */
struct asked {
    struct place place;
    struct place_player players[PLACE_PLAYERS_MAX];
    struct play_refused refused[PLACE_PLAYERS_MAX]; /* of several: those to blame */
    size_t n_refused;
};

/* ── a refusal ─────────────────────────────────────────────────────────────────────────────── */

/* A head is ASCII: anything else is escaped as in a URL. */
static struct str head_text(struct call *c, struct str text)
{
    struct buf out = {0};
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte >= ' ' && byte < 127 && byte != '%') {
            buf_append(&out, &text.at[i], 1);
        } else {
            char escape[4];
            snprintf(escape, sizeof(escape), "%%%02X", byte);
            buf_append(&out, escape, 3);
        }
    }
    struct str kept = arena_str(&c->arguments.arena, (struct str){(const char *)out.data, out.len});
    buf_done(&out);
    return kept;
}

static void say_ban(struct call *c, struct json_writer *w, const struct placed *p)
{
    char until[PLAY_DATE_MAX];
    char id[24];
    play_date_print(p->ban_until_wall_ms, until);
    snprintf(id, sizeof(id), "%" PRId64, p->ban);
    json_key_id(w, "ban_id", p->ban);
    json_key_text(w, "ban_until", str_of(until));
    json_key_text(w, "ban_reason", p->ban_reason);
    call_head(c, "X-Ban-Id", str_of(id));
    call_head(c, "X-Ban-Until", str_of(until));
    call_head(c, "X-Ban-Reason", head_text(c, p->ban_reason));
}

static void say_refused(struct call *c, struct json_writer *w)
{
    const struct asked *a = c->work;
    if (!a->place.multi || a->n_refused == 0)
        return;
    json_key(w, "players");
    json_open_array(w);
    for (size_t i = 0; i < a->n_refused; i++)
        shape_write(w, &refused_shape, &a->refused[i], core_config(call_core(c)));
    json_close_array(w);
}

/* The sentence, and beside it everything a client can act on. */
static void refuse(struct call *c, int err, const char *argument, struct str sentence,
                   int64_t ticket, const struct placed *p)
{
    struct json_writer w = call_writer(c);
    c->status = err_status(err);
    json_open_object(&w);
    json_key(&w, "error");
    json_open_object(&w);
    json_key_text(&w, "code", str_of(err_code(err)));
    json_key_text(&w, "message", sentence);
    if (argument)
        json_key_text(&w, "argument", str_of(argument));
    if (ticket != 0)
        json_key_id(&w, "ticket", ticket);
    call_retry(c, &w, p ? p->retry_after_ms : 0);
    if (p && err == ERR_BANNED)
        say_ban(c, &w, p);
    if (p && p->tail.len > 0)
        json_key_text(&w, "output", p->tail);
    say_refused(c, &w);
    json_close_object(&w);
    json_close_object(&w);
}

/* Core names the first; whoever asked for several wants to know all of them. */
static void name_banned(struct call *c)
{
    struct asked *a = c->work;
    for (size_t i = 0; i < a->place.n_players; i++) {
        const struct place_player *player = &a->players[i];
        if (view_banned(call_core(c), player->account, player->address) == 0)
            continue;
        bool himself = view_banned(call_core(c), player->account, STR("")) != 0;
        a->refused[a->n_refused++] =
            (struct play_refused){.index = (int32_t)i,
                                  .account = player->account.at,
                                  .why = himself ? "banned" : "his address is banned"};
    }
}

/* Core gives a clause, which also stands in logs; people get a sentence. */
static struct str as_sentence(struct call *c, struct str clause)
{
    struct buf out = {0};
    buf_append(&out, clause.at, clause.len);
    if (clause.len > 0 && clause.at[0] >= 'a' && clause.at[0] <= 'z')
        out.data[0] = (uint8_t)(out.data[0] - 'a' + 'A');
    if (clause.len > 0 && clause.at[clause.len - 1] != '.')
        buf_append(&out, ".", 1);
    struct str kept = arena_str(&c->arguments.arena, (struct str){(const char *)out.data, out.len});
    buf_done(&out);
    return kept;
}

static void refuse_placed(struct call *c, const struct effect *e)
{
    struct str clause = e->text.len > 0 ? e->text : str_of(err_sentence(e->err));
    if (e->err == ERR_BANNED)
        name_banned(c);
    refuse(c, e->err, NULL, as_sentence(c, clause), e->ticket, e->placed);
}

/* ── the answer ────────────────────────────────────────────────────────────────────────────── */

static void hear_placed(struct call *c, const struct effect *e)
{
    const struct asked *a = c->work;
    if (e->kind != EFFECT_PLACED)
        return;
    if (e->err != 0) {
        refuse_placed(c, e);
        call_answer(c);
        return;
    }
    struct placed_answer answer = {.room = e->session, .ticket = e->ticket, .placed = e->placed};
    if (e->placed->n_seats > 0) {
        answer.slot = e->placed->seats[0].seat;
        answer.key = arena_str(&c->arguments.arena, e->placed->seats[0].key).at;
    }
    call_render(c, a->place.multi ? &placed_multi_shape : &placed_shape, &answer);
    call_answer(c);
}

/* A key is the asker's for that operation. Core takes it for the first player's, who may be
 * another, so it carries both. */
static struct str take_key(struct call *c)
{
    char text[ACCESS_ACCOUNT_MAX + REST_KEY_MAX + 64];
    const char *key = http_header(c->http, "Idempotency-Key");
    if (!key)
        return STR("");
    int n = snprintf(text, sizeof(text), "%s\n%s\n%s", c->operation->name, c->who.account, key);
    return arena_str(&c->arguments.arena, (struct str){text, (size_t)n});
}

static void step_place(struct call *c, struct asked *a)
{
    int64_t wait_ms = core_config(call_core(c))->timeouts.place_ms + REST_STORE_MS;
    a->place.players = a->players;
    a->place.key = take_key(c);
    if (a->place.key.len > 0) /* only a repeat is compared */
        arguments_digest(&c->arguments, a->place.arguments);
    struct event e = {.kind = EVENT_PLACE, .place = a->place};
    call_step(c, &e, wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS, hear_placed);
}

/* ── players ───────────────────────────────────────────────────────────────────────────────── */

/* A player comes more than once with a token, and it need be sealed but once. */
static struct str seal_token(struct call *c, const struct access_grant *grant, struct str token)
{
    struct buf here = {0};
    struct buf *kept = access_keepsake(c->rest->access, grant);
    struct buf *sealed = kept ? kept : &here;
    if (sealed->len == 0)
        seal_close(&c->rest->seal, token, sealed);
    struct str text =
        arena_str(&c->arguments.arena, (struct str){(const char *)sealed->data, sealed->len});
    buf_done(&here);
    return text;
}

/* The asker himself. */
static void take_self(struct call *c, struct asked *a)
{
    const struct argument *info = call_argument(c, "info");
    a->players[0] = (struct place_player){
        .account = str_of(c->who.account),
        .address = str_of(c->address),
        .info = info->given ? info->text : STR(""), /* is {} */
        .sealed = seal_token(c, &c->who, c->bearer),
    };
    a->place.n_players = 1;
}

/* NULL, or what is wrong with the token. */
static const char *take_token(struct call *c, struct str token, struct place_player *ret)
{
    struct access_grant grant;
    char why[ACCESS_WHY_MAX];
    if (token.len == 0)
        return "there is no token";
    if (access_check(c->rest->access, token, c->rest->doors->wall_ms, &grant, why) != 0)
        return arena_str(&c->arguments.arena, str_of(why)).at;
    ret->account = arena_str(&c->arguments.arena, str_of(grant.account));
    if (!(grant.scopes & ACCESS_GAME))
        return "the token has not the scope game";
    ret->sealed = seal_token(c, &grant, token);
    return NULL;
}

static const char *take_info(struct call *c, const struct json *value, struct place_player *ret)
{
    struct buf text = {0};
    const char *why = NULL;
    if (json_kind(value) != JSON_KIND_OBJECT)
        return "info is no object";
    json_any(&(struct json_writer){.out = &text}, value);
    if (text.len > INFO_MAX)
        why = "info is longer than 4096 bytes";
    ret->info = arena_str(&c->arguments.arena, (struct str){(const char *)text.data, text.len});
    buf_done(&text);
    return why;
}

static const char *take_ip(struct call *c, const struct json *value, struct place_player *ret)
{
    union address parsed;
    ret->address = arena_str(&c->arguments.arena, json_get_text(value));
    return address_parse(ret->address.at, 0, &parsed) ? NULL : "ip is no address";
}

/* One of `accounts`: NULL, or what is wrong with it. */
static const char *take_account(struct call *c, const struct json *object, struct place_player *ret)
{
    void *at = NULL;
    const char *name = NULL;
    const char *why = NULL;
    const struct json *value = NULL;
    struct str token = {0};
    *ret = (struct place_player){.address = STR(""), .info = STR("")};
    while (!why && json_next(object, &at, &name, &value)) {
        if (strcmp(name, "token") == 0)
            token = json_get_text(value);
        else if (strcmp(name, "ip") == 0)
            why = take_ip(c, value, ret);
        else if (strcmp(name, "info") == 0)
            why = take_info(c, value, ret);
        else
            why = "it has other keys than token, ip and info";
    }
    return why ? why : take_token(c, token, ret);
}

static bool comes_twice(const struct asked *a, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (str_eq(a->players[i].account, a->players[j].account))
            return true;
    }
    return false;
}

/* All of them are looked at, so that all that is wrong is said at once. */
static int take_accounts(struct call *c, struct asked *a)
{
    const struct argument *list = call_argument(c, "accounts");
    for (size_t i = 0; i < list->n_items; i++) {
        char ignored[JSON_WHY_MAX];
        struct json *object = json_parse(list->items[i], ignored);
        const char *why = take_account(c, object, &a->players[i]);
        json_free(object);
        if (!why && comes_twice(a, i))
            why = "it is there twice";
        if (why)
            a->refused[a->n_refused++] = (struct play_refused){
                .index = (int32_t)i, .account = a->players[i].account.at, .why = why};
    }
    a->place.n_players = list->n_items;
    if (a->n_refused == 0)
        return 0;
    char text[160];
    snprintf(text, sizeof(text), "%zu of %zu accounts cannot be placed; accounts[%d]: %.80s.",
             a->n_refused, list->n_items, a->refused[0].index, a->refused[0].why);
    refuse(c, ERR_BAD_ARGUMENT, "accounts", str_of(text), 0, NULL);
    call_remember_refusal(c, ERR_BAD_ARGUMENT, "accounts");
    return ERR_BAD_ARGUMENT;
}

/* ── what they want ────────────────────────────────────────────────────────────────────────── */

static struct asked *begin(struct call *c, enum place_verb verb)
{
    struct asked *a = arena_alloc(&c->arguments.arena, sizeof(*a));
    a->place = (struct place){.verb = verb, .region = -1, .settings = STR("{}")};
    a->n_refused = 0; /* what follows is large, and written before it is read */
    c->work = a;
    return a;
}

static int take_fleet(struct call *c, struct asked *a)
{
    struct view_fleet fleet;
    int err = play_fleet(c, &fleet);
    if (err != 0)
        return err;
    a->place.fleet = arena_str(&c->arguments.arena, str_of(fleet.name));
    a->place.version = call_argument(c, "version")->text;
    return 0;
}

static void take_settings(struct call *c, struct asked *a, const char *argument)
{
    const struct argument *v = call_argument(c, argument);
    if (v->given)
        a->place.settings = v->text;
}

/* Fleet, players and where they are; 0, or an error with the refusal rendered. */
static int take_all(struct call *c, struct asked *a)
{
    int err = take_fleet(c, a);
    if (err == 0 && a->place.multi)
        err = take_accounts(c, a);
    else if (err == 0)
        take_self(c, a);
    return err == 0 ? play_where(c, a->players[0].address, &a->place) : err;
}

static void create(struct call *c, bool multi)
{
    struct asked *a = begin(c, PLACE_CREATE);
    a->place.multi = multi;
    take_settings(c, a, "settings");
    if (take_all(c, a) == 0)
        step_place(c, a);
    else
        call_read(c);
}

static void join(struct call *c, bool multi)
{
    struct filter *filter = NULL;
    struct asked *a = begin(c, PLACE_JOIN);
    a->place.multi = multi;
    a->place.auto_create = call_argument(c, "auto_create")->number != 0;
    a->place.my_region_only = call_argument(c, "my_region_only")->number != 0;
    take_settings(c, a, "create_settings");
    int err = play_filter(c, &filter);
    if (err == 0)
        err = take_all(c, a);
    a->place.filter = filter;
    if (err == 0)
        step_place(c, a);
    else
        call_read(c);
    filter_free(filter);
}

void handle_create(struct call *c)
{
    create(c, false);
}

void handle_create_multi(struct call *c)
{
    create(c, true);
}

void handle_join(struct call *c)
{
    join(c, false);
}

void handle_join_multi(struct call *c)
{
    join(c, true);
}

void handle_enter(struct call *c)
{
    struct view_room room;
    struct asked *a = begin(c, PLACE_ENTER);
    a->place.room = call_argument(c, "room")->number;
    if (!view_room(call_core(c), a->place.room, &room) ||
        !str_eq(call_argument(c, "game")->text, str_of(room.game))) {
        call_refuse(c, ERR_NO_ROOM, NULL, "There is no room %" PRId64 " of this game.",
                    a->place.room);
        call_read(c);
        return;
    }
    take_self(c, a);
    step_place(c, a);
}
