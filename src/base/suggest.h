/* The word somebody meant: one helper for verbs, options and values, so that all of them are
 * corrected by the same rule. A search is embedded in whoever looks; words are borrowed. */
#pragma once

enum { SUGGEST_WORD_MAX = 32 }; /* longer words are never suggested */

struct suggestion {
    const char *typed;
    const char *best; /* the nearest so far; NULL = nothing is near enough to be meant */
    int distance;     /* of best */
};

struct suggestion suggest_for(const char *typed);

/* Considers a word. Dashes in front of either, and what follows a blank, are not compared. */
void suggest_offer(struct suggestion *s, const char *word);

/* How many letters must be added, removed, changed or swapped with their neighbour to make b of a;
 * SUGGEST_WORD_MAX when one of them is too long. */
int suggest_distance(const char *a, const char *b);
