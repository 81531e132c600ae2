/* Browsing: what the handlers of lists and single objects share. Visible inside src/api only; owns
 * nothing. */
#pragma once

#include "api/call.h"

/* What a list shows: 0, "" and -1 are no condition. */
struct wanted {
    int64_t fleet;
    int region;
    int64_t server;
    int64_t host;
    int64_t room;
    int64_t player; /* as chat servers know him */
    struct str state;
    struct str kind;
    struct str version;
    struct str account;
    struct str name;
    struct str chat_server;
    bool has_lobby;
    int64_t lobby;
};

/* Writes the object when it fits; false when it does not. */
typedef bool browse_item(const struct core *core, int64_t id, const struct wanted *wanted,
                         struct json_writer *w);

typedef int64_t browse_step(const struct core *core, enum row_kind kind, int64_t from);

/* Answers with a page. It may be short when few of many fit: the cursor leads on all the same. */
void browse_list(struct call *c, enum row_kind kind, browse_step *step, browse_item *item,
                 const struct wanted *wanted);

/* Answers with a list that has no pages: write adds the items of one fleet (argument fleet), or of
 * all (0). */
void browse_whole(struct call *c,
                  void (*write)(struct json_writer *w, const struct core *core, int64_t fleet));

/* Oldest first, unless the newest were asked for (argument order). */
browse_step *browse_order(const struct call *c);

bool browse_fits(struct str wanted, const char *word);

/* Ends the call: there is no such thing, or an argument names something that is not there. A
 * mistake in an argument is answered like anything else that was seen in core. */
void browse_refuse_missing(struct call *c, const char *noun, int64_t id);
void browse_refuse_argument(struct call *c);

/* Ends the call with an object. */
void browse_show(struct call *c, const struct shape *shape, const void *object);
