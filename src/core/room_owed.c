/* What a room owes its host: STARTING the spawn, ENDING the order to end it. Both may be said twice
 * (an agent takes a server's id as the name of the request), so they are said until it is clear
 * that they were heard: after a restart, after a lost connection, whatever was lost. */
#include "core/state.h"

#include <stdio.h>
#include <string.h>

enum {
    TELL_AGAIN_MS = 5 * 1000, /* nobody has said anything */
    UNHEARD_AGAIN_MS = 1000,  /* nobody was there */
    UNHEARD_MAX = 3,          /* … so often in a row: it will not be there for this one */
};

void room_owe(struct core *core, struct room *room, int64_t in_ms)
{
    deadline_set(core, &room->repeat, DEADLINE_AWAKE, deadline_now(core, DEADLINE_AWAKE) + in_ms);
}

static const char *const end_sentences[END_REASONS] = {
    [END_TOO_LONG] = "it was open for too long",
    [END_BY_OPERATOR] = "an operator ended it",
    [END_SPAWN_FAILED] = "it was given up",
    [END_SPAWN_TIMEOUT] = "it did not initialise in time",
    [END_EMPTY] = "nobody is in it",
    [END_GIVEN_UP] = "nobody waits for it any more",
    [END_HOST_LOST] = "its host was away for too long",
};

void room_terminate(struct core *core, const struct host *host, int64_t server, struct str why)
{
    struct str url = text_keep(core, str_of(host->row.url));
    struct effect *e = effect_add(core, EFFECT_TERMINATE, 0);
    e->host = host->row.id;
    e->ip = url;
    e->object = server;
    e->text = why;
}

/* A host may begin while the room is being stored, which takes as long as half of what is left to
 * do here and there. It says nothing of what it has begun, and ends it, unless the spawn itself
 * comes: so whatever becomes of the batch, nothing was promised. */
static void prepare(struct core *core, struct room *room, const struct spawn *s)
{
    bool agent = room->fleet->config && room->fleet->config->provider == PROVIDER_AGENT;
    if (agent && !room->prepared)
        batch_immediate(core->out, EFFECT_PREPARE, 0)->spawn = s;
    room->prepared = true;
}

static void spawn(struct core *core, struct room *room)
{
    const struct deployment *deployment = deployment_find(core, room->row.deployment);
    struct spawn *s = arena_alloc(&core->out->arena, sizeof(*s));
    *s = (struct spawn){
        .url = text_keep(core, str_of(room->host->row.url)),
        .host = room->row.host,
        .server = room->row.server,
        .session = room->row.id,
        .fleet = text_keep(core, str_of(room->fleet->row.name)),
        .version = text_keep(core, str_of(room->version->row.name)),
        .deployment = room->row.deployment,
        .max_players = room->row.max_players,
        .settings = text_keep(core, room->row.settings),
        .within_ms = room_config(room)->spawn_ms,
    };
    if (room->fleet->config && room->fleet->config->provider == PROVIDER_AGONES)
        route_spawn(core, room, s);
    if (deployment)
        memcpy(s->digest, deployment->row.digest, sizeof(s->digest));
    prepare(core, room, s);
    effect_add(core, EFFECT_SPAWN, 0)->spawn = s;
}

void room_tell(struct core *core, struct room *room)
{
    room_owe(core, room, TELL_AGAIN_MS);
    room->told_core_ms = core->now.core_ms;
    if (host_is_away(room->host))
        return; /* it is told when it is back */
    if (room->row.state == ROOM_STARTING) {
        spawn(core, room);
    } else if (room->row.state == ROOM_ENDING) {
        const char *why = end_sentences[room->row.end_reason];
        room_terminate(core, room->host, room->row.server, str_of(why ? why : "it is over"));
    }
}

void room_confirmed(struct core *core, struct room *room)
{
    room->confirmed = true;
    room->unheard = 0;
    deadline_clear(core, &room->repeat);
}

/* It may have been spawned all the same, so it must be ended. */
void room_unheard(struct core *core, struct room *room)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "the agent of host %.64s cannot be reached",
                   room->host->row.name);
    struct room_failure failure = {.runs = true, .fault = FAULT_OF_HOST, .text = str_of(text)};
    room_failed(core, room, &failure);
}

/* An attempt before may have had a token and have been heard, so the server must be ended. */
static void without_token(struct core *core, struct room *room, struct str why)
{
    char text[320];
    (void)snprintf(text, sizeof(text), "the login service gave no token for the server: %.*s",
                   (int)why.len, why.at);
    struct room_failure failure = {
        .runs = true, .no_login = true, .fault = FAULT_OF_NOBODY, .text = str_of(text)};
    room_failed(core, room, &failure);
}

static void room_refused(struct core *core, struct room *room, const struct host_heard *heard)
{
    room_never_ran(core, room, heard->text);
    room_failed(core, room, &(struct room_failure){.fault = heard->fault, .text = heard->text});
}

static void heard_of_spawn(struct core *core, struct room *room, const struct host_heard *heard)
{
    bool in_vain = heard->err == ERR_IO || heard->err == ERR_LOGIN_FAILED;
    /* Its answer came while we did not run, and nobody read it in time. */
    bool slept = core->woke_core_ms > 0 && room->told_core_ms <= core->woke_core_ms;
    if (room->row.state != ROOM_STARTING)
        return;
    room->no_login = heard->err == ERR_LOGIN_FAILED;
    if (heard->err == 0)
        room_confirmed(core, room);
    else if (in_vain && (slept || ++room->unheard < UNHEARD_MAX))
        room_owe(core, room, UNHEARD_AGAIN_MS);
    else if (heard->err == ERR_LOGIN_FAILED)
        without_token(core, room, heard->text);
    else if (heard->err == ERR_IO)
        room_unheard(core, room);
    else
        room_refused(core, room, heard);
}

/* That an order to end was taken does not mean that it is done: the heartbeats tell. */
void room_heard(struct core *core, const struct host_heard *heard)
{
    struct room *room = room_of_server(core, heard->server);
    if (!room)
        return;
    if (heard->spawn)
        heard_of_spawn(core, room, heard);
    else if (room->row.state == ROOM_ENDING)
        room_owe(core, room, heard->err ? TELL_AGAIN_MS : core->config.timeouts.host_ms);
}

void room_adopt(struct core *core, struct room *room, struct host *host)
{
    if (room->host)
        room->host->n_rooms--;
    list_remove(&room->on_host);
    room->host = host;
    room->row.host = host->row.id;
    host->n_rooms++;
    list_append(&host->rooms, &room->on_host);
    object_touch(core, &room->object);
    room_seats_run(core, room);
}
