#include "cli/complete.h"

#include "cli/help.h"
#include "cli/remote.h"
#include "cli/show.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_TIMEOUT_S = 1, ASK_ITEMS = 200, WORD_MAX = 64 };

static const char FILES[] = ":files";
static const char FOLDERS[] = ":folders";

/* ── candidates ────────────────────────────────────────────────────────────────────────────── */

/* What is being typed: `kept` stays as it is before each candidate ("--region=", "EU,"), and
 * `typed` is what candidates begin with. */
struct typing {
    FILE *to;
    struct str kept;
    struct str typed;
};

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("-_.,:/@%+=", c);
}

/* Names are somebody else's. One that a shell would understand as more than a word could become a
 * command by the next Enter, so it is not offered. */
static bool is_safe(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!s.at[i] || !is_plain(s.at[i]))
            return false;
    }
    return s.len > 0;
}

static void offer(const struct typing *t, struct str word, struct str about)
{
    struct buf line = {0};
    if (!is_safe(word) || word.len < t->typed.len ||
        memcmp(word.at, t->typed.at, t->typed.len) != 0)
        return;
    buf_append(&line, t->kept.at, t->kept.len);
    buf_append(&line, word.at, word.len);
    if (about.len > 0) {
        term_put(&line, "\t");
        term_put_text(&line, about);
    }
    term_put(&line, "\n");
    fwrite(line.data, 1, line.len, t->to);
    buf_done(&line);
}

static void offer_words(const struct typing *t, const char *const *words)
{
    for (; *words; words++)
        offer(t, str_of(*words), str_of(""));
}

/* ── names that Muster knows ───────────────────────────────────────────────────────────────── */

/* What a word in capitals stands for, where a list of the API has it. */
static const struct source {
    const char *word;
    const char *option; /* whose value is such a word, too; NULL = none */
    const char *operation;
    const char *name;  /* of an item */
    const char *about; /* of an item */
} sources[] = {
    {"FLEET", "--fleet", "list_fleets", "name", "provider"},
    {"REGION", "--region", "list_regions", "name", NULL},
    {"REGIONS", "--regions", "list_regions", "name", NULL},
    {"VERSION", "--version", "list_versions", "name", "fleet"},
    {"HOST", "--host", "list_hosts", "id", "name"},
    {"SERVER", "--server", "list_servers", "id", "status"},
    {"ROOM", "--room", "list_rooms", "id", "state"},
    {"SESSION", "--session", "list_sessions", "id", "state"},
    {"TICKET", "--ticket", "list_tickets", "id", "state"},
    {"LOBBY", NULL, "list_lobbies", "id", "state"},
    {"SEAT", NULL, "list_seats", "id", "account"},
    {"BAN", NULL, "list_bans", "id", "account"},
    {"TOKEN", NULL, "list_tokens", "id", "name"},
};

static const struct source *source_of_word(struct str word)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        if (str_eq(word, str_of(sources[i].word)))
            return &sources[i];
    }
    return NULL;
}

/* --server HOST:PORT is no number of a server. */
static const struct source *source_of_option(const struct arg *arg)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        bool is_id = strcmp(sources[i].name, "id") == 0;
        if (sources[i].option && strcmp(arg->name, sources[i].option) == 0)
            return is_id && arg->kind != ARG_NUMBER ? NULL : &sources[i];
    }
    return NULL;
}

static void offer_items(const struct typing *t, const struct source *s, const struct json *items)
{
    for (size_t i = 0; i < json_length(items); i++) {
        const struct json *item = json_item(items, i);
        const struct json *value = show_at(item, s->name);
        struct buf name = {0};
        struct buf about = {0};
        if (json_get_text(value).len > 0)
            buf_append(&name, json_get_text(value).at, json_get_text(value).len);
        else if (json_get_int(value) > 0)
            show_value(&name, value, SHOW_NUMBER, 0);
        if (s->about)
            show_value(&about, show_at(item, s->about), SHOW_TEXT, 0);
        offer(t, (struct str){(const char *)name.data, name.len},
              (struct str){(const char *)about.data, about.len});
        buf_done(&name);
        buf_done(&about);
    }
}

/* The newest are meant where there are many. */
static void offer_names(const struct typing *t, const struct source *s)
{
    static char verb[] = "completion";
    char *argv[] = {verb, NULL};
    struct remote r;
    struct ask ask;
    if (remote_open(&r, 1, argv, NULL, NULL, NULL, false) != EXIT_DONE)
        return;
    r.quiet = true;
    ask_init(&ask, s->operation, NULL);
    if (ask_has(&ask, "limit"))
        ask_set_number(&ask, "limit", ASK_ITEMS);
    if (ask_has(&ask, "order"))
        ask_set(&ask, "order", "newest");
    if (remote_ask_by(&r, r.client, &ask, ASK_TIMEOUT_S) == EXIT_DONE)
        offer_items(t, s, json_member(r.answer.json, "items"));
    remote_close(&r);
}

/* ── values ────────────────────────────────────────────────────────────────────────────────── */

static bool offer_path(const struct typing *t, struct str word)
{
    bool file = str_eq(word, STR("FILE")) || str_eq(word, STR("ARCHIVE"));
    bool folder = str_eq(word, STR("DIR"));
    if (file || folder)
        fprintf(t->to, "%s\n", file ? FILES : FOLDERS);
    return file || folder;
}

/* A list goes on behind its last comma. */
static struct typing behind_comma(struct typing t)
{
    const char *comma = memrchr(t.typed.at, ',', t.typed.len);
    if (!comma)
        return t;
    size_t n = (size_t)(comma - t.typed.at) + 1;
    t.kept = (struct str){t.kept.at, (size_t)(comma - t.kept.at) + 1};
    t.typed = (struct str){t.typed.at + n, t.typed.len - n};
    return t;
}

static void offer_values(struct typing t, const struct arg *arg)
{
    const struct source *s = source_of_option(arg);
    if (arg->kind == ARG_LIST || (s && strcmp(s->operation, "list_regions") == 0))
        t = behind_comma(t);
    if (arg->words)
        offer_words(&t, arg->words);
    else if (s)
        offer_names(&t, s);
    else if (arg->value)
        (void)offer_path(&t, str_of(arg->value));
}

static void offer_option(const struct typing *t, const struct arg *arg)
{
    char about[ARGS_ABOUT_MAX] = "";
    if (!args_is_option(arg))
        return;
    if (arg->help)
        args_about(arg, about);
    offer(t, str_of(arg->name), str_of(about));
}

static void offer_options(const struct typing *t, const struct arg *const *tables)
{
    for (; *tables; tables++) {
        for (const struct arg *arg = *tables; arg->name; arg++)
            offer_option(t, arg);
    }
    offer(t, STR("--help"), STR("what this verb is and takes"));
}

/* One of the words that may stand at a place: "SERVER", or itself ("bash"). */
static void offer_placeholder(const struct typing *t, struct str word)
{
    const struct source *s = source_of_word(word);
    if (s)
        offer_names(t, s);
    else if (!offer_path(t, word) && word.len > 0 && (word.at[0] < 'A' || word.at[0] > 'Z'))
        offer(t, word, str_of(""));
}

/* Those of "bash|zsh|fish", one by one. */
static void offer_alternatives(const struct typing *t, struct str words)
{
    while (words.len > 0) {
        const char *bar = memchr(words.at, '|', words.len);
        size_t n = bar ? (size_t)(bar - words.at) : words.len;
        offer_placeholder(t, (struct str){words.at, n});
        n += bar ? 1 : 0;
        words = (struct str){words.at + n, words.len - n};
    }
}

/* The words of a synopsis that stand for the argument at that place, from 0. The first of "FLEET |
 * ROOM [OPTIONS]" is either of two; options, with the value behind them, have no place. */
static void offer_place(const struct typing *t, const char *synopsis, int place)
{
    int at = -1;
    bool is_value = false;
    bool is_other = false;
    while (*synopsis) {
        size_t n = strcspn(synopsis, " ");
        bool opens = synopsis[0] == '[';
        bool closes = n > 0 && synopsis[n - 1] == ']';
        struct str word = {synopsis + opens, n - opens - closes};
        synopsis += n + (synopsis[n] == ' ' ? 1 : 0);
        bool is_option = word.len > 0 && word.at[0] == '-';
        bool is_bar = str_eq(word, STR("|"));
        bool is_word = !is_option && !is_bar && !is_value && !str_eq(word, STR("OPTIONS"));
        at += is_word && !is_other ? 1 : 0;
        if (is_word && at == place)
            offer_alternatives(t, word);
        is_value = is_option && !closes;
        is_other = is_bar;
    }
}

/* ── the line ──────────────────────────────────────────────────────────────────────────────── */

static const struct arg *find_option(const struct arg *const *tables, const char *word, size_t n)
{
    for (; *tables; tables++) {
        for (const struct arg *arg = *tables; arg->name; arg++) {
            bool letter = n == 2 && arg->letter && word[1] == arg->letter;
            if (args_is_option(arg) &&
                (letter || (strlen(arg->name) == n && memcmp(arg->name, word, n) == 0)))
                return arg;
        }
    }
    return NULL;
}

/* --url and the like count already: the names of that Muster are wanted. */
static void use(const struct arg *arg, const char *value)
{
    for (const struct arg *row = remote_options; row->name; row++) {
        if (row == arg && row->kind == ARG_TEXT)
            *(const char **)row->into = value;
    }
}

/* Bash cuts "--output=json" into three words; others leave it whole. */
static bool is_equals(const char *word)
{
    return strcmp(word, "=") == 0;
}

/* What stands before the word that is typed: how many arguments without a name, and the option
 * whose value it is, or NULL. */
static const struct arg *read_line(const struct arg *const *tables, int n, char **words,
                                   int *ret_place)
{
    const struct arg *open = NULL;
    *ret_place = 0;
    for (int i = 0; i < n; i++) {
        size_t len = strcspn(words[i], "=");
        if (open && is_equals(words[i]))
            continue;
        if (open) {
            use(open, words[i]);
            open = NULL;
        } else if (words[i][0] == '-' && words[i][1]) {
            const struct arg *arg = find_option(tables, words[i], len);
            if (arg && words[i][len] == '=')
                use(arg, words[i] + len + 1);
            else if (arg && arg->kind != ARG_FLAG)
                open = arg;
        } else {
            ++*ret_place;
        }
    }
    return open;
}

static struct typing typing_of(FILE *to, const char *word)
{
    return (struct typing){.to = to, .kept = {word, 0}, .typed = str_of(word)};
}

/* The arguments of a verb; words are those behind it. */
static void put_arguments(FILE *to, const struct command *c, int n, char **words)
{
    struct ask ask;
    const struct arg *tables[HELP_TABLES_MAX + 1];
    int place;
    const char *last = words[n - 1];
    struct typing t = typing_of(to, last);
    help_tables(c, &ask, tables);
    const struct arg *open = read_line(tables, n - 1, words, &place);
    size_t len = strcspn(last, "=");
    if (open) {
        t = typing_of(to, is_equals(last) ? "" : last);
        offer_values(t, open);
    } else if (last[0] == '-' && last[len] == '=') {
        const struct arg *arg = find_option(tables, last, len);
        t.kept.len = len + 1;
        t.typed = str_of(last + len + 1);
        if (arg)
            offer_values(t, arg);
    } else if (last[0] == '-') {
        offer_options(&t, tables);
    } else if (c->synopsis) {
        offer_place(&t, c->synopsis, place);
    }
}

/* First words, each once: verbs stand together with their family. */
static void put_verbs(FILE *to, const char *typed)
{
    struct typing t = typing_of(to, typed);
    for (const struct command *c = commands; c->name; c++) {
        size_t n = strcspn(c->name, " ");
        bool known = false;
        for (const struct command *before = commands; before < c && !known; before++)
            known = strcspn(before->name, " ") == n && memcmp(before->name, c->name, n) == 0;
        if (!known)
            offer(&t, (struct str){c->name, n}, str_of(c->name[n] ? "" : c->summary));
    }
    offer(&t, STR("help"), STR("what the verbs are, or one of them"));
    if (typed[0] == '-') {
        offer(&t, STR("--help"), STR("what the verbs are"));
        offer(&t, STR("--version"), STR("which Muster this is"));
    }
}

static const struct command *find_verb(const char *first, const char *second)
{
    const struct command *found = NULL;
    for (const struct command *c = commands; c->name; c++) {
        const char *in_family = help_of_family(c, first);
        if (second && in_family && strcmp(in_family, second) == 0)
            return c;
        if (strcmp(c->name, first) == 0)
            found = c;
    }
    return found;
}

static void put_family(FILE *to, const char *family, const char *typed)
{
    struct typing t = typing_of(to, typed);
    for (const struct command *c = commands; c->name; c++) {
        const char *second = help_of_family(c, family);
        if (second)
            offer(&t, str_of(second), str_of(c->summary));
    }
}

void complete_put(FILE *to, int n, char **words)
{
    if (n > 1 && strcmp(words[0], "help") == 0) {
        n--;
        words++;
    }
    if (n <= 1) {
        put_verbs(to, n == 1 ? words[0] : "");
        return;
    }
    if (n == 2)
        put_family(to, words[0], words[1]);
    const struct command *c = find_verb(words[0], n > 2 ? words[1] : NULL);
    int used = c && strchr(c->name, ' ') ? 2 : 1;
    if (c)
        put_arguments(to, c, n - used, words + used);
}
