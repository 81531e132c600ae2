#include "api/past.h"

#include "api/shape_rows.h"
#include "base/buf.h"
#include "base/date.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static const char *text_of(const struct json *v, const char *key)
{
    struct str s = json_get_text(json_member(v, key));
    return s.len > 0 ? s.at : "";
}

static int64_t number_of(const struct json *v, const char *key)
{
    return json_get_int(json_member(v, key));
}

bool past_read(struct str text, struct past_line *ret)
{
    char why[JSON_WHY_MAX];
    struct json *v = json_parse(text, why);
    int64_t at_ms = 0;
    if (!v || !date_parse(json_get_text(json_member(v, "at")), &at_ms)) {
        json_free(v);
        return false;
    }
    bool lobby = json_member(v, "lobby") != NULL;
    int64_t count = number_of(v, "count");
    *ret = (struct past_line){
        .json = v,
        .at_ms = at_ms,
        .step = text_of(v, "step"),
        .change = text_of(v, "change"),
        .player = text_of(v, "player"),
        .fleet = text_of(v, "fleet"),
        .reason = text_of(v, "reason"),
        .text = text_of(v, "text"),
        .who = text_of(v, "who"),
        .how = text_of(v, "how"),
        .name = text_of(v, "name"),
        .action = text_of(v, "action"),
        .target_kind = text_of(v, "target_kind"),
        .version = text_of(v, "version"),
        .digest = text_of(v, "digest"),
        .room = number_of(v, "room"),
        .match = number_of(v, "match"),
        .server = number_of(v, "server"),
        .ticket = number_of(v, "ticket"),
        .seat = number_of(v, "seat"),
        .host = number_of(v, "host"),
        .target = number_of(v, "target"),
        .position = number_of(v, "position"),
        .count = count > 0 ? count : 1,
        .lines = number_of(v, "lines"),
        .for_ms = number_of(v, "for_ms"),
        .lobby = lobby ? (int32_t)number_of(v, "lobby") : SHAPE_NO_INT32,
        .players = json_member(v, "players"),
    };
    return true;
}

void past_done(struct past_line *line)
{
    json_free(line->json);
    line->json = NULL;
}

bool past_concerns(const struct past_line *line, struct str account)
{
    if (str_eq(str_of(line->player), account))
        return true;
    for (size_t i = 0; i < json_length(line->players); i++) {
        if (str_eq(json_get_text(json_item(line->players, i)), account))
            return true;
    }
    return false;
}

/* ── saying ────────────────────────────────────────────────────────────────────────────────── */

__attribute__((format(printf, 2, 3))) static void say(struct past_line *l, const char *format, ...)
{
    size_t len = strlen(l->sentence);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(l->sentence + len, sizeof(l->sentence) - len, format, args);
    va_end(args);
}

static void say_id(struct past_line *l, const char *before, int64_t id)
{
    if (id != 0)
        say(l, "%s %" PRId64, before, id);
}

/* before: what joins it to the words, " in" or the like. */
static void say_where(struct past_line *l, const char *before)
{
    if (l->room || l->match)
        say(l, "%s", before);
    say_id(l, " room", l->room);
    say_id(l, " match", l->match);
    if (l->fleet[0])
        say(l, " of %s", l->fleet);
    say_id(l, " on server", l->server);
}

/* Why his place is gone, in the room's words. */
static const char *end_words(const char *reason)
{
    static const struct {
        const char *reason;
        const char *words;
    } all[] = {
        {"exited", "its server ended by itself"},
        {"hung", "its server did not answer any more"},
        {"host_lost", "its host was lost"},
        {"server_lost", "its server was lost"},
        {"by_operator", "an operator ended it"},
        {"empty", "nobody was in it"},
        {"too_long", "it lasted too long"},
        {"spawn_failed", "its server did not start"},
        {"spawn_timeout", "its server was not ready in time"},
        {"given_up", "nobody waited for it"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].reason, reason) == 0)
            return all[i].words;
    }
    return NULL;
}

static void say_because(struct past_line *l)
{
    const char *words = end_words(l->reason);
    if (words)
        say(l, ": %s", words);
    else if (l->text[0])
        say(l, ": %s", l->text);
    else if (l->reason[0])
        say(l, ": %s", l->reason);
}

static void say_refused(struct past_line *l)
{
    int err = err_of_code(l->reason);
    if (l->count > 1)
        say(l, "was refused %" PRId64 " times more", l->count);
    else
        say(l, "was refused");
    say_id(l, " in room", l->room);
    say_id(l, " in match", l->match);
    if (l->fleet[0])
        say(l, " a place in %s", l->fleet);
    if (l->text[0])
        say(l, ": %s", l->text);
    else
        say(l, ": %s", err ? err_sentence(err) : l->reason);
}

/* Steps that are said with the same words, what follows them apart. */
static bool say_plain(struct past_line *l)
{
    static const struct {
        const char *step;
        const char *words;
        const char *before; /* his place: NULL = " in" */
        const char *after;  /* it; NULL = nothing */
        bool because;
    } all[] = {
        {"reserved", "has a seat reserved", NULL, NULL, false},
        {"joined", "joined", "", NULL, false},
        {"left", "left", "", NULL, false},
        {"expired", "did not come in time, and lost the seat reserved", NULL, NULL, false},
        {"moved", "moved elsewhere from the seat", NULL, NULL, false},
        {"kicked", "was thrown out", " of", NULL, true},
        {"ended", "lost the seat", NULL, ", which is over", true},
        {"failed", "got no seat", NULL, ", which never opened", true},
        {"released", "gave up the seat", NULL, NULL, true},
        {"cancelled", "waits no more for a place", NULL, NULL, false},
        {"placed", "has a place", NULL, NULL, false},
        {"lobby_created", "is in a new lobby", NULL, NULL, false},
        {"lobby_started", "is to play: the lobby started", NULL, NULL, false},
        {"lobby_moved", "waits: the lobby looks for another server", NULL, NULL, true},
        {"lobby_aborted", "does not play: the lobby was aborted", NULL, NULL, true},
        {"lobby_lost", "has lost the server of the lobby", NULL, NULL, false},
        {"lobby_back", "has the server of the lobby back", NULL, NULL, false},
        {"lobby_ended", "has played: the lobby ended", NULL, NULL, true},
        {"reconnected", "connected again", NULL, NULL, false},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].step, l->step) != 0)
            continue;
        say(l, "%s", all[i].words);
        say_where(l, all[i].before ? all[i].before : " in");
        say(l, "%s", all[i].after ? all[i].after : "");
        if (all[i].because)
            say_because(l);
        return true;
    }
    return false;
}

void past_say_step(struct past_line *l)
{
    l->sentence[0] = '\0';
    if (strcmp(l->step, "refused") == 0) {
        say_refused(l);
    } else if (strcmp(l->step, "asked") == 0) {
        say(l, "asked for a place%s%s", l->fleet[0] ? " in " : "", l->fleet);
    } else if (strcmp(l->step, "queued") == 0) {
        say(l, "stands in line for a place%s%s", l->fleet[0] ? " in " : "", l->fleet);
        say_id(l, ", position", l->position);
    } else if (strcmp(l->step, "banned") == 0) {
        say(l, "was banned by %s", l->who);
    } else if (strcmp(l->step, "unbanned") == 0) {
        say(l, "may play again: %s lifted the ban", l->who);
    } else if (strcmp(l->step, "ban_changed") == 0) {
        say(l, "has a ban that %s changed", l->who);
    } else if (strcmp(l->step, "dequeued") == 0) {
        say(l, "was taken out of line by %s", l->who);
    } else if (!say_plain(l)) {
        say(l, "%s", l->step);
    }
}

static void say_operated(struct past_line *l)
{
    bool issue = strcmp(l->action, "issue") == 0;
    say(l, "%s: %s", l->who, issue ? "issue an access token" : l->action);
    if (l->target_kind[0])
        say(l, " %s", l->target_kind);
    say_id(l, "", l->target);
    if (l->player[0])
        say(l, " (%s)", l->player);
    else if (l->text[0])
        say(l, " (%s)", l->text);
}

static void say_thing(struct past_line *l, const char *noun, int64_t id, const char *words)
{
    say(l, "%s", noun);
    say_id(l, "", id);
    if (l->name[0])
        say(l, " (%s)", l->name);
    if (l->fleet[0])
        say(l, " of %s", l->fleet);
    say(l, " %s", words);
}

static bool say_came_or_went(struct past_line *l)
{
    static const struct {
        const char *change;
        const char *noun;
        const char *words;
    } all[] = {
        {"host_came", "host", "came"},
        {"host_silent", "host", "is silent; nothing new is started there"},
        {"host_back", "host", "is back"},
        {"host_lost", "host", "is lost; its rooms are over"},
        {"host_forgotten", "host", "was forgotten"},
        {"server_came", "server", "came"},
        {"server_back", "server", "is back"},
        {"server_offline", "server", "is Offline"},
        {"server_forgotten", "server", "was forgotten"},
        {"chat_server_came", "chat server", "came"},
        {"chat_server_gone", "chat server", "is gone"},
        {"version_switched", "a version", "runs another deployment"},
        {"version_quarantined", "a version", "does not start"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].change, l->change) != 0)
            continue;
        bool host = strcmp(all[i].noun, "host") == 0;
        say_thing(l, all[i].noun, host ? l->host : l->server, all[i].words);
        if (strncmp(l->change, "version_", 8) == 0 && l->text[0])
            say(l, ": %s", l->text);
        return true;
    }
    return false;
}

void past_say_change(struct past_line *l)
{
    l->sentence[0] = '\0';
    if (strcmp(l->change, "operated") == 0)
        say_operated(l);
    else if (strcmp(l->change, "started") == 0)
        say(l, "Muster %s started with the configuration %s", l->version, l->digest);
    else if (strcmp(l->change, "configured") == 0)
        say(l, "the configuration was read again: it is %s now", l->digest);
    else if (strcmp(l->change, "paused") == 0)
        say(l, "Muster did not run for %" PRId64 ".%" PRId64 " s", l->for_ms / 1000,
            l->for_ms % 1000 / 100);
    else if (strcmp(l->change, "history_lost") == 0)
        say(l, "%" PRId64 " lines of the history could not be written", l->lines);
    else if (!say_came_or_went(l))
        say(l, "%s", l->change);
}

/* ── shapes ────────────────────────────────────────────────────────────────────────────────── */

static void write_sentence(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    (void)config;
    json_text(w, str_of(((const struct past_line *)object)->sentence));
}

/* "drain" of an operator, "host_silent" of the course of things. */
static void write_what(struct json_writer *w, const void *object, const struct core_config *config)
{
    (void)config;
    const struct past_line *l = object;
    json_text(w, str_of(l->action[0] ? l->action : l->change));
}

const struct shape journey_entry_shape = {
    .name = "JourneyEntry",
    .help = "Something that happened to a player.",
    .rows =
        (const struct shape_row[]){
            ROW(TIME, "at", struct past_line, at_ms, NULL),
            ROW(TEXT, "step", struct past_line, step,
                "asked, queued, reserved, joined, left, refused, expired, moved, kicked, banned …"),
            ROW_WRITTEN(TEXT, "sentence", write_sentence, "the step in words, he being meant"),
            ROW_OR_NULL(TEXT, "fleet", struct past_line, fleet, NULL),
            ROW_OR_NULL(ID, "room", struct past_line, room, NULL),
            ROW_OR_NULL(ID, "match", struct past_line, match, NULL),
            ROW_OR_NULL(ID, "server", struct past_line, server, NULL),
            ROW_OR_NULL(ID, "ticket", struct past_line, ticket, "of a party that of who asked"),
            ROW_OR_NULL(ID, "seat", struct past_line, seat, NULL),
            ROW_OR_NULL(INT32, "lobby", struct past_line, lobby, NULL),
            ROW_OR_NULL(TEXT, "reason", struct past_line, reason,
                        "the code of an error, or why his place is gone"),
            ROW_OR_NULL(TEXT, "who", struct past_line, who, "of an operator's act: whose"),
            ROW(INT64, "count", struct past_line, count,
                "of refusals: more than one when they came too fast to be kept one by one"),
            {0},
        },
};

const struct shape change_shape = {
    .name = "Change",
    .help = "Something that was changed here, or that came or went.",
    .rows =
        (const struct shape_row[]){
            ROW(TIME, "at", struct past_line, at_ms, NULL),
            ROW_WRITTEN(TEXT, "what", write_what,
                        "started, configured, host_came, host_silent, version_switched …, or an "
                        "operator's act as in the audit: drain, ban, deploy …"),
            ROW_OR_NULL(TEXT, "who", struct past_line, who, "null: nobody, it happened"),
            ROW_WRITTEN(TEXT, "sentence", write_sentence, NULL),
            ROW_OR_NULL(TEXT, "fleet", struct past_line, fleet, NULL),
            ROW_OR_NULL(ID, "host", struct past_line, host, NULL),
            ROW_OR_NULL(ID, "server", struct past_line, server, NULL),
            ROW_OR_NULL(TEXT, "target_kind", struct past_line, target_kind, NULL),
            ROW_OR_NULL(ID, "target", struct past_line, target,
                        "what an operator's act was done to"),
            {0},
        },
};
