/* Looking: lists page by page, and single objects. */
#include "api/browse.h"
#include "api/resource.h"
#include "api/why.h"
#include "base/err.h"
#include "base/suggest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { EXAMINED_MAX = 10 * 1000 }; /* objects looked at for one page */

/* ── names in arguments ────────────────────────────────────────────────────────────────────── */

/* A fleet by its name, or else by its number; 0 when there is none. */
static int64_t find_fleet(const struct core *core, struct str text)
{
    struct view_fleet fleet;
    int64_t id = 0;
    while ((id = core_next(core, ROW_fleet, id))) {
        if (view_fleet(core, id, &fleet) && str_eq(text, str_of(fleet.name)))
            return id;
    }
    char *end = NULL; /* arguments end with a NUL */
    id = strtoll(text.at, &end, 10);
    return *end == '\0' && id > 0 && view_fleet(core, id, &fleet) ? id : 0;
}

int call_find_region(const struct core *core, struct str name)
{
    const struct core_config *config = core_config(core);
    for (int code = 0; code < REGION_CODES; code++) {
        struct str own = str_of(config->regions[code].name);
        if (own.len > 0 && own.len == name.len && strncasecmp(own.at, name.at, own.len) == 0)
            return code;
    }
    return -1;
}

static int refuse_fleet(struct call *c, const char *argument, struct str text)
{
    const struct core *core = call_core(c);
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    struct view_fleet fleet;
    struct suggestion meant = suggest_for(text.at);
    int64_t id = 0;
    while ((id = core_next(core, ROW_fleet, id))) {
        if (view_fleet(core, id, &fleet))
            suggest_offer(&meant, fleet.name);
    }
    arguments_show(shown, text);
    if (meant.best)
        return arguments_refuse(&c->arguments, argument, "There is no fleet %s. Did you mean '%s'?",
                                shown, meant.best);
    return arguments_refuse(&c->arguments, argument, "There is no fleet %s.", shown);
}

static int refuse_region(struct call *c, const char *argument, struct str text)
{
    const struct core_config *config = core_config(call_core(c));
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    struct suggestion meant = suggest_for(text.at);
    for (int code = 0; code < REGION_CODES; code++) {
        if (config->regions[code].name[0])
            suggest_offer(&meant, config->regions[code].name);
    }
    arguments_show(shown, text);
    if (meant.best)
        return arguments_refuse(&c->arguments, argument,
                                "There is no region %s. Did you mean '%s'?", shown, meant.best);
    return arguments_refuse(&c->arguments, argument, "There is no region %s.", shown);
}

int call_fleet(struct call *c, const char *argument, int64_t *ret)
{
    const struct argument *v = call_argument(c, argument);
    *ret = v->given ? find_fleet(call_core(c), v->text) : 0;
    return v->given && *ret == 0 ? refuse_fleet(c, argument, v->text) : 0;
}

int call_region(struct call *c, const char *argument, int *ret)
{
    const struct argument *v = call_argument(c, argument);
    *ret = v->given ? call_find_region(call_core(c), v->text) : -1;
    return v->given && *ret < 0 ? refuse_region(c, argument, v->text) : 0;
}

int call_regions(struct call *c, const char *argument, uint64_t *ret)
{
    const struct core *core = call_core(c);
    const struct argument *v = call_argument(c, argument);
    *ret = 0;
    for (int code = 0; code < REGION_CODES && !v->given; code++) {
        if (core_config(core)->regions[code].name[0])
            *ret |= 1ull << code;
    }
    for (size_t i = 0; i < v->n_items; i++) {
        int code = call_find_region(core, v->items[i]);
        if (code < 0)
            return refuse_region(c, argument, v->items[i]);
        *ret |= 1ull << code;
    }
    return 0;
}

/* ── lists ─────────────────────────────────────────────────────────────────────────────────── */

void browse_list(struct call *c, enum row_kind kind, browse_step *step, browse_item *item,
                 const struct wanted *wanted)
{
    const struct core *core = call_core(c);
    int64_t left = call_argument(c, "limit")->number;
    int64_t last = call_argument(c, "cursor")->number;
    int64_t next = step(core, kind, last);
    struct json_writer w = call_writer(c);
    json_open_object(&w);
    json_key(&w, "items");
    json_open_array(&w);
    for (int seen = 0; next != 0 && left > 0 && seen < EXAMINED_MAX; seen++) {
        last = next;
        left -= item(core, last, wanted, &w);
        next = step(core, kind, last);
    }
    json_close_array(&w);
    json_key_id(&w, "next", next != 0 ? last : 0);
    json_close_object(&w);
    call_read(c);
}

void browse_whole(struct call *c,
                  void (*write)(struct json_writer *w, const struct core *core, int64_t fleet))
{
    int64_t fleet = 0;
    if (call_fleet(c, "fleet", &fleet) != 0) {
        browse_refuse_argument(c);
        return;
    }
    struct json_writer w = call_writer(c);
    json_open_object(&w);
    json_key(&w, "items");
    json_open_array(&w);
    write(&w, call_core(c), fleet);
    json_close_array(&w);
    json_key_id(&w, "next", 0);
    json_close_object(&w);
    call_read(c);
}

browse_step *browse_order(const struct call *c)
{
    return str_eq(call_argument(c, "order")->text, STR("newest")) ? merge_previous : merge_next;
}

bool browse_fits(struct str wanted, const char *word)
{
    return wanted.len == 0 || str_eq(wanted, str_of(word));
}

void browse_refuse_missing(struct call *c, const char *noun, int64_t id)
{
    call_refuse(c, ERR_NOT_FOUND, "id", "There is no %s %" PRId64 ".", noun, id);
    call_read(c);
}

void browse_refuse_argument(struct call *c)
{
    call_refuse_argument(c);
    call_read(c);
}

void browse_show(struct call *c, const struct shape *shape, const void *object)
{
    call_render(c, shape, object);
    call_read(c);
}

/* ── regions and fleets ────────────────────────────────────────────────────────────────────── */

void handle_list_regions(struct call *c)
{
    const struct core *core = call_core(c);
    struct view_region region;
    struct json_writer w = call_writer(c);
    json_open_object(&w);
    json_key(&w, "items");
    json_open_array(&w);
    for (int code = 0; code < REGION_CODES; code++) {
        if (view_region(core, (int8_t)code, &region))
            shape_write(&w, &region_shape, &region, core_config(core));
    }
    json_close_array(&w);
    json_key_id(&w, "next", 0);
    json_close_object(&w);
    call_read(c);
}

void handle_get_region(struct call *c)
{
    struct view_region region;
    struct str name = call_argument(c, "name")->text;
    int code = call_find_region(call_core(c), name);
    if (code >= 0 && view_region(call_core(c), (int8_t)code, &region)) {
        call_render(c, &region_shape, &region);
    } else {
        (void)refuse_region(c, "name", name);
        call_refuse(c, ERR_NOT_FOUND, "name", "%s", c->arguments.why);
    }
    call_read(c);
}

static bool fleet_item(const struct core *core, int64_t id, const struct wanted *wanted,
                       struct json_writer *w)
{
    struct fleet_answer v;
    (void)wanted;
    if (!merge_fleet(core, id, &v))
        return false;
    shape_write(w, &fleet_shape, &v, core_config(core));
    return true;
}

void handle_list_fleets(struct call *c)
{
    browse_list(c, ROW_fleet, core_next, fleet_item, NULL);
}

void handle_get_fleet(struct call *c)
{
    struct fleet_answer fleet;
    int64_t id = 0;
    if (call_fleet(c, "fleet", &id) == 0 && merge_fleet(call_core(c), id, &fleet))
        call_render(c, &fleet_shape, &fleet);
    else
        call_refuse(c, ERR_NOT_FOUND, "fleet", "%s", c->arguments.why);
    call_read(c);
}

/* ── servers ───────────────────────────────────────────────────────────────────────────────── */

static bool server_item(const struct core *core, int64_t id, const struct wanted *wanted,
                        struct json_writer *w)
{
    struct server_answer v;
    if (!merge_server(core, id, &v) || (wanted->fleet && v.view.fleet_id != wanted->fleet) ||
        (wanted->region >= 0 && v.view.region != wanted->region) ||
        (wanted->host && v.room.host != wanted->host) || !browse_fits(wanted->state, v.status) ||
        !browse_fits(wanted->kind, v.provider))
        return false;
    shape_write(w, &server_shape, &v, core_config(core));
    return true;
}

void handle_list_servers(struct call *c)
{
    struct wanted wanted = {.state = call_argument(c, "status")->text,
                            .kind = call_argument(c, "provider")->text,
                            .host = call_argument(c, "host")->number};
    if (call_fleet(c, "fleet", &wanted.fleet) != 0 || call_region(c, "region", &wanted.region) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_server, browse_order(c), server_item, &wanted);
}

void handle_get_server(struct call *c)
{
    struct server_answer v;
    int64_t id = call_argument(c, "id")->number;
    if (merge_server(call_core(c), id, &v))
        browse_show(c, &server_shape, &v);
    else
        browse_refuse_missing(c, "server", id);
}

/* ── sessions ──────────────────────────────────────────────────────────────────────────────── */

static bool session_item(const struct core *core, int64_t id, const struct wanted *wanted,
                         struct json_writer *w)
{
    struct session_answer v;
    if (!merge_session(core, id, &v) || (wanted->fleet && v.view.fleet_id != wanted->fleet) ||
        (wanted->server && v.view.server != wanted->server) ||
        (wanted->has_lobby && v.view.lobby != wanted->lobby) ||
        !browse_fits(wanted->state, v.view.state) || !browse_fits(wanted->kind, v.kind))
        return false;
    shape_write(w, &session_shape, &v, core_config(core));
    return true;
}

void handle_list_sessions(struct call *c)
{
    const struct argument *lobby = call_argument(c, "lobby");
    struct wanted wanted = {
        .server = call_argument(c, "server")->number,
        .state = call_argument(c, "state")->text,
        .kind = call_argument(c, "kind")->text,
        .has_lobby = lobby->given,
        .lobby = lobby->number,
    };
    if (call_fleet(c, "fleet", &wanted.fleet) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_session, browse_order(c), session_item, &wanted);
}

void handle_get_session(struct call *c)
{
    struct session_answer v;
    int64_t id = call_argument(c, "id")->number;
    if (merge_session(call_core(c), id, &v))
        browse_show(c, &session_shape, &v);
    else
        browse_refuse_missing(c, "session", id);
}

/* ── tickets ───────────────────────────────────────────────────────────────────────────────── */

static bool ticket_item(const struct core *core, int64_t id, const struct wanted *wanted,
                        struct json_writer *w)
{
    struct ticket_answer v;
    if (!merge_ticket(core, id, &v) || (wanted->fleet && v.view.fleet_id != wanted->fleet) ||
        (wanted->has_lobby && v.view.lobby != wanted->lobby) ||
        !browse_fits(wanted->state, v.view.state) || !browse_fits(wanted->kind, v.kind) ||
        !browse_fits(wanted->chat_server, v.view.chat_server) ||
        !browse_fits(wanted->account, v.account))
        return false;
    shape_write(w, &ticket_shape, &v, core_config(core));
    return true;
}

void handle_list_tickets(struct call *c)
{
    const struct argument *lobby = call_argument(c, "lobby");
    struct wanted wanted = {
        .state = call_argument(c, "state")->text,
        .kind = call_argument(c, "kind")->text,
        .account = call_argument(c, "account")->text,
        .chat_server = call_argument(c, "chat_server")->text,
        .has_lobby = lobby->given,
        .lobby = lobby->number,
    };
    if (call_fleet(c, "fleet", &wanted.fleet) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_ticket, browse_order(c), ticket_item, &wanted);
}

static void show_ticket(struct call *c)
{
    struct ticket_answer v;
    int64_t id = call_argument(c, "id")->number;
    if (merge_ticket(call_core(c), id, &v))
        browse_show(c, &ticket_shape, &v);
    else
        browse_refuse_missing(c, "ticket", id);
}

void handle_get_ticket(struct call *c)
{
    struct ticket_answer v;
    int64_t id = call_argument(c, "id")->number;
    int64_t wait_s = call_argument(c, "wait")->number;
    if (wait_s > 0 && merge_ticket(call_core(c), id, &v) && v.view.open)
        call_wait(c, id, wait_s * 1000, show_ticket);
    else
        show_ticket(c);
}

static void say_why(const struct core *core, const struct ticket_answer *t, struct buf *out)
{
    struct view_server server;
    struct view_room room;
    if (t->allocation.id != 0) {
        bool known = view_room(core, t->allocation.room, &room);
        why_allocation_sentence(&t->allocation, known ? &room : NULL, out);
    } else if (t->room.id != 0) {
        bool known = view_room(core, t->room.room, &room);
        why_room_sentence(&t->room, known ? &room : NULL, out);
    } else {
        bool known = view_server(core, t->view.server, &server);
        why_sentence(&t->view, known ? &server : NULL, core_config(core), out);
    }
    buf_append(out, "", 1);
}

void handle_why(struct call *c)
{
    struct why_answer answer;
    struct buf sentence = {0};
    int64_t id = call_argument(c, "id")->number;
    if (!merge_ticket(call_core(c), id, &answer.ticket)) {
        browse_refuse_missing(c, "ticket", id);
        return;
    }
    say_why(call_core(c), &answer.ticket, &sentence);
    answer.sentence = (const char *)sentence.data;
    call_render(c, &why_shape, &answer);
    buf_done(&sentence);
    call_read(c);
}

/* ── enrolment tokens and the audit ────────────────────────────────────────────────────────── */

static bool token_item(const struct core *core, int64_t id, const struct wanted *wanted,
                       struct json_writer *w)
{
    struct token_answer v = {0};
    (void)wanted;
    if (!view_token(core, id, &v.view))
        return false;
    shape_write(w, &token_shape, &v, core_config(core));
    return true;
}

void handle_list_tokens(struct call *c)
{
    browse_list(c, ROW_enrolment, core_next, token_item, NULL);
}

void handle_get_token(struct call *c)
{
    struct token_answer v = {0};
    int64_t id = call_argument(c, "id")->number;
    if (!view_token(call_core(c), id, &v.view)) {
        browse_refuse_missing(c, "token", id);
        return;
    }
    call_render(c, &token_shape, &v);
    call_read(c);
}

static bool audit_item(const struct core *core, int64_t id, const struct wanted *wanted,
                       struct json_writer *w)
{
    struct view_audit v;
    (void)wanted;
    if (!view_audit(core, id, &v))
        return false;
    shape_write(w, &audit_shape, &v, core_config(core));
    return true;
}

void handle_list_audit(struct call *c)
{
    browse_list(c, ROW_audit, core_previous, audit_item, NULL);
}

/* The token says it all: answered whatever the store does. */
void handle_me(struct call *c)
{
    struct me_answer answer = {
        .who = &c->who,
        .account = c->who.account,
        .expires_wall_ms = c->who.expires_wall_ms,
        .gamespace = access_gamespace(c->rest->access),
    };
    call_render(c, &me_shape, &answer);
    call_answer(c);
}
