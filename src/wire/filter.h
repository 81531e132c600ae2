/* Filters: what a player wants of a room's settings. An object whose fields must all hold:
 *
 *   {"map": "dust"}                        the same value (numbers compare by value: 1 is 1.0)
 *   {"map": ["dust", "aztec"]}             one of these
 *   {"level": {"@func": ">=", "@value": 5}}    = != > < >= <=
 *   {"level": {"@func": "between", "@a": 1, "@b": 9}}     both ends belong to it
 *   {"mode": {"@func": "in", "@values": ["a", "b"]}}
 *   {"rules.friendly_fire": false}         reaches into objects, where no key is called so
 *
 * A key that the settings do not have never matches, also not with !=. Order is of numbers with
 * numbers and texts (by their bytes) with texts; any other pair never matches. A filter compares
 * with plain values: texts, numbers, true, false and null. It is owned by whoever parsed it. Pure
 * functions. */
#pragma once

#include "base/json.h"

#include <stdbool.h>

enum { FILTER_WHY_MAX = 200, FILTER_TERMS_MAX = 32, FILTER_VALUES_MAX = 64 };

struct filter;

/* NULL with why, a sentence for whoever sent it, when it is no filter. An empty object lets
 * everything through. */
struct filter *filter_parse(struct str text, char why[FILTER_WHY_MAX]);
struct filter *filter_of(const struct json *object, char why[FILTER_WHY_MAX]);
void filter_free(struct filter *f); /* NULL is fine */

/* settings is the parsed object of a room. */
bool filter_matches(const struct filter *f, const struct json *settings);
