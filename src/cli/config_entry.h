/* One entry of a list in the configuration file while it is read: where it stands, for sentences,
 * and the kinds of values that several lists have. Declared on the stack of whoever reads it. */
#pragma once

#include "cli/config_take.h"
#include "cli/yaml_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "tokens, entry 2" and one key of it. */
struct entry {
    struct reading *r;
    const char *list;
    uint32_t number; /* from 1 */
    char place[YAML_PLACE_MAX];
};

/* "" is the entry itself; "env, entry 2, key" is deeper. Valid until the next call. */
const char *entry_at(struct entry *e, const char *key);

#define ENTRY_REFUSE(entry, key, ...)                                                              \
    reading_refuse((entry)->r, entry_at((entry), (key)), (entry)->place, __VA_ARGS__)

/* Each says it when the text is wrong. A name is copied; false when it is none. A bool that is
 * wrong is false; a number leaves *ret alone. */
bool entry_name(struct entry *e, const char *key, const char *text, char *ret, size_t cap);
bool entry_bool(struct entry *e, const char *key, const char *text);
bool entry_number(struct entry *e, const char *key, const char *text, int64_t min, int64_t max,
                  int64_t *ret);

/* Bit per region code of the names; what there is not is said. */
uint64_t entry_regions(struct entry *e, const char *const *names, uint32_t n);

/* The code of a configured region, or -1. */
int config_find_region(const struct core_config *core, const char *name);
