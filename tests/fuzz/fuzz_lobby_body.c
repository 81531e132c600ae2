/* Teams and groups of a lobby: what is taken is what core may be given, and every refusal says
 * where and why. */
#include "api/lobby_body.h"
#include "base/err.h"
#include "base/json.h"
#include "fuzz/fuzz.h"

static void check(const struct lobby_body *b)
{
    for (size_t i = 0; i < b->n_players; i++) {
        const struct lobby_entry *p = &b->players[i];
        assert(p->account > 0 && p->slot >= 0 && p->team >= 0 && p->team <= 1);
        assert(p->group >= 0 && p->group < LOBBY_PLAYERS_MAX);
        assert(p->name.len >= 1 && p->name.len <= LOBBY_NAME_MAX && str_is_utf8(p->name));
    }
}

enum { LISTS_MAX = 8 };

/* A list of lists: the first two are teams, the others groups. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[JSON_WHY_MAX];
    struct json *root = json_parse((struct str){(const char *)data, size}, why);
    struct buf texts[LISTS_MAX] = {0};
    struct str lists[LISTS_MAX];
    struct arena arena = {0};
    struct lobby_body body;
    size_t n = 0;
    while (root && json_kind(root) == JSON_KIND_ARRAY && n < LISTS_MAX && n < json_length(root) &&
           json_kind(json_item(root, n)) == JSON_KIND_ARRAY) {
        json_any(&(struct json_writer){.out = &texts[n]}, json_item(root, n));
        lists[n] = (struct str){(const char *)texts[n].data, texts[n].len};
        n++;
    }
    size_t n_teams = n < 2 ? n : 2;
    if (lobby_body_read(&body, &arena, lists, n_teams, lists + n_teams, n - n_teams) == 0)
        check(&body);
    else
        assert(body.where[0] && body.why[0] && str_is_utf8(str_of(body.why)));
    for (size_t i = 0; i < n; i++)
        buf_done(&texts[i]);
    json_free(root);
    arena_done(&arena);
    return 0;
}
