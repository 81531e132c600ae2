/* `muster version where`: which version runs on which host. Counted from the list of rooms, since
 * nothing else knows both. */
#include "cli/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CURSOR_MAX = 32, PAGE = 1000, TEXT_MAX = 80 };

/* A room; or, once they are counted, all rooms that are alike in these texts. */
struct place {
    char texts[5][TEXT_MAX]; /* by `texts` below */
    int64_t rooms;
    int64_t players;
};

static const struct {
    const char *title;
    const char *key;
} texts[5] = {
    {"FLEET", "fleet"},   {"VERSION", "version"},       {"HOST", "host_name"},
    {"REGION", "region"}, {"DEPLOYMENT", "deployment"},
};

struct where {
    struct ask ask;
    struct buf found; /* of struct place */
};

static void add_room(struct where *w, const struct json *room)
{
    struct place p = {.rooms = 1};
    for (size_t i = 0; i < 5; i++)
        (void)str_copy(p.texts[i], TEXT_MAX, json_get_text(json_member(room, texts[i].key)));
    p.players = json_get_int(json_member(room, "taken"));
    buf_append(&w->found, &p, sizeof(p));
}

static bool is_over(const struct json *room)
{
    return str_eq(json_get_text(json_member(room, "state")), STR("ended"));
}

static int read_rooms(struct remote *r, struct where *w)
{
    char cursor[CURSOR_MAX] = "";
    do {
        ask_set_number(&w->ask, "limit", PAGE);
        ask_set(&w->ask, "cursor", *cursor ? cursor : NULL);
        int code = remote_ask(r, &w->ask);
        if (code != EXIT_DONE)
            return code;
        const struct json *items = json_member(r->answer.json, "items");
        for (size_t i = 0; i < json_length(items); i++) {
            if (!is_over(json_item(items, i)))
                add_room(w, json_item(items, i));
        }
        (void)str_copy(cursor, sizeof(cursor), json_get_text(json_member(r->answer.json, "next")));
    } while (*cursor);
    return EXIT_DONE;
}

static int compare(const void *a, const void *b)
{
    return memcmp(((const struct place *)a)->texts, ((const struct place *)b)->texts,
                  sizeof(((const struct place *)a)->texts));
}

/* Sorts, and makes one of those that are alike. Returns how many are left. */
static size_t count(struct where *w)
{
    struct place *all = (struct place *)(void *)w->found.data;
    size_t n = w->found.len / sizeof(*all);
    size_t kept = 0;
    if (n > 0)
        qsort(all, n, sizeof(*all), compare);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && compare(&all[kept - 1], &all[i]) == 0) {
            all[kept - 1].rooms += all[i].rooms;
            all[kept - 1].players += all[i].players;
        } else {
            all[kept++] = all[i];
        }
    }
    return kept;
}

static void draw_json(struct buf *out, const struct place *all, size_t n)
{
    struct json_writer w = {.out = out};
    json_open_array(&w);
    for (size_t i = 0; i < n; i++) {
        json_open_object(&w);
        for (size_t k = 0; k < 5; k++)
            json_key_text(&w, texts[k].key, str_of(all[i].texts[k]));
        json_key_int(&w, "rooms", all[i].rooms);
        json_key_int(&w, "players", all[i].players);
        json_close_object(&w);
    }
    json_close_array(&w);
    term_put(out, "\n");
}

static void number_cell(struct table *t, int64_t n)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%lld", (long long)n);
    table_cell(t, STYLE_PLAIN, (struct str){text, (size_t)len});
}

static void draw_table(struct remote *r, const struct place *all, size_t n)
{
    struct table t;
    table_init(&t);
    for (size_t k = 0; k < 5; k++)
        table_add_column(&t, texts[k].title, k == 4);
    table_add_column(&t, "ROOMS", true);
    table_add_column(&t, "PLAYERS", true);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 5; k++)
            table_cell(&t, STYLE_PLAIN, str_of(all[i].texts[k][0] ? all[i].texts[k] : "-"));
        number_cell(&t, all[i].rooms);
        number_cell(&t, all[i].players);
    }
    table_print(&t, &r->term, &r->out);
    table_done(&t);
}

static int draw(struct remote *r, void *user)
{
    struct where *w = user;
    buf_clear(&w->found);
    int code = read_rooms(r, w);
    if (code != EXIT_DONE)
        return code;
    size_t n = count(w);
    const struct place *all = (const struct place *)(const void *)w->found.data;
    if (remote_output() == OUTPUT_JSON)
        draw_json(&r->out, all, n);
    else
        draw_table(r, all, n);
    return EXIT_DONE;
}

int version_where_run(int argc, char **argv)
{
    struct remote r;
    struct where w = {0};
    ask_init(&w.ask, "list_rooms", NULL);
    ask_add_word(&w.ask, "fleet", "FLEET");
    int code = remote_open(&r, argc, argv, &w.ask, NULL, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_show(&r, draw, &w);
    buf_done(&w.found);
    remote_close(&r);
    return code;
}
