#include "cli/progress.h"

#include "cli/term.h"

#include <stdio.h>
#include <string.h>

void progress_init(struct progress *p, int fd)
{
    struct term term;
    term_look(&term, fd, true);
    *p = (struct progress){.fd = fd};
    p->over = term.draws;
}

/* Cut to the width of this moment: a line that wraps cannot be written over. */
static void put_over(struct progress *p, struct buf *out, const char *text)
{
    struct term term;
    struct buf fitted = {0};
    term_look(&term, p->fd, true);
    term_fit(&fitted, str_of(text), term.columns - 1, 1);
    term_put(out, "\r\033[K");
    buf_append(out, fitted.data, fitted.len > 0 ? fitted.len - 1 : 0); /* without its end */
    buf_done(&fitted);
    p->drawn = true;
}

void progress_show(struct progress *p, const char *what, const char *more)
{
    struct buf out = {0};
    char text[2 * PROGRESS_MAX];
    if (!p->over && strcmp(p->said, what) == 0)
        return;
    snprintf(p->said, sizeof(p->said), "%s", what);
    snprintf(text, sizeof(text), "%s%s", what, p->over ? more : "");
    if (p->over)
        put_over(p, &out, text);
    else
        term_printf(&out, "%s\n", text);
    (void)term_flush(&out, p->fd);
    buf_done(&out);
}

void progress_wipe(struct progress *p)
{
    struct buf out = {0};
    if (p->drawn)
        term_put(&out, "\r\033[K");
    p->drawn = false;
    (void)term_flush(&out, p->fd);
    buf_done(&out);
}
