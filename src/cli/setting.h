/* Settings: the keys of the configuration that have one value, as rows with what they mean, how
 * they are read and printed, and whether a reload may change them. Rows are constants; values live
 * in struct config. */
#pragma once

#include "cli/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct doc;

enum setting_kind {
    SETTING_NUMBER, /* int64_t, int32_t or uint16_t */
    SETTING_WORD,   /* an enum or a bool: the index into words */
    SETTING_NAME,   /* char[] */
    SETTING_IP,     /* char[]; "" = the address of the chat ports */
    SETTING_FILE,   /* char[]; a path as it can be opened; "" = none */
    SETTING_URL,    /* char[]; "" = none */
    SETTING_TEXT,   /* char[]; may be "" */
    SETTING_SECRET, /* char[]; may be "", and is in no sentence and no log line */
};

struct setting {
    const char *section; /* "timeouts", "tls.http" */
    const char *key;
    const char *meaning;
    size_t doc_at; /* of its text in struct doc */
    size_t at;     /* of its value in struct config */
    size_t size;
    const char *unit; /* "ms"; "" = none */
    int64_t min;      /* numbers */
    int64_t max;
    const char *const *words; /* closed by NULL */
    enum setting_kind kind;
    bool reloads;
};

/* Sections stand together, in the order in which they are shown. */
extern const struct setting settings[];
extern const size_t n_settings;

enum { SETTING_WHY_MAX = 200, SETTING_VALUE_MAX = CONFIG_PATH_MAX };

/* What the file says, or NULL. */
const char *setting_said(const struct setting *s, const struct doc *doc);

/* Puts text into *ret; relative paths begin at folder ("" = where the process stands). False with
 * why ("must be …, not '…'") and nothing changed. */
bool setting_take(const struct setting *s, const char *text, const char *folder, struct config *ret,
                  char why[SETTING_WHY_MAX]);

/* The value as the file would say it, without quotes. Returns dst. */
const char *setting_print(const struct setting *s, const struct config *config,
                          char dst[SETTING_VALUE_MAX]);

/* Copies the value. */
void setting_copy(const struct setting *s, const struct config *from, struct config *to);

/* Digits only, in min..max: no sign, unit, fraction or other base. */
bool setting_read_number(const char *text, int64_t min, int64_t max, int64_t *ret);

/* 1 to max of A-Z a-z 0-9 . _ - */
bool setting_is_name(const char *text, size_t max);

/* A path of the file, made such that it can be opened. False when it is too long. */
bool setting_resolve(const char *path, const char *folder, char ret[CONFIG_PATH_MAX]);
