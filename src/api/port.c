#include "api/port.h"

#include "base/err.h"

#include <string.h>

void port_event(const struct port_row *row, conn_id conn, const struct chat_message *m,
                struct event *ret)
{
    ret->kind = row->event;
    ret->conn = conn;
    memcpy((char *)ret + row->to, (const char *)m + row->from, row->size);
}

struct str port_error(const struct effect *e)
{
    if (e->err == ERR_NOT_THE_LEADER)
        return e->text;
    return e->err == 0 ? STR("") : str_of(err_sentence(e->err));
}
