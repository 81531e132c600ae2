/* A simulated operator: drains, ends matches, makes, replaces and revokes tokens, reads, and has
 * the configuration read again. He repeats requests under their key, sometimes with other
 * arguments, and compares each answer with the first. */
#include "sim/world.h"

#include "base/err.h"
#include "core/view.h"

#include <inttypes.h>
#include <string.h>

/* Well below the shortest time for which a request is kept in any world. */
enum { REPEAT_MS = 60 * 1000 };

static const int64_t BAN_MS = (int64_t)1000 * 3600 * 1000;

static int64_t some_id(struct world *w, enum row_kind kind)
{
    const struct core *core = plane_core(w);
    int64_t newest = core_previous(core, kind, 0);
    if (newest == 0)
        return 0;
    return core_next(core, kind, random_between(&w->random, 0, newest - 1));
}

static int64_t some_target(struct world *w, enum operate_verb verb)
{
    switch (verb) {
    case OPERATE_DRAIN:
    case OPERATE_UNDRAIN:
        return some_id(w, ROW_server);
    case OPERATE_END:
        return some_id(w, ROW_session);
    case OPERATE_REVOKE:
    case OPERATE_ROTATE:
        return some_id(w, ROW_enrolment);
    case OPERATE_LIFT_BAN:
        return some_id(w, ROW_ban);
    case OPERATE_SWITCH:
        return some_id(w, ROW_deployment);
    default:
        return 0;
    }
}

static bool is_of_rooms(enum operate_verb verb)
{
    return verb == OPERATE_DEPLOY || verb == OPERATE_ENABLE_VERSION ||
           verb == OPERATE_DISABLE_VERSION;
}

static void ask(struct world *w, struct wish *wish, bool other_arguments)
{
    char key[24];
    char account[24];
    bool chat = wish->number % 2;
    (void)snprintf(account, sizeof(account), chat ? "%d" : "p%d", wish->number / 2 % 30);
    struct event event = {.kind = EVENT_OPERATE, .conn = ++w->next_conn};
    (void)snprintf(key, sizeof(key), "key %d", wish->number);
    event.operate = (struct operate){
        .verb = wish->verb,
        .target = wish->target,
        .who = STR("operator"),
        .address = STR("127.0.0.1"),
        .key = wish->keyed ? str_of(key) : STR(""),
        .arguments = {(uint8_t)wish->verb, other_arguments},
        .role = ROLE_SERVER,
        .fleet = is_of_rooms(wish->verb) ? STR("arena") : STR("default"),
        .name = is_of_rooms(wish->verb) ? STR("1") : STR(""),
        .digest = {(uint8_t)(wish->number % DEPLOYMENTS)},
        .regions = (1 << 17) - 1,
        .account = str_of(account),
        /* Longer than any clock of this world is wrong. */
        .expires_wall_ms = wish->verb == OPERATE_BAN ? world_wall_ms(w) + BAN_MS : 0,
        .grace_ms = wish->number % 2 ? 20 * 1000 : 0,
    };
    wish->conn = event.conn;
    wish->conflicting = other_arguments;
    node_event(w->leader, &event);
}

static void new_wish(struct world *w)
{
    static const enum operate_verb verbs[] = {
        OPERATE_DRAIN,
        OPERATE_UNDRAIN,
        OPERATE_END,
        OPERATE_ENROL,
        OPERATE_REVOKE,
        OPERATE_ROTATE,
        OPERATE_ISSUE,
        OPERATE_BAN,
        OPERATE_LIFT_BAN,
        OPERATE_DEPLOY,
        OPERATE_SWITCH,
        OPERATE_ENABLE_VERSION,
        OPERATE_ENABLE_VERSION,
        OPERATE_ENABLE_VERSION,
        OPERATE_ENABLE_VERSION,
        OPERATE_DISABLE_VERSION,
    };
    struct operator* o = & w->operator;
    struct wish *wish = &o->wishes[o->n_wishes % MAX_WISHES];
    *wish = (struct wish){.number = o->n_wishes++};
    wish->verb = verbs[random_between(&w->random, 0, sizeof(verbs) / sizeof(*verbs) - 1)];
    wish->keyed = random_chance(&w->random, 70);
    wish->target = some_target(w, wish->verb);
    wish->asked_core_ms = world_core_ms(w);
    int chat_account = wish->number % 2 ? wish->number / 2 % 30 : 0;
    if (wish->verb == OPERATE_BAN && chat_account <= MAX_CLIENTS)
        w->was_banned[chat_account] = true;
    if (wish->verb == OPERATE_LIFT_BAN && o->n_lifted < MAX_REVOKED)
        o->lifted[o->n_lifted++] = wish->target;
    ask(w, wish, false);
}

/* A key is good for as long as requests are kept; later it is a new request, which would be another
 * world's history. */
static void repeat_wish(struct world *w)
{
    struct operator* o = & w->operator;
    int n = o->n_wishes < MAX_WISHES ? o->n_wishes : MAX_WISHES;
    if (n == 0)
        return;
    struct wish *wish = &o->wishes[random_between(&w->random, 0, n - 1)];
    bool other_arguments = random_chance(&w->random, 25);
    if (!wish->keyed || wish->conn || world_core_ms(w) - wish->asked_core_ms > REPEAT_MS)
        return;
    ask(w, wish, other_arguments && wish->answered);
}

/* Looks at a session; when the answer leaves, the disk must know what was seen. */
void operator_reads(struct world *w)
{
    struct operator* o = & w->operator;
    struct view_session view;
    bool newest = random_chance(&w->random, 70);
    int64_t id = newest ? core_previous(plane_core(w), ROW_session, 0) : some_id(w, ROW_session);
    if (o->reading || !id || !view_session(plane_core(w), id, &view))
        return;
    struct event event = {.kind = EVENT_READ, .conn = ++w->next_conn};
    o->reading = event.conn;
    o->seen_session = id;
    o->seen_opened = view.opened_wall_ms > 0;
    node_event(w->leader, &event);
}

static void configure(struct world *w)
{
    struct core_config *c = &w->config;
    c->timeouts.ack_ms = random_between(&w->random, 2000, 6000);
    c->n_fleets = w->n_fleets + random_chance(&w->random, 50);
    c->fleets[w->n_fleets] = (struct fleet_config){.name = "spare"};
    for (size_t i = 0; i < w->n_fleets; i++) {
        if (c->fleets[i].provider != PROVIDER_CHAT && random_chance(&w->random, 30))
            c->fleets[i].token = random_chance(&w->random, 40) ? TOKEN_PLAYER_ID : TOKEN_OPAQUE;
    }
    struct node *n = w->leader;
    w->configured++;
    pipeline_reconfigure(n->pipeline, c, node_ms(n), node_wall_ms(n));
    pipeline_flush(n->pipeline, node_ms(n), node_wall_ms(n));
}

void operator_acts(struct world *w)
{
    if (!plane_awake(w))
        return;
    routes_check(w);
    int64_t die = random_between(&w->random, 0, 99);
    if (die < 40)
        new_wish(w);
    else if (die < 70)
        repeat_wish(w);
    else if (die < 95)
        operator_reads(w);
    else
        configure(w);
}

void operator_wake(struct world *w)
{
    operator_acts(w);
    if (!w->quiet)
        world_after(w, random_between(&w->random, 200, 20 * 1000), HAPPENS_OPERATOR);
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

/* What the answer to a request that succeeded says must hold from then on. */
static void learn(struct world *w, struct wish *wish, const struct effect *e)
{
    struct operator* o = & w->operator;
    wish->answered = true;
    wish->object = e->object;
    (void)str_copy(wish->token, sizeof(wish->token), e->token);
    if (e->token.len > 0) {
        struct game *g = &w->games[random_between(&w->random, 0, w->n_games - 1)];
        (void)str_copy(g->enrolment, sizeof(g->enrolment), e->token);
        g->enrolment_id = e->object;
    }
    if (wish->verb == OPERATE_REVOKE && o->n_revoked < MAX_REVOKED)
        o->revoked[o->n_revoked++] = e->object;
}

static void hear_operated(struct world *w, struct wish *wish, const struct effect *e)
{
    if (e->err == ERR_INTERNAL) /* it could not be stored: nothing has happened, or nobody knows */
        return;
    if (wish->conflicting) {
        if (e->err != ERR_KEY_CONFLICT)
            world_broken(w, "I4: key %d took other arguments: %s", wish->number, err_code(e->err));
        return;
    }
    if (!wish->answered && e->err == 0) {
        learn(w, wish, e);
        return;
    }
    if (!wish->answered)
        return;
    bool same = e->err == 0 && e->object == wish->object && str_eq(e->token, str_of(wish->token));
    if (!same)
        world_broken(w, "I4: key %d has two answers: %" PRId64 " and %" PRId64 " (%s)",
                     wish->number, wish->object, e->object, err_code(e->err));
}

void operator_hear(struct world *w, const struct effect *e)
{
    struct operator* o = & w->operator;
    if (e->kind == EFFECT_READ && e->conn == o->reading) {
        o->reading = 0;
        if (e->err == 0 && !shadow_has_session(w, o->seen_session, o->seen_opened))
            world_broken(w, "I7: session %" PRId64 " was shown before it is stored",
                         o->seen_session);
        return;
    }
    for (int i = 0; i < MAX_WISHES; i++) {
        struct wish *wish = &o->wishes[i];
        if (e->kind != EFFECT_OPERATED || wish->conn != e->conn)
            continue;
        wish->conn = 0;
        hear_operated(w, wish, e);
        return;
    }
}

void operator_plane_died(struct world *w)
{
    struct operator* o = & w->operator;
    o->reading = 0;
    for (int i = 0; i < MAX_WISHES; i++)
        o->wishes[i].conn = 0;
}

bool operator_revoked(const struct world *w, int64_t enrolment)
{
    const struct operator* o = & w->operator;
    for (int i = 0; i < o->n_revoked; i++) {
        if (o->revoked[i] == enrolment)
            return true;
    }
    return false;
}

static void check_ban(struct world *w, const struct wish *wish)
{
    const struct operator* o = & w->operator;
    bool lifted = o->n_lifted == MAX_REVOKED;
    struct view_ban ban;
    for (int i = 0; i < o->n_lifted; i++)
        lifted = lifted || o->lifted[i] == wish->object;
    if (!lifted && !view_ban(plane_core(w), wish->object, &ban))
        world_broken(w, "I5: ban %" PRId64 " was issued and is gone", wish->object);
}

/* What was answered is there after any crash. */
void operator_check(struct world *w)
{
    const struct operator* o = & w->operator;
    const struct core *core = w->leader ? plane_core(w) : NULL;
    for (int i = 0; core && i < MAX_WISHES; i++) {
        const struct wish *wish = &o->wishes[i];
        struct view_token token;
        if (wish->verb == OPERATE_BAN && wish->answered)
            check_ban(w, wish);
        if (wish->verb != OPERATE_ENROL || !wish->answered)
            continue;
        if (!view_token(core, wish->object, &token))
            world_broken(w, "I5: token %" PRId64 " was made and is gone", wish->object);
        else if (operator_revoked(w, wish->object) && !token.revoked_wall_ms)
            world_broken(w, "I5: token %" PRId64 " was revoked and is good again", wish->object);
    }
}
