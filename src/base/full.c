#include "base/full.h"

#include <errno.h>
#include <string.h>

bool full_is(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

const char *full_reason(int error)
{
    if (error == EFBIG)
        return "the file size limit of this process is reached; raise it (ulimit -f, LimitFSIZE)";
    if (error == EDQUOT)
        return "the disk quota is used up; make room";
    if (error == ENOSPC)
        return "no space left on the device; make room";
    return strerror(error);
}
