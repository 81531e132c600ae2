/* Core's decisions as lines of the log. */
#pragma once

#include "core/effect.h"

/* One line for an EFFECT_NOTE, with the ids it has. peer is the address of its connection, or NULL.
 * Credentials are never printed. */
void note_log(const struct effect *e, const char *peer);

/* What a note's `object` is. Of a seat or an allocation its `chat` is the player. */
enum note_object {
    NOTE_OF_NOTHING,
    NOTE_OF_TOKEN,
    NOTE_OF_HOST,
    NOTE_OF_SEAT,
    NOTE_OF_VERSION,
    NOTE_OF_ALLOCATION,
};
enum note_object note_object(enum note note);

/* The same as a word, "host"; NULL when it has none. And what its `chat` is: "chat" for the name of
 * a chat server. */
const char *note_object_key(enum note note);
const char *note_name_key(enum note note);

/* True when its load is how many players it is about. */
bool note_counts_players(enum note note);

/* True when its wall_ms is for how long. */
bool note_lasts(enum note note);
