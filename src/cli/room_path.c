#include "cli/room_path.h"

#include <stdio.h>
#include <string.h>

static bool copy_member(const struct json *v, const char *key, char ret[ROOM_PATH_NAME_MAX])
{
    struct str text = json_get_text(json_member(v, key));
    return text.len > 0 && str_copy(ret, ROOM_PATH_NAME_MAX, text);
}

/* "arena/main": as players name it. */
static bool split(const char *what, struct room_path *ret)
{
    const char *slash = strchr(what, '/');
    struct str game = {what, (size_t)(slash - what)};
    return str_copy(ret->game, sizeof(ret->game), game) &&
           str_copy(ret->server, sizeof(ret->server), str_of(slash + 1)) && ret->game[0] &&
           ret->server[0] && !strchr(ret->server, '/');
}

static int ask_fleet(struct remote *r, const char *name, struct room_path *ret)
{
    struct ask look;
    ask_init(&look, "get_fleet", NULL);
    ask_set(&look, "fleet", name);
    int code = remote_ask(r, &look);
    if (code != EXIT_DONE)
        return code;
    (void)copy_member(r->answer.json, "name", ret->fleet);
    if (copy_member(r->answer.json, "game", ret->game) &&
        copy_member(r->answer.json, "server", ret->server))
        return EXIT_DONE;
    fprintf(stderr, "muster %s: fleet %s has no rooms: agents do not start its servers\n", r->verb,
            ret->fleet);
    return EXIT_REFUSED;
}

static int find_fleet(struct remote *r, const char *what, struct room_path *ret)
{
    if (!strchr(what, '/'))
        return ask_fleet(r, what, ret);
    if (split(what, ret))
        return EXIT_DONE;
    (void)args_refuse(r->verb, "FLEET is a fleet's name or GAME/SERVER, not '%s'", what);
    return EXIT_USAGE;
}

/* Versions are listed as they came, so the last is the newest. */
static int find_version(struct remote *r, struct room_path *ret)
{
    struct ask look;
    ask_init(&look, "list_versions", NULL);
    ask_set(&look, "fleet", ret->fleet);
    int code = remote_ask(r, &look);
    const struct json *items = json_member(r->answer.json, "items");
    for (size_t i = 0; code == EXIT_DONE && i < json_length(items); i++) {
        const struct json *item = json_item(items, i);
        if (json_get_bool(json_member(item, "enabled")))
            (void)copy_member(item, "name", ret->version);
    }
    if (code != EXIT_DONE || ret->version[0])
        return code;
    fprintf(stderr, "muster %s: fleet %s has no version that is enabled\n", r->verb, ret->fleet);
    return EXIT_REFUSED;
}

/* The fleet that players name so. */
static int find_fleet_of_path(struct remote *r, struct room_path *ret)
{
    struct ask look;
    ask_init(&look, "list_fleets", NULL);
    ask_set_number(&look, "limit", 1000);
    int code = remote_ask(r, &look);
    const struct json *items = json_member(r->answer.json, "items");
    for (size_t i = 0; code == EXIT_DONE && i < json_length(items); i++) {
        const struct json *item = json_item(items, i);
        if (str_eq(json_get_text(json_member(item, "game")), str_of(ret->game)) &&
            str_eq(json_get_text(json_member(item, "server")), str_of(ret->server)))
            (void)copy_member(item, "name", ret->fleet);
    }
    if (code != EXIT_DONE || ret->fleet[0])
        return code;
    fprintf(stderr, "muster %s: there is no fleet for %s/%s\n", r->verb, ret->game, ret->server);
    return EXIT_REFUSED;
}

int room_path_find(struct remote *r, const char *what, const char *version, struct room_path *ret)
{
    *ret = (struct room_path){.fleet = ""};
    int code = find_fleet(r, what, ret);
    if (code != EXIT_DONE)
        return code;
    if (version && str_copy(ret->version, sizeof(ret->version), str_of(version)))
        return EXIT_DONE;
    if (version) {
        (void)args_refuse(r->verb, "'%s' is no version", version);
        return EXIT_USAGE;
    }
    if (!ret->fleet[0])
        code = find_fleet_of_path(r, ret);
    return code == EXIT_DONE ? find_version(r, ret) : code;
}

int room_path_of_room(struct remote *r, const char *room, struct room_path *ret)
{
    struct ask look;
    char fleet[ROOM_PATH_NAME_MAX];
    *ret = (struct room_path){.fleet = ""};
    ask_init(&look, "get_room", NULL);
    ask_set(&look, "id", room);
    int code = remote_ask(r, &look);
    if (code != EXIT_DONE || !copy_member(r->answer.json, "fleet", fleet))
        return code;
    return ask_fleet(r, fleet, ret);
}

void room_path_set(const struct room_path *path, struct ask *a)
{
    ask_set(a, "game", path->game);
    ask_set(a, "server", path->server);
    ask_set(a, "version", path->version);
}
