#include "cli/args.h"

#include "base/suggest.h"
#include "core/core.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool args_refuse(const char *verb, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "muster %s: ", verb);
    vfprintf(stderr, format, list);
    fprintf(stderr, "; 'muster %s --help' lists what there is\n", verb);
    va_end(list);
    return false;
}

bool args_is_option(const struct arg *arg)
{
    return arg->kind != ARG_WORD && arg->kind != ARG_TITLE;
}

static bool parse_number(const char *text, int64_t *ret)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return false;
    *ret = v;
    return true;
}

bool args_seconds(const char *text, int64_t *ret)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || (*end && end[1]))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (*end == units[i].unit)
            return !__builtin_mul_overflow(v, units[i].seconds, ret);
    }
    return false;
}

/* The way an option is written: "-o" and "--output", whichever is asked for by `word`. */
static const char *as_typed(const struct arg *arg, const char *word)
{
    return strncmp(word, "--", 2) == 0 || arg->kind == ARG_WORD ? arg->name : word;
}

static bool take_number(const char *verb, const struct arg *arg, const char *value)
{
    int64_t v;
    if (!parse_number(value, &v) || v < arg->min || v > arg->max)
        return args_refuse(verb, "%s takes a number from %lld to %lld, not '%s'", arg->name,
                           (long long)arg->min, (long long)arg->max, value);
    *(int64_t *)arg->into = v;
    return true;
}

static bool take_seconds(const char *verb, const struct arg *arg, const char *value)
{
    int64_t v;
    if (!args_seconds(value, &v))
        return args_refuse(verb, "%s takes a time such as 90, 90s, 5m, 2h or 30d, not '%s'",
                           arg->name, value);
    if (v < arg->min || v > arg->max)
        return args_refuse(verb, "%s takes %lld to %lld seconds, not '%s'", arg->name,
                           (long long)arg->min, (long long)arg->max, value);
    *(int64_t *)arg->into = v;
    return true;
}

/* "table, wide or json" */
static void join_words(const char *const *words, char *dst, size_t cap)
{
    size_t at = 0;
    dst[0] = '\0';
    for (size_t i = 0; words[i] && at < cap; i++) {
        const char *between = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        at += (size_t)snprintf(dst + at, cap - at, "%s%s", between, words[i]);
    }
}

/* The word of the row that value is; NULL, with a sentence printed, when it is none. */
static const char *choose(const char *verb, const struct arg *arg, const char *word,
                          const char *value)
{
    struct suggestion near = suggest_for(value);
    for (const char *const *w = arg->words; *w; w++) {
        if (strcmp(*w, value) == 0)
            return *w;
        suggest_offer(&near, *w);
    }
    char words[256];
    join_words(arg->words, words, sizeof(words));
    if (near.best)
        (void)args_refuse(verb, "%s is %s, not '%s' (did you mean '%s'?)", as_typed(arg, word),
                          words, value, near.best);
    else
        (void)args_refuse(verb, "%s is %s, not '%s'", as_typed(arg, word), words, value);
    return NULL;
}

static bool take_choice(const char *verb, const struct arg *arg, const char *word,
                        const char *value)
{
    const char *chosen = choose(verb, arg, word, value);
    if (chosen)
        *(const char **)arg->into = chosen;
    return chosen != NULL;
}

static bool take_list(const char *verb, const struct arg *arg, const char *word, const char *value)
{
    for (const char *at = value; arg->words && *at;) {
        char item[64];
        size_t n = strcspn(at, ",");
        snprintf(item, sizeof(item), "%.*s", (int)n, at);
        if (!choose(verb, arg, word, item))
            return false;
        at += n + (at[n] == ',' ? 1 : 0);
    }
    *(const char **)arg->into = value;
    return true;
}

static bool take_value(const char *verb, const struct arg *arg, const char *word, const char *value)
{
    switch (arg->kind) {
    case ARG_NUMBER:
        return take_number(verb, arg, value);
    case ARG_SECONDS:
        return take_seconds(verb, arg, value);
    case ARG_CHOICE:
        return take_choice(verb, arg, word, value);
    case ARG_LIST:
        return take_list(verb, arg, word, value);
    case ARG_FLAG:
    case ARG_TEXT:
    case ARG_WORD:
    case ARG_TITLE:
        break;
    }
    *(const char **)arg->into = value;
    return true;
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0'; /* "-" alone is a file: standard input */
}

/* Whether `word` is this option; *ret_value is then what stands behind its "=" or its letter. */
static bool names(const struct arg *arg, const char *word, const char **ret_value)
{
    size_t n = strlen(arg->name);
    if (arg->letter && word[0] == '-' && word[1] == arg->letter) {
        *ret_value = word[2] ? word + 2 : NULL;
        return true;
    }
    if (strncmp(word, arg->name, n) != 0 || (word[n] != '=' && word[n] != '\0'))
        return false;
    *ret_value = word[n] == '=' ? word + n + 1 : NULL;
    return true;
}

/* The next argument without a name, or the last when all are there; NULL = the verb has none. */
static const struct arg *find_word(const struct arg *const *tables)
{
    const struct arg *last = NULL;
    for (; *tables; tables++) {
        for (const struct arg *arg = *tables; arg->name; arg++) {
            if (arg->kind != ARG_WORD)
                continue;
            last = arg;
            if (!*(const char **)arg->into)
                return arg;
        }
    }
    return last;
}

/* The row a word of the command line belongs to, or NULL. */
static const struct arg *find(const struct arg *const *tables, const char *word,
                              const char **ret_value)
{
    *ret_value = NULL;
    if (!is_option(word))
        return find_word(tables);
    for (; *tables; tables++) {
        for (const struct arg *arg = *tables; arg->name; arg++) {
            if (args_is_option(arg) && names(arg, word, ret_value))
                return arg;
        }
    }
    return NULL;
}

static bool unknown(const char *verb, const struct arg *const *tables, const char *word)
{
    if (!is_option(word))
        return args_refuse(verb, "takes no word of its own, but there is '%s'", word);
    char name[SUGGEST_WORD_MAX + 2];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    struct suggestion near = suggest_for(name);
    for (; *tables; tables++) {
        for (const struct arg *arg = *tables; arg->name; arg++) {
            if (args_is_option(arg))
                suggest_offer(&near, arg->name);
        }
    }
    if (near.best)
        return args_refuse(verb, "unknown option '%s' (did you mean '%s'?)", word, near.best);
    return args_refuse(verb, "unknown option '%s'", word);
}

bool args_parse_all(int argc, char **argv, const struct arg *const *tables)
{
    const char *verb = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        const char *value;
        const struct arg *arg = find(tables, word, &value);
        if (!arg)
            return unknown(verb, tables, word);
        if (arg->kind == ARG_FLAG) {
            if (value)
                return args_refuse(verb, "%s takes no value", arg->name);
            *(bool *)arg->into = true;
            continue;
        }
        if (arg->kind == ARG_WORD) {
            if (*(const char **)arg->into)
                return args_refuse(verb, "one %s at a time; '%s' is too many", arg->name, word);
            *(const char **)arg->into = word;
            continue;
        }
        if (!value && i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0)
            value = argv[++i];
        if (!value)
            return args_refuse(verb, "%s needs a value", as_typed(arg, word));
        if (!take_value(verb, arg, word, value))
            return false;
    }
    return true;
}

bool args_parse(int argc, char **argv, const struct arg *table)
{
    return args_parse_all(argc, argv, (const struct arg *const[]){table, NULL});
}

enum { HELP_COLUMN = 24, HELP_WIDTH = 92 };

/* "-o, --output FORMAT" */
static int print_name(FILE *to, const struct arg *arg)
{
    int n = arg->letter ? fprintf(to, "  -%c, %s", arg->letter, arg->name)
                        : fprintf(to, "  %s", arg->name);
    if (arg->value)
        n += fprintf(to, " %s", arg->value);
    return n;
}

const char *args_about(const struct arg *arg, char dst[ARGS_ABOUT_MAX])
{
    char words[256];
    if (arg->words)
        join_words(arg->words, words, sizeof(words));
    snprintf(dst, ARGS_ABOUT_MAX, "%s%s%s%s", arg->help,
             arg->kind == ARG_SECONDS ? "; or 5m, 2h, 30d" : "", arg->words ? ": " : "",
             arg->words ? words : "");
    return dst;
}

void args_print_wrapped(FILE *to, const char *text, int column)
{
    int at = column;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (at > column && at + n > HELP_WIDTH) {
            fprintf(to, "\n%*s", column, "");
            at = column;
        }
        fprintf(to, "%s%.*s", at > column ? " " : "", n, text);
        at += n + 1;
        text += n + (text[n] == ' ' ? 1 : 0);
    }
    fputc('\n', to);
}

void args_print_help(FILE *to, const struct arg *table)
{
    for (; table->name; table++) {
        char text[ARGS_ABOUT_MAX];
        if (table->kind == ARG_TITLE)
            fprintf(to, "\n%s:\n", table->name);
        if (!table->help)
            continue;
        int n = print_name(to, table);
        if (n >= HELP_COLUMN - 1)
            n = fprintf(to, "\n") - 1;
        fprintf(to, "%*s", HELP_COLUMN - n, "");
        args_print_wrapped(to, args_about(table, text), HELP_COLUMN);
    }
}

const char *args_token(void)
{
    const char *token = getenv("MUSTER_ENROL_TOKEN");
    return token ? token : "";
}

static const struct region_config *regions(void)
{
    static struct core_config config; /* large, so not on the stack; filled once */
    if (config.n_fleets == 0)
        core_config_default(&config);
    return config.regions;
}

int8_t args_region(const char *text)
{
    int64_t code;
    if (parse_number(text, &code))
        return code >= 0 && code < REGION_CODES ? (int8_t)code : -1;
    if (strcasecmp(text, "AUTO") == 0)
        return REGION_AUTO;
    for (int8_t i = 0; i < REGION_CODES; i++) {
        if (regions()[i].name[0] && strcasecmp(text, regions()[i].name) == 0)
            return i;
    }
    return -1;
}

const char *args_region_name(int8_t code)
{
    if (code == REGION_AUTO)
        return "AUTO";
    return code >= 0 && code < REGION_CODES && regions()[code].name[0] ? regions()[code].name : "?";
}

const char *args_region_names(void)
{
    static char names[REGION_CODES * 17];
    if (names[0])
        return names;
    size_t at = 0;
    for (int i = 0; i < REGION_CODES; i++) {
        if (regions()[i].name[0])
            at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", at ? " " : "",
                                   regions()[i].name);
    }
    return names;
}
