#include "api/lobby_body.h"

#include "base/err.h"
#include "base/json.h"
#include "base/suggest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SLOT_MAX = INT8_MAX, SHOWN_MAX = 40 };

static const char *const member_names[] = {"account", "name", "slot", NULL};

/* Where something stands: teams[t][i], or a member of that. */
static void point(struct lobby_body *b, const char *list, size_t t, size_t i, const char *member)
{
    snprintf(b->where, sizeof(b->where), "%s[%zu][%zu]%s%.16s", list, t, i, member ? "." : "",
             member ? member : "");
}

static int refuse(struct lobby_body *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int refuse(struct lobby_body *b, const char *format, ...)
{
    int len = snprintf(b->why, sizeof(b->why), "%s ", b->where);
    va_list args;
    va_start(args, format);
    vsnprintf(b->why + len, sizeof(b->why) - (size_t)len, format, args);
    va_end(args);
    return ERR_BAD_ARGUMENT;
}

/* As it may stand in a sentence: JSON, which has no control characters, cut between characters. A
 * text that is cut still ends in its quote. */
static const char *show(char dst[SHOWN_MAX + 8], const struct json *value)
{
    struct buf text = {0};
    json_any(&(struct json_writer){.out = &text}, value);
    size_t len = text.len < SHOWN_MAX ? text.len : SHOWN_MAX;
    while (len > 0 && len < text.len && (text.data[len] & 0xc0) == 0x80)
        len--;
    const char *cut = json_kind(value) == JSON_KIND_TEXT ? "…\"" : "…";
    snprintf(dst, SHOWN_MAX + 8, "%.*s%s", (int)len, (const char *)text.data,
             len < text.len ? cut : "");
    buf_done(&text);
    return dst;
}

static int read_number(struct lobby_body *b, const struct json *v, int64_t min, int64_t max,
                       int64_t *ret)
{
    char shown[SHOWN_MAX + 8];
    bool fits = json_kind(v) == JSON_KIND_INT && json_get_int(v) >= min && json_get_int(v) <= max;
    if (!fits)
        return refuse(b, "is a whole number from %" PRId64 " to %" PRId64 ", not %s.", min, max,
                      show(shown, v));
    *ret = json_get_int(v);
    return 0;
}

static int read_account(struct lobby_body *b, const struct json *v, int32_t *ret)
{
    int64_t number = 0;
    int err = read_number(b, v, 1, INT32_MAX, &number);
    *ret = (int32_t)number;
    return err;
}

/* ── teams ─────────────────────────────────────────────────────────────────────────────────── */

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 127)
            return false;
    }
    return true;
}

static int read_name(struct lobby_body *b, struct arena *arena, const struct json *v,
                     struct lobby_entry *p)
{
    char shown[SHOWN_MAX + 8];
    struct str text = json_get_text(v);
    if (json_kind(v) != JSON_KIND_TEXT || text.len == 0 || text.len > LOBBY_NAME_MAX ||
        !is_plain(text))
        return refuse(b, "is text of 1 to %d bytes without control characters, not %s.",
                      LOBBY_NAME_MAX, show(shown, v));
    p->name = arena_str(arena, text);
    return 0;
}

static void name_after_account(struct arena *arena, struct lobby_entry *p)
{
    char digits[16];
    snprintf(digits, sizeof(digits), "%" PRId32, p->account);
    p->name = arena_str(arena, str_of(digits));
}

static int refuse_member(struct lobby_body *b, const char *key)
{
    struct suggestion meant = suggest_for(key);
    for (const char *const *name = member_names; *name; name++)
        suggest_offer(&meant, *name);
    if (meant.best)
        return refuse(b, "has a member that is not known. Did you mean '%s'?", meant.best);
    return refuse(b, "has a member that is not known: a player has account, name and slot.");
}

static int read_member(struct lobby_body *b, struct arena *arena, const char *key,
                       const struct json *v, struct lobby_entry *p)
{
    int64_t slot = p->slot;
    int err = 0;
    if (strcmp(key, "account") == 0)
        return read_account(b, v, &p->account);
    if (strcmp(key, "name") == 0)
        return read_name(b, arena, v, p);
    err = read_number(b, v, 0, SLOT_MAX, &slot);
    p->slot = (int8_t)slot;
    return err;
}

static bool is_member(const char *key)
{
    for (const char *const *name = member_names; *name; name++) {
        if (strcmp(*name, key) == 0)
            return true;
    }
    return false;
}

static int read_player(struct lobby_body *b, struct arena *arena, const struct json *v, size_t t,
                       size_t i)
{
    struct lobby_entry *p = &b->players[b->n_players];
    char shown[SHOWN_MAX + 8];
    void *at = NULL;
    const char *key = NULL;
    const struct json *value = NULL;
    *p = (struct lobby_entry){.team = (int8_t)t, .slot = (int8_t)i, .group = -1};
    point(b, "teams", t, i, NULL);
    if (json_kind(v) != JSON_KIND_OBJECT)
        return refuse(b, "is a player, as {\"account\": 7}, not %s.", show(shown, v));
    while (json_next(v, &at, &key, &value)) {
        point(b, "teams", t, i, is_member(key) ? key : NULL);
        if (!is_member(key))
            return refuse_member(b, key);
        if (json_kind(value) == JSON_KIND_NULL)
            continue;
        int err = read_member(b, arena, key, value, p);
        if (err != 0)
            return err;
    }
    point(b, "teams", t, i, "account");
    if (p->account == 0)
        return refuse(b, "is missing.");
    if (p->name.len == 0)
        name_after_account(arena, p);
    b->n_players++;
    return 0;
}

/* Against those before it. */
static int judge_player(struct lobby_body *b, size_t t, size_t i)
{
    const struct lobby_entry *p = &b->players[b->n_players - 1];
    for (const struct lobby_entry *other = b->players; other < p; other++) {
        if (other->account == p->account)
            return refuse(b, "is %" PRId32 ", who is named twice.", p->account);
        point(b, "teams", t, i, "slot");
        if (other->team == p->team && other->slot == p->slot)
            return refuse(b, "is %d, which player %" PRId32 " of this team has.", p->slot,
                          other->account);
        point(b, "teams", t, i, "account");
    }
    return 0;
}

static int read_team(struct lobby_body *b, struct arena *arena, const struct json *team, size_t t)
{
    if (b->n_players + json_length(team) > LOBBY_PLAYERS_MAX) {
        snprintf(b->where, sizeof(b->where), "teams");
        return refuse(b, "have at most %d players.", LOBBY_PLAYERS_MAX);
    }
    for (size_t i = 0; i < json_length(team); i++) {
        int err = read_player(b, arena, json_item(team, i), t, i);
        if (err == 0)
            err = judge_player(b, t, i);
        if (err != 0)
            return err;
    }
    return 0;
}

/* ── groups ────────────────────────────────────────────────────────────────────────────────── */

static struct lobby_entry *find_player(struct lobby_body *b, int32_t account)
{
    for (size_t i = 0; i < b->n_players; i++) {
        if (b->players[i].account == account)
            return &b->players[i];
    }
    return NULL;
}

static int read_group(struct lobby_body *b, struct arena *arena, const struct json *group, size_t g)
{
    (void)arena;
    if (json_length(group) == 0) {
        snprintf(b->where, sizeof(b->where), "groups[%zu]", g);
        return refuse(b, "is empty.");
    }
    for (size_t i = 0; i < json_length(group); i++) {
        int32_t account = 0;
        point(b, "groups", g, i, NULL);
        int err = read_account(b, json_item(group, i), &account);
        if (err != 0)
            return err;
        struct lobby_entry *p = find_player(b, account);
        if (!p)
            return refuse(b, "is %" PRId32 ", who is in no team.", account);
        if (p->group >= 0)
            return refuse(b, "is %" PRId32 ", who is in a group already.", account);
        p->group = (int8_t)g;
    }
    return 0;
}

/* No group is empty, so there are never more of them than players. */
static void group_loners(struct lobby_body *b, size_t n_groups)
{
    for (size_t i = 0; i < b->n_players; i++) {
        if (b->players[i].group < 0)
            b->players[i].group = (int8_t)n_groups++;
    }
}

/* ── both ──────────────────────────────────────────────────────────────────────────────────── */

typedef int read_list(struct lobby_body *b, struct arena *arena, const struct json *list, size_t i);

/* Lists that were JSON before they became arguments. */
static int read_each(struct lobby_body *b, struct arena *arena, const struct str *lists, size_t n,
                     read_list *read)
{
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        char why[JSON_WHY_MAX];
        struct json *list = json_parse(lists[i], why);
        err = list ? read(b, arena, list, i) : ERR_BAD_ARGUMENT;
        json_free(list);
    }
    return err;
}

int lobby_body_read(struct lobby_body *b, struct arena *arena, const struct str *teams,
                    size_t n_teams, const struct str *groups, size_t n_groups)
{
    *b = (struct lobby_body){0};
    int err = read_each(b, arena, teams, n_teams, read_team);
    if (err == 0 && b->n_players == 0) {
        snprintf(b->where, sizeof(b->where), "teams");
        return refuse(b, "have no player at all.");
    }
    if (err == 0)
        err = read_each(b, arena, groups, n_groups, read_group);
    group_loners(b, n_groups);
    return err;
}
