#include "cli/sse.h"

#include <string.h>

void sse_done(struct sse *s)
{
    buf_done(&s->line);
    buf_done(&s->kind);
    buf_done(&s->data);
}

static void forget_event(struct sse *s)
{
    buf_clear(&s->kind);
    buf_clear(&s->data);
}

void sse_restart(struct sse *s)
{
    buf_clear(&s->line);
    forget_event(s);
    memcpy(s->next_id, s->id, sizeof(s->id));
}

/* A blank line ends an event. The id counts even when there is nothing to hand out. */
static bool dispatch(struct sse *s, sse_on_event *on_event, void *user)
{
    struct sse_event event = {
        .kind = {(const char *)s->kind.data, s->kind.len},
        .data = {(const char *)s->data.data, s->data.len},
    };
    if (event.kind.len == 0)
        event.kind = STR("message");
    memcpy(s->id, s->next_id, sizeof(s->id));
    bool more = event.data.len == 0 || on_event(user, &event);
    forget_event(s);
    return more;
}

static void take_field(struct sse *s, struct str name, struct str value)
{
    if (str_eq(name, STR("event"))) {
        buf_clear(&s->kind);
        buf_append(&s->kind, value.at, value.len);
    } else if (str_eq(name, STR("data"))) {
        if (s->data.len > 0)
            buf_append(&s->data, "\n", 1);
        buf_append(&s->data, value.at, value.len);
    } else if (str_eq(name, STR("id"))) {
        (void)str_copy(s->next_id, sizeof(s->next_id), value);
    }
}

/* "name: value"; without a colon all of it is the name; a colon in front makes it a comment. */
static bool take_line(struct sse *s, struct str line, sse_on_event *on_event, void *user)
{
    if (line.len > 0 && line.at[line.len - 1] == '\r')
        line.len--;
    if (line.len == 0)
        return dispatch(s, on_event, user);
    const char *colon = memchr(line.at, ':', line.len);
    size_t n = colon ? (size_t)(colon - line.at) : line.len;
    struct str value = {line.at + line.len, 0};
    if (colon)
        value = (struct str){colon + 1, line.len - n - 1};
    if (value.len > 0 && value.at[0] == ' ')
        value = (struct str){value.at + 1, value.len - 1};
    take_field(s, (struct str){line.at, n}, value);
    return true;
}

bool sse_take(struct sse *s, struct str piece, sse_on_event *on_event, void *user)
{
    while (piece.len > 0) {
        const char *end = memchr(piece.at, '\n', piece.len);
        size_t n = end ? (size_t)(end - piece.at) : piece.len;
        buf_append(&s->line, piece.at, n);
        if (s->line.len + s->data.len > SSE_LINE_MAX)
            return false;
        if (!end)
            return true;
        struct str line = {(const char *)s->line.data, s->line.len};
        bool more = take_line(s, line, on_event, user);
        buf_clear(&s->line);
        if (!more)
            return false;
        piece = (struct str){end + 1, piece.len - n - 1};
    }
    return true;
}
