/* A list of names in one piece of bytes: each with its length before it. Pure. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* Appends one of at most 255 bytes. */
void names_add(struct buf *list, struct str name);

/* Takes the next one off the front of *list. False at the end, or when the rest is damaged. */
bool names_next(struct str *list, struct str *ret);

/* How many there are; -1 when it is damaged. */
int names_count(struct str list);

/* True when it is among them. */
bool names_have(struct str list, struct str name);
