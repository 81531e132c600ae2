/* Command lines: each verb declares its options as a table and gets them read, checked, refused and
 * explained in one voice. Regions are known by the names core has for them. Texts point into argv.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum arg_kind {
    ARG_FLAG,    /* bool; takes no value */
    ARG_NUMBER,  /* int64_t in min..max */
    ARG_SECONDS, /* int64_t in min..max: "90", "90s", "5m", "2h" or "30d" */
    ARG_TEXT,    /* const char * */
    ARG_CHOICE,  /* const char *: one of `words` */
    ARG_LIST,    /* const char *: texts with commas between them, each one of `words` if any */
    ARG_WORD,  /* const char *, NULL before: an argument without a name; several are taken in order
                */
    ARG_TITLE, /* no argument: a line for help above those that follow */
};

struct arg {
    const char *name; /* "--lobby"; for ARG_WORD what a message calls it, "FILE" */
    enum arg_kind kind;
    char letter; /* 'o': "-o" is the same option; 0 = there is none */
    void *into;  /* keeps what it holds when the option is not given */
    int64_t min;
    int64_t max;
    const char *const *words; /* ARG_CHOICE, ARG_LIST: closed by NULL */
    const char *value;        /* for help: what is put for the value, "N" */
    const char *help;         /* for help: one line; NULL = it is not listed there */
};

enum { ARGS_TABLES_MAX = 4 };

/* Reads argv[1..] into the table's places, which ends with a row without a name. "--name value" and
 * "--name=value" are the same; only the latter takes a value that begins with "--". A letter's
 * value follows it, with a blank or without. On failure one sentence has been printed on standard
 * error, which suggests the nearest option or value. */
bool args_parse(int argc, char **argv, const struct arg *table);

/* The same for options that stand in several tables; `tables` is closed by NULL. */
bool args_parse_all(int argc, char **argv, const struct arg *const *tables);

/* Prints what a table's rows say about themselves, aligned, with the words or units they take. */
void args_print_help(FILE *to, const struct arg *table);

/* True when it has a name that is typed. */
bool args_is_option(const struct arg *arg);

/* What a row says about itself: its help, with the words or units it takes. Returns dst. */
enum { ARGS_ABOUT_MAX = 512 };
const char *args_about(const struct arg *arg, char dst[ARGS_ABOUT_MAX]);

/* Prints text, broken between words; it begins at that column, as does every further line. */
void args_print_wrapped(FILE *to, const char *text, int column);

/* Prints "muster VERB: ..." and where to read more; always false, to be returned. */
bool args_refuse(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "90", "90s", "5m", "2h", "30d" as seconds. */
bool args_seconds(const char *text, int64_t *ret);

/* What --token is when it is not given: MUSTER_ENROL_TOKEN of the environment, or "". */
const char *args_token(void);

/* A region's code, by name in any case or by number; -1 (and nothing printed) when there is none.
 * AUTO is 17. */
int8_t args_region(const char *text);

/* "EU"; "?" for a code without a name. */
const char *args_region_name(int8_t code);

/* All names in one line, for messages. */
const char *args_region_names(void);
