#include "cli/args.h"

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

static bool take_value(const char *verb, const struct arg *arg, const char *value)
{
    if (arg->kind != ARG_NUMBER) {
        *(const char **)arg->into = value;
        return true;
    }
    int64_t v;
    if (!parse_number(value, &v) || v < arg->min || v > arg->max)
        return args_refuse(verb, "%s takes a number from %lld to %lld, not '%s'", arg->name,
                           (long long)arg->min, (long long)arg->max, value);
    *(int64_t *)arg->into = v;
    return true;
}

/* The row a word of the command line belongs to, or NULL. *ret_value is what follows its "=". */
static const struct arg *find(const struct arg *table, const char *word, const char **ret_value)
{
    *ret_value = NULL;
    bool named = strncmp(word, "--", 2) == 0;
    for (; table->name; table++) {
        size_t n = strlen(table->name);
        if (!named && table->kind == ARG_WORD)
            return table;
        if (table->kind == ARG_WORD || strncmp(word, table->name, n) != 0)
            continue;
        if (word[n] == '=')
            *ret_value = word + n + 1;
        if (word[n] == '=' || word[n] == '\0')
            return table;
    }
    return NULL;
}

bool args_parse(int argc, char **argv, const struct arg *table)
{
    const char *verb = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *value;
        const struct arg *arg = find(table, argv[i], &value);
        if (!arg)
            return args_refuse(verb, "unknown option '%s'", argv[i]);
        if (arg->kind == ARG_FLAG) {
            if (value)
                return args_refuse(verb, "%s takes no value", arg->name);
            *(bool *)arg->into = true;
            continue;
        }
        if (arg->kind == ARG_WORD && *(const char **)arg->into)
            return args_refuse(verb, "one %s at a time; '%s' is too many", arg->name, argv[i]);
        if (arg->kind == ARG_WORD)
            value = argv[i];
        else if (!value && i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0)
            value = argv[++i];
        if (!value)
            return args_refuse(verb, "%s needs a value", arg->name);
        if (!take_value(verb, arg, value))
            return false;
    }
    return true;
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
