/* What a cluster says: a watch in pieces, a page of a list, the answer to an allocation, a list of
 * tokens. Whatever comes, what is taken fits where it goes. */
#include "api/agones_object.h"
#include "fuzz/fuzz.h"

#include <string.h>

static void check(const struct gameserver_object *o)
{
    assert(o->name.len > 0 && o->name.len < AGONES_NAME_MAX &&
           !memchr(o->name.at, '/', o->name.len));
    assert(o->version.len > 0 && o->server >= 0 && o->session >= 0);
    assert(o->n_ports >= 0 && o->n_ports <= HOST_PORTS_MAX);
    for (int i = 0; i < o->n_ports; i++)
        assert(o->ports[i] > 0);
}

static void read_any(const struct json *v)
{
    struct watch_event e;
    struct gameserver_page page;
    struct gameserver_object o;
    struct allocated answer;
    if (watch_event_read(v, "game", &e) && e.kind <= WATCH_DELETED)
        check(&e.object);
    if (gameserver_read(v, "", &o))
        check(&o);
    if (gameserver_page_read(v, &page))
        for (size_t i = 0; i < json_length(page.items); i++)
            if (gameserver_read(json_item(page.items, i), "game", &o))
                check(&o);
    if (allocated_read(v, "game", &answer))
        assert(answer.state != ALLOCATED_YES || answer.name.len > 0);
}

static bool on_line(void *user, struct str line)
{
    char why[JSON_WHY_MAX];
    struct json *all = json_parse(line, why);
    struct json *root = gameserver_parse(line, why);
    size_t *lines = user;
    ++*lines;
    assert(root || !all);
    if (root)
        read_any(root);
    json_free(all);
    json_free(root);
    return true;
}

/* Added it is there, taken out it is not. */
static void change_tokens(struct str tokens)
{
    struct buf list = {0};
    buf_append(&list, tokens.at, tokens.len);
    tokens_change(&list, STR("AAAA"), true);
    assert(tokens_have((struct str){(const char *)list.data, list.len}, STR("AAAA")));
    tokens_change(&list, STR("AAAA"), false);
    assert(!tokens_have((struct str){(const char *)list.data, list.len}, STR("AAAA")));
    buf_done(&list);
}

/* The first byte is the size of the pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[AGONES_WHY_MAX];
    struct watch_lines lines = {0};
    size_t whole = 0, pieces = 0;
    if (size == 0)
        return 0;
    struct str text = {(const char *)data + 1, size - 1};
    (void)watch_lines_take(&lines, text, on_line, &whole);
    watch_lines_done(&lines);
    lines = (struct watch_lines){0};
    for (size_t at = 0, step = data[0] % 7 + 1u; at < text.len; at += step) {
        size_t n = text.len - at < step ? text.len - at : step;
        (void)watch_lines_take(&lines, (struct str){text.at + at, n}, on_line, &pieces);
    }
    watch_lines_done(&lines);
    assert(whole == pieces);
    (void)on_line(&whole, text);
    (void)agones_refusal(500, text, why);
    change_tokens(text);
    return 0;
}
